"""The MCP servers that a file names: server name → how it is reached, which tools are taken in, what they may do.

Keys: ``command`` (a list of words) or ``url``, ``tools`` (only these), ``access`` (default: external), ``approval``,
``authorities``, ``trusted`` (its own hints decide the access), ``required`` (default: true), ``prefix``, ``env``,
``headers``, ``cwd`` (relative to the file). Whether it all fits the agent's role is for the definition to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from actors.grants import Access
from actors.sources import MCPSource
from actors.tools import Approval
from orchestrator.workflows.document import Mapping, Scalar
from orchestrator.workflows.section import Section, nearest, word_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from enum import StrEnum
    from pathlib import Path

    from orchestrator.workflows.document import Node

    Choice = TypeVar("Choice", bound=StrEnum)

__all__ = ["SOURCE_KEYS", "read_sources"]

SOURCE_KEYS = (
    "command", "url", "tools", "access", "approval", "authorities", "trusted", "required", "prefix", "env", "headers",
    "cwd",
)  # fmt: skip


def read_sources(section: Section, folder: Path) -> Iterator[MCPSource]:
    """Yield the servers at ``mcp``, noting what is wrong; *folder* is that of the file."""
    body = section.mapping("mcp")
    for name, node in body.pairs if body is not None else ():
        if isinstance(node, Mapping):
            yield _source(name, Section(node, f"MCP server {name.text!r}", section.faults), folder)
        else:
            what = f"MCP server {name.text!r} is {word_of(node)}"
            section.faults.add(node.mark, what, "Write a mapping with 'command' or 'url'.")


def _source(name: Scalar, section: Section, folder: Path) -> MCPSource:
    section.only(*SOURCE_KEYS)
    command, url, cwd = section.sequence("command"), section.text("url"), section.text("cwd")
    words = tuple(map(_text, command.items)) if command is not None else ()
    if command is not None and not all(words):
        section.faults.add(command.mark, f"'command' of {section.what} is not a list of texts", "Quote its words.")
    if bool(words) == bool(url):
        section.faults.add(section.node.mark, f"{section.what} needs a command or a url", "Give one of the two.")
    return MCPSource(
        name.text,
        command=words,
        url=url,
        tools=tuple(word.text for word in section.words("tools")),
        required=section.node.get("required") is None or section.flag("required"),
        prefix=None if section.node.get("prefix") is None else section.text("prefix"),
        env=_pairs(section, "env"),
        headers=_pairs(section, "headers"),
        cwd=str(folder / cwd) if cwd else "",
        access=_choice(section, "access", Access.EXTERNAL),
        approval=_choice(section, "approval", Approval.NEVER),
        authorities=(word.text for word in section.words("authorities")),
        trusted=section.flag("trusted"),
    )


def _choice(section: Section, key: str, default: Choice) -> Choice:
    """Return the value at *key*, one of those that *default* is one of."""
    word = section.scalar(key)
    if word is None:
        return default
    known = [str(each) for each in type(default)]
    if word.text not in known:
        section.faults.add(word.mark, f"there is no {key} {word.text!r}", nearest(word.text, known))
        return default
    return type(default)(word.text)


def _pairs(section: Section, key: str) -> tuple[tuple[str, str], ...]:
    """Return the mapping of names to texts at *key*."""
    body = section.mapping(key)
    if body is None:
        return ()
    inner = Section(body, f"{key!r} of {section.what}", section.faults)
    return tuple((name.text, inner.text(name.text)) for name, _ in body.pairs)


def _text(node: Node) -> str:
    return node.text if isinstance(node, Scalar) else ""
