"""(fingerprint, name) → tool, one owner each, frozen once a session has started.

Resolving a definition compiles every schema (without files or network) and pins the tools. A fault names the tool, the
definition and the place; nothing is registered of a definition that has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs
import msgspec

from actors.definition import AgentDefinition
from actors.ports import OfferedTool
from actors.tools import Tool
from orchestrator.errors import ResolutionFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from actors.states import StateChart


__all__ = ["Registered", "Registry", "Resolved"]

NO_MCP = "this release cannot connect to MCP servers; remove it from the tools"


@attrs.frozen
class Registered:
    """A tool in its place: its declaration, what a model is told of it, and what checks its arguments."""

    tool: Tool
    offered: OfferedTool
    validator: Any = attrs.field(eq=False, repr=False)


@attrs.frozen
class Resolved:
    """A definition with its tools pinned, by name, in the definition's order."""

    definition: AgentDefinition
    tools: Mapping[str, Registered] = attrs.field(eq=False, repr=False)
    names: tuple[str, ...]
    instructions: str = attrs.field(repr=False)


class Registry:
    """The tools of one session's definitions, and the one state chart that they may share."""

    def __init__(self) -> None:
        self._resolved: dict[str, Resolved] = {}
        self.chart: StateChart | None = None

    def __len__(self) -> int:
        """How many definitions are resolved; one for each fingerprint."""
        return len(self._resolved)

    def resolve(self, definition: AgentDefinition) -> Resolved:
        """Register *definition* and all it may start; return it resolved. Again for the same one: the same value.

        Raises `ResolutionFailed`.
        """
        for child in definition.children:
            self.resolve(child)
        chart = definition.tools.states
        if chart is not None and self.chart is not None and chart != self.chart:
            fault = "its workflow states differ from those of another definition; a session has one state chart"
            raise ResolutionFailed(definition.name, (fault,))
        self.chart = chart or self.chart
        known = self._resolved.get(definition.fingerprint)
        if known is None:
            known = self._resolved[definition.fingerprint] = _resolve(definition)
        elif known.definition is not definition:
            _check_same(known.definition, definition)
        return known

    def get(self, fingerprint: str) -> Resolved | None:
        """Return the definition with this fingerprint, or ``None``."""
        return self._resolved.get(fingerprint)

    def __iter__(self) -> Iterator[Resolved]:
        """Every resolved definition."""
        return iter(self._resolved.values())


def _check_same(known: AgentDefinition, other: AgentDefinition) -> None:
    """Raise `ResolutionFailed` when two equal definitions would do different things: their functions differ."""
    faults = tuple(
        f"tool {mine.name!r}: two definitions declare it alike and do it by different functions; give one a version"
        for mine, theirs in zip(known.offered, other.offered, strict=True)
        if mine.run is not theirs.run or mine.reconcile is not theirs.reconcile
    )
    if faults:
        raise ResolutionFailed(other.name, faults)


def _resolve(definition: AgentDefinition) -> Resolved:
    faults = [f"MCP source {source.name!r}: {NO_MCP}" for source in definition.tools.mcp]
    tools: dict[str, Registered] = {}
    for tool in definition.offered:
        other = tools.get(tool.name)
        if other is not None:
            faults.append(f"tool {tool.name!r} of {tool.source!r} is already owned by {other.tool.source!r}")
            continue
        try:
            validator = compile_schema(tool.input_schema)
        except ValueError as error:
            faults.append(f"tool {tool.name!r} of {tool.source!r}: its schema cannot be used: {str(error)[:300]}")
            continue
        tools[tool.name] = Registered(tool, OfferedTool(tool.name, tool.description, tool.input_schema), validator)
    if faults:
        raise ResolutionFailed(definition.name, tuple(faults))
    return Resolved(definition, tools, tuple(tools), definition.full_instructions())


def compile_schema(text: str) -> Any:
    """Return a validator of the JSON Schema *text*. It opens no file and no socket. Raises ValueError."""
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(msgspec.json.decode(text), validate_formats=True, offline=True)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, RecursionError) as error:
        raise ValueError(str(error)) from error
