"""An MCP server as a definition declares it: how it is reached, which of its tools are taken in, what they may do.

Rules:

- A declaration opens nothing. It is part of its definition's fingerprint, so it holds no secret: ``${NAME}`` in a value
  of ``env`` or ``headers`` is filled in from the host's environment when the connection is opened, ``${WORKSPACE}`` in
  ``env``, ``command`` and ``cwd`` with the folder that the session works on.
- What a tool may do is said here, by whoever writes the definition. A server's own hints count only where the source
  is *trusted*; otherwise a tool that nobody spoke of is held to be external.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import attrs

from actors.grants import AUTHORITY, Access
from actors.naming import CANONICAL
from actors.reshape import Reshape
from actors.tools import Approval

if TYPE_CHECKING:
    from actors.roles.role import RoleSpec

__all__ = ["MCPSource", "ToolRule"]


def _words(words: Iterable[str]) -> tuple[str, ...]:
    if isinstance(words, str):
        msg = f"expected a collection of texts, got the text {words!r}; write ({words!r},)"
        raise TypeError(msg)
    return tuple(words)


def _names(words: Iterable[str]) -> frozenset[str]:
    return frozenset(_words(words))


def _pairs(pairs: Mapping[str, str] | Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    items = pairs.items() if isinstance(pairs, Mapping) else pairs
    return tuple((name, value) for name, value in items)


@attrs.frozen
class ToolRule:
    """What a definition says of one tool of a source, by the *name* that the server gives it.

    What is ``None`` is as the source says. *reshape* fills arguments in or renames them.
    """

    name: str
    access: Access | None = attrs.field(default=None, converter=attrs.converters.optional(Access), kw_only=True)
    approval: Approval | None = attrs.field(default=None, converter=attrs.converters.optional(Approval), kw_only=True)
    authorities: frozenset[str] | None = attrs.field(
        default=None, converter=attrs.converters.optional(_names), kw_only=True
    )
    reshape: Reshape | None = attrs.field(default=None, kw_only=True)


def _rules(rules: Iterable[ToolRule]) -> tuple[ToolRule, ...]:
    return tuple(rules)


@attrs.frozen
class MCPSource:
    """An MCP server whose tools a definition takes in, under ``name__tool`` or, with ``prefix=""``, bare names.

    ``command`` starts a server on standard input and output, in the folder ``cwd``; ``url`` reaches one over HTTP;
    exactly one is given. ``tools`` names the tools to take in, as the server calls them; empty: all that the role may
    hold. ``access``, ``approval`` and ``authorities`` hold for each of them, unless a rule says otherwise; of a
    *trusted* server its hints decide the access. With ``data`` its prompts and resources can be read by
    ``read_source``. A source that is not ``required`` may be missing at the start. ``start_s`` are the seconds until
    its tools must be listed, ``call_s`` those that a call may be silent: no progress and no answer.
    """

    name: str
    command: tuple[str, ...] = attrs.field(default=(), converter=_words)
    url: str = ""
    tools: tuple[str, ...] = attrs.field(default=(), converter=_words)
    required: bool = True
    prefix: str | None = None
    env: tuple[tuple[str, str], ...] = attrs.field(default=(), converter=_pairs, kw_only=True)
    headers: tuple[tuple[str, str], ...] = attrs.field(default=(), converter=_pairs, kw_only=True)
    cwd: str = attrs.field(default="", kw_only=True)
    access: Access = attrs.field(default=Access.EXTERNAL, converter=Access, kw_only=True)
    approval: Approval = attrs.field(default=Approval.NEVER, converter=Approval, kw_only=True)
    authorities: frozenset[str] = attrs.field(default=frozenset(), converter=_names, kw_only=True)
    rules: tuple[ToolRule, ...] = attrs.field(default=(), converter=_rules, kw_only=True)
    trusted: bool = attrs.field(default=False, kw_only=True)
    data: bool = attrs.field(default=False, kw_only=True)
    start_s: float = attrs.field(default=30.0, kw_only=True)
    call_s: float = attrs.field(default=60.0, kw_only=True)

    @property
    def lead(self) -> str:
        """What stands before the names of its tools."""
        return f"{self.name}__" if self.prefix is None else self.prefix

    def rule(self, tool: str) -> ToolRule | None:
        """Return the rule for the tool that the server calls *tool*, or ``None``."""
        return next((rule for rule in self.rules if rule.name == tool), None)

    def declaration(self) -> dict[str, object]:
        """Return everything that takes part in a fingerprint, as plain data."""
        return attrs.asdict(self, value_serializer=_plain)

    def faults(self, spec: RoleSpec) -> Iterator[str]:
        """Yield what is wrong with it in a definition of the role *spec*; nothing is opened."""
        owner = f"MCP source {self.name!r}"
        if not CANONICAL.legal(self.name) or "__" in self.name:
            yield f"{owner}: its name is not plain (1 to 128 of letters, digits, '.', '_', '-', and no '__')"
        if bool(self.command) == bool(self.url):
            yield f"MCP source {self.name!r} needs a command or a url, one of the two"
        if self.command and not self.command[0].strip():
            yield f"{owner}: its command is blank; name a program"
        if self.url and not self.url.startswith(("http://", "https://")):
            yield f"{owner}: its url {self.url[:80]!r} does not begin with http:// or https://"
        if self.prefix is not None and self.prefix and not CANONICAL.legal(self.prefix):
            yield f"{owner}: its prefix {self.prefix[:80]!r} holds what no tool name may (use A-Z a-z 0-9 . _ -)"
        for label, seconds in (("start_s", self.start_s), ("call_s", self.call_s)):
            if not 0 < seconds < float("inf"):
                yield f"{owner}: its {label} is {seconds!r}; give seconds above 0"
        yield from self._rule_faults(owner)
        yield from self._right_faults(owner, spec)

    def _rule_faults(self, owner: str) -> Iterator[str]:
        names = [rule.name for rule in self.rules]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"{owner}: its tool {name!r} has two rules"
        for name in sorted({name for name in self.tools if self.tools.count(name) > 1}):
            yield f"{owner}: it names the tool {name!r} twice"
        for name in names:
            if self.tools and name not in self.tools:
                yield f"{owner}: it has a rule for {name!r}, which is not among the tools it takes in"

    def _right_faults(self, owner: str, spec: RoleSpec) -> Iterator[str]:
        said = [(owner, self.access, self.approval, self.authorities, not self.trusted)]
        said += [
            (
                f"{owner}, tool {rule.name!r}",
                rule.access or self.access,
                rule.approval or self.approval,
                self.authorities if rule.authorities is None else rule.authorities,
                rule.access is not None or not self.trusted,
            )
            for rule in self.rules
        ]
        if self.tools and set(self.tools) <= {rule.name for rule in self.rules}:
            said = said[1:]
        for what, access, approval, authorities, sure in said:
            yield from (
                f"{what}: the authority {name!r} is not of the form namespace.verb"
                for name in sorted(authorities)
                if not AUTHORITY.fullmatch(name) or name.endswith("*")
            )
            if sure:
                yield from (f"{what} {fault}" for fault in spec.faults(access, approval, authorities))


def _plain(_: object, __: object, value: object) -> object:
    return sorted(value) if isinstance(value, frozenset) else value
