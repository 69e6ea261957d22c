"""MCP servers as a file declares them: a mapping from each server's name to how it is reached and what it may do.

A server: ``command`` (a list of words) or ``url``; ``env`` and ``headers`` (name → text, ``${NAME}`` filled in from the
environment), ``cwd``; ``tools`` (a list of names: only these; or a mapping: these, with ``access``, ``approval``,
``authorities``, ``fixed`` and ``renamed`` arguments); ``access``, ``approval``, ``authorities`` for all of them;
``trusted``, ``data``, ``optional``; ``prefix``; ``start_s``, ``call_s``.

What is possible for a role is for the definition to say; here only what no server can be is a fault.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from actors.grants import Access
from actors.reshape import Reshape
from actors.sources import MCPSource, ToolRule
from actors.tools import Approval
from orchestrator.workflows.document import Mapping, Scalar, Sequence
from orchestrator.workflows.rights import read_authorities, read_one_of
from orchestrator.workflows.schema import canonical, value_of
from orchestrator.workflows.section import Section, word_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.workflows.document import Node

__all__ = ["SERVER_KEYS", "read_servers"]

RIGHTS = ("access", "approval", "authorities")
SERVER_KEYS = (
    "command",
    "url",
    "env",
    "headers",
    "cwd",
    "tools",
    *RIGHTS,
    "trusted",
    "data",
    "optional",
    "prefix",
    "start_s",
    "call_s",
)
RULE_KEYS = (*RIGHTS, "fixed", "renamed")
SECONDS = re.compile(r"(0|[1-9][0-9]{0,5})(\.[0-9]{1,3})?")


def read_servers(section: Section, key: str = "mcp") -> Iterator[MCPSource]:
    """Yield the servers at *key* of *section*; what is wrong goes to its faults, and reading goes on."""
    body = section.mapping(key)
    for name, node in body.pairs if body is not None else ():
        if not isinstance(node, Mapping):
            what = f"MCP server {name.text!r} is {word_of(node)}"
            section.faults.add(node.mark, what, "Write a mapping with 'command' or 'url'.")
            continue
        inner = Section(node, f"MCP server {name.text!r}", section.faults)
        inner.only(*SERVER_KEYS)
        yield _server(name.text, inner)


def _server(name: str, section: Section) -> MCPSource:
    command, url = _command(section), section.text("url")
    if bool(section.node.get("command")) == bool(section.node.get("url")):
        section.faults.add(section.node.mark, f"{section.what} needs a command or a url", "Give one of the two.")
    tools, rules = _tools(section)
    access, approval, authorities = rights(section)
    more: dict[str, Any] = {"access": access, "approval": approval, "authorities": authorities}
    more |= {key: _seconds(section, key) for key in ("start_s", "call_s")}
    return MCPSource(
        name,
        command,
        url,
        tools,
        required=not section.flag("optional"),
        prefix=section.text("prefix") if section.node.get("prefix") is not None else None,
        env=_pairs(section, "env"),
        headers=_pairs(section, "headers"),
        cwd=section.text("cwd"),
        rules=rules,
        trusted=section.flag("trusted"),
        data=section.flag("data"),
        **{key: value for key, value in more.items() if value is not None},
    )


def _command(section: Section) -> tuple[str, ...]:
    body = section.sequence("command")
    if body is None:
        return ()
    words = tuple(item.text for item in body.items if isinstance(item, Scalar))
    if not words or len(words) < len(body.items):
        section.faults.add(body.mark, f"'command' of {section.what} is not a list of texts", "Quote its words.")
    return words


def _tools(section: Section) -> tuple[tuple[str, ...], tuple[ToolRule, ...]]:
    """Return the tools to take in, and what is said of each."""
    node = section.find("tools", "a list of names, or a mapping from names to rules")
    if node is None:
        return (), ()
    if isinstance(node, Sequence):
        return tuple(word.text for word in section.words("tools")), ()
    if not isinstance(node, Mapping):
        section.wrong(node, "tools", "a list of names, or a mapping from names to rules")
        return (), ()
    rules = tuple(_rule(name.text, each, section) for name, each in node.pairs)
    return tuple(rule.name for rule in rules), rules


def _rule(name: str, node: Node, outer: Section) -> ToolRule:
    if not isinstance(node, Mapping):
        what = f"the tool {name!r} of {outer.what} is {word_of(node)}"
        outer.faults.add(node.mark, what, "Write a mapping, such as {access: read}.")
        return ToolRule(name)
    section = Section(node, f"the tool {name!r} of {outer.what}", outer.faults)
    section.only(*RULE_KEYS)
    access, approval, authorities = rights(section)
    fixed, renamed = section.mapping("fixed"), _pairs(section, "renamed")
    values = tuple(
        (key.text, canonical(value_of(value, section.faults)))
        for key, value in (fixed.pairs if fixed is not None else ())
    )
    reshape = Reshape(values, renamed) if values or renamed else None
    return ToolRule(name, access=access, approval=approval, authorities=authorities, reshape=reshape)


def rights(section: Section) -> tuple[Access | None, Approval | None, frozenset[str] | None]:
    """Return what a server or a tool says of its rights; ``None`` for each that it does not speak of."""
    access, approval = read_one_of(section, "access", Access), read_one_of(section, "approval", Approval)
    authorities = read_authorities(section, held=False)
    return access, approval, authorities if section.node.get("authorities") is not None else None


def _pairs(section: Section, key: str) -> tuple[tuple[str, str], ...]:
    """Return the mapping of texts at *key*."""
    body = section.mapping(key)
    found = []
    for name, value in body.pairs if body is not None else ():
        if isinstance(value, Scalar):
            found.append((name.text, value.text))
        else:
            section.wrong(value, f"{key}.{name.text}", "text")
    return tuple(found)


def _seconds(section: Section, key: str) -> float | None:
    word = section.scalar(key)
    if word is None:
        return None
    if not SECONDS.fullmatch(word.text) or not float(word.text):
        section.wrong(word, key, "seconds above 0, in plain digits")
        return None
    return float(word.text)
