"""From what a server lists to tools of a definition: names, rights, transforms. Pure.

Rules:

- A tool is called ``server__tool``, whatever else is there, so its name never depends on which server came up first.
  What no tool name may hold is replaced, with a digest, and the server's own name is kept byte for byte.
- A tool above the role's ceiling, or one that would reach outside unasked where a role may not, is left out, and said
  so; one that the definition names is a fault instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import msgspec

from actors.errors import DefinitionError
from actors.naming import CANONICAL, EdgeNames
from actors.schema import EMPTY_SCHEMA, schema_faults
from actors.text import clip, listed
from actors.tools import Tool
from orchestrator.journal.source import Pin
from orchestrator.sources.pins import TASK_ONLY, hinted
from orchestrator.validators import MAX_FAULT, compile_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from actors.grants import Access
    from actors.roles.role import RoleSpec
    from actors.sources import MCPSource
    from actors.tools import Approval

__all__ = ["Taken", "Taking", "take"]


@attrs.frozen
class Taken:
    """A tool that is taken in; *unusable* says why it cannot be called, where it cannot."""

    tool: Tool
    pin: Pin
    unusable: str = ""


@attrs.frozen
class Taking:
    """What becomes of a listing: the tools, those left out with the reason, and what makes the source impossible."""

    tools: tuple[Taken, ...]
    left_out: tuple[str, ...]
    faults: tuple[str, ...]


def take(source: MCPSource, pins: Iterable[Pin], spec: RoleSpec) -> Taking:
    """Take the tools of *source* that its declaration wants into a definition of the role *spec*."""
    known = {pin.name: pin for pin in pins}
    wanted = [pin for pin in known.values() if not source.tools or pin.name in source.tools]
    names = EdgeNames((source.lead + pin.name for pin in wanted), CANONICAL)
    tools: list[Taken] = []
    left_out: list[str] = []
    faults = list(_missing(source, known))
    for pin in wanted:
        access, approval, authorities = _rights(source, pin)
        wrong = tuple(spec.faults(access, approval, authorities))
        if wrong:
            told = f"tool {pin.name!r} {wrong[0]}"
            explicit = pin.name in source.tools or source.rule(pin.name) is not None
            (faults if explicit else left_out).append(told)
            continue
        try:
            tools.append(_taken(source, pin, names.there(source.lead + pin.name)))
        except DefinitionError as error:
            faults.extend(error.faults)
    return Taking(tuple(tools), tuple(left_out), tuple(faults))


def _missing(source: MCPSource, known: dict[str, Pin]) -> Iterator[str]:
    for name in (*source.tools, *(rule.name for rule in source.rules if rule.name not in source.tools)):
        if name not in known:
            yield f"it has no tool {name!r}; it has: {listed(sorted(known))}"


def _rights(source: MCPSource, pin: Pin) -> tuple[Access, Approval, frozenset[str]]:
    """Return access, approval and authorities of one tool: its rule, else a trusted hint, else the source."""
    rule = source.rule(pin.name)
    access = hinted(pin) if source.trusted else source.access
    if rule is None:
        return access, source.approval, source.authorities
    return (
        rule.access or access,
        rule.approval or source.approval,
        source.authorities if rule.authorities is None else rule.authorities,
    )


def _taken(source: MCPSource, pin: Pin, name: str) -> Taken:
    """Return the tool that stands for *pin*, unusable where its schema or its server makes it so.

    Raises `DefinitionError` for a transform that does not fit.
    """
    access, approval, authorities = _rights(source, pin)
    schema = pin.schema if msgspec.json.decode(pin.schema) else EMPTY_OBJECT
    fault = next(schema_faults(schema, set()), "")
    unusable = f"its schema cannot be used: {fault}" if fault else ""
    if (TASK_ONLY, True) in pin.hints:
        unusable = "its server runs it as a task only, which this release does not offer"
    tool = Tool(
        name,
        pin.description.strip() or f"The tool {pin.name} of the server {source.name}, which says nothing about it.",
        EMPTY_SCHEMA if fault else schema,
        access=access,
        approval=approval,
        authorities=authorities,
        timeout_s=None,
        version=pin.version,
        source=f"mcp:{source.name}",
    )
    rule = source.rule(pin.name)
    if rule is None or rule.reshape is None or unusable:
        return Taken(tool, pin, unusable)
    try:
        compile_schema(schema)
    except ValueError as error:
        return Taken(tool, pin, f"its schema cannot be used: {clip(str(error), MAX_FAULT)}")
    return Taken(tool.reshaped(rule.reshape), pin)


EMPTY_OBJECT = '{"type":"object"}'
