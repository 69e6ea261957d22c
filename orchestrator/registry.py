"""(fingerprint, name) → tool, one owner each, frozen once a session has started.

Resolving a definition compiles every schema (without files or network), takes in the tools of its sources, and pins all
of them. A fault names the tool, its owners, the definition and the place; nothing is registered of a definition with
one. A tool that comes from a source and cannot be used is registered all the same, with its reason: one bad tool never
loses its server.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from actors.definition import AgentDefinition
from actors.errors import ToolFault
from actors.intrinsics import INTRINSICS
from actors.ports import OfferedTool
from actors.roles import ROLES
from actors.schema import canonical, digest
from actors.sources import MCPSource
from actors.text import clip
from actors.tools import Tool
from orchestrator.errors import ResolutionFailed
from orchestrator.sources.connection import Connection
from orchestrator.sources.origin import Origin
from orchestrator.sources.taking import take
from orchestrator.validators import UnusableSchema, answer_fault, compile_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from actors.states import StateChart
    from actors.tools import ToolContext
    from orchestrator.journal.source import Pin
    from orchestrator.sources.sources import Sources

__all__ = ["Registered", "Registry", "Resolved"]

MAX_FAULT = 300


@attrs.frozen
class Registered:
    """A tool in its place: its declaration, what a model is told of it, what checks its arguments, where it comes from.

    ``unusable`` says why it cannot be called at all; it is then never offered.
    """

    tool: Tool
    offered: OfferedTool
    validator: Any = attrs.field(eq=False, repr=False)
    origin: Origin | None = None
    unusable: str = ""

    @property
    def version(self) -> str:
        """The version of what would run now; of a tool that its server has changed, the changed one."""
        return self.tool.version if self.origin is None else self.origin.version

    @property
    def difference(self) -> str:
        """What of the tool is different from what the session began with; empty where nothing is."""
        return "" if self.origin is None else self.origin.connection.tools.changed.get(self.origin.pin.name, "")


@attrs.frozen
class Resolved:
    """A definition with its tools pinned, by name, in the definition's order.

    ``fingerprint`` is the definition's where it has no sources, else it covers the pinned tools as well. ``absent`` are
    the sources that never came up.
    """

    definition: AgentDefinition
    tools: Mapping[str, Registered] = attrs.field(eq=False, repr=False)
    names: tuple[str, ...]
    instructions: str = attrs.field(repr=False)
    fingerprint: str
    origins: tuple[Connection, ...] = attrs.field(default=(), eq=False, repr=False)
    absent: tuple[MCPSource, ...] = ()

    def readable(self) -> dict[str, tuple[MCPSource, Connection]]:
        """Return the sources whose data the definition asks for, by name."""
        reached = zip(self.definition.tools.mcp, self.origins, strict=True)
        return {source.name: (source, connection) for source, connection in reached if source.data}

    def revisions(self) -> tuple[int, ...]:
        """Return what changes whenever a source of the definition does."""
        return tuple(connection.revision for connection in self.origins)


class Registry:
    """The tools of one session's definitions, and the one state chart that they may share.

    *adapt* turns a tool's schema into what the model takes, or raises ValueError with the reason why it cannot.
    ``sources`` are to be open before a definition that has some is resolved.
    """

    def __init__(self, adapt: Callable[[str], str] | None = None) -> None:
        self._resolved: dict[str, Resolved] = {}
        self._adapt = adapt
        self.sources: Sources | None = None
        self.left_out: list[tuple[str, str]] = []
        self.chart: StateChart | None = None

    def check(self, definition: AgentDefinition) -> None:
        """Raise `ResolutionFailed` for what is wrong with *definition* and all it may start, without any source."""
        for child in definition.children:
            self.check(child)
        gathered = Gathered(self._adapt)
        gathered.own(definition.offered)
        gathered.finish(definition)

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
            known = self._resolved[definition.fingerprint] = self._resolve(definition)
        elif known.definition is not definition:
            _check_same(known.definition, definition)
        return known

    def _resolve(self, definition: AgentDefinition) -> Resolved:
        gathered = Gathered(self._adapt)
        direct = len(definition.tools.direct)
        gathered.own(definition.offered[:direct])
        for source in definition.tools.mcp:
            assert self.sources is not None
            self.left_out += gathered.source(definition, source, self.sources.connection(source))
        gathered.own(definition.offered[direct:])
        gathered.whole(definition)
        return gathered.finish(definition)

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


class Gathered:
    """What is gathered of one definition, with every fault, before any of it counts."""

    def __init__(self, adapt: Callable[[str], str] | None) -> None:
        self._adapt = adapt
        self._tools: dict[str, Registered] = {}
        self._owners: dict[str, list[str]] = {}
        self._faults: list[str] = []
        self._origins: list[Connection] = []
        self._absent: list[MCPSource] = []

    def own(self, tools: Iterable[Tool]) -> None:
        """Take in tools that the definition holds itself; a schema that cannot be used is a fault."""
        for tool in tools:
            try:
                validator = compile_schema(tool.input_schema)
            except ValueError as error:
                text = f"its schema cannot be used: {str(error)[:MAX_FAULT]}"
                self._faults.append(f"tool {tool.name!r} of {tool.source!r}: {text}")
                continue
            self._add(tool, validator)

    def source(self, definition: AgentDefinition, source: MCPSource, connection: Connection) -> list[tuple[str, str]]:
        """Take in the tools of *source*; return what was left out, and why."""
        self._origins.append(connection)
        if connection.tools.pins is None:
            if source.required:
                self._faults.append(f"MCP source {source.name!r} is not there: {connection.reason}")
            self._absent.append(source)
            return []
        taking = take(source, connection.tools.pins, ROLES[definition.role])
        self._faults += (f"MCP source {source.name!r}: {fault}" for fault in taking.faults)
        for taken in taking.tools:
            tool = attrs.evolve(taken.tool, run=partial(_run, connection, source, taken.pin))
            unusable = taken.unusable
            try:
                validator = compile_schema(tool.input_schema)
            except ValueError as error:
                validator = compile_schema("{}")
                unusable = f"its schema cannot be used: {str(error)[:MAX_FAULT]}"
            self._add(tool, validator, Origin(connection, taken.pin), unusable)
        return [(source.name, text) for text in taking.left_out]

    def _add(self, tool: Tool, validator: Any, origin: Origin | None = None, unusable: str = "") -> None:
        owners = self._owners.setdefault(tool.name, [])
        owners.append(tool.source)
        if origin is not None and tool.name in INTRINSICS:
            self._faults.append(f"tool {tool.name!r} of {tool.source!r} has a name that is reserved; give it a prefix")
        schema = tool.input_schema
        if self._adapt is not None and not unusable:
            try:
                schema = self._adapt(schema)
            except ValueError as error:
                unusable = f"the model cannot be told of it: {str(error)[:MAX_FAULT]}"
        offered = OfferedTool(tool.name, tool.description, schema)
        self._tools.setdefault(tool.name, Registered(tool, offered, validator, origin, unusable))

    def whole(self, definition: AgentDefinition) -> None:
        """Note every name that speaks of a tool which the definition turns out not to have."""
        absent = tuple(source.lead for source in self._absent)
        named = [(f"skill {skill.name!r}", name) for skill in definition.skills for name in skill.tools]
        for what, part in (("a state", definition.tools.states), ("the selector", definition.tools.selector)):
            named += [(what, name) for name in sorted(part.named())] if part is not None else []
        self._faults += (
            f"{what} names the tool {name!r}, which none of the sources has"
            for what, name in named
            if name not in self._tools and not (absent and name.startswith(absent))
        )

    def finish(self, definition: AgentDefinition) -> Resolved:
        """Return the definition resolved. Raises `ResolutionFailed` with every fault."""
        if definition.output:
            try:
                compile_schema(definition.output)
            except UnusableSchema as error:
                self._faults.append(f"its output schema cannot be used: {clip(error.message, MAX_FAULT)}")
        for name, owners in self._owners.items():
            if len(owners) > 1:
                who = ", ".join(map(repr, owners))
                text = f"tool {name!r} has {len(owners)} owners: {who}; give a source a prefix of its own, or rename it"
                self._faults.append(text)
        if self._faults:
            raise ResolutionFailed(definition.name, tuple(self._faults))
        pinned = [item.tool.declaration() for item in self._tools.values() if item.origin is not None]
        fingerprint = definition.fingerprint
        if self._origins:
            fingerprint = digest(canonical([fingerprint, pinned]))
        return Resolved(
            definition,
            self._tools,
            tuple(self._tools),
            definition.full_instructions(),
            fingerprint,
            tuple(self._origins),
            tuple(self._absent),
        )


async def _run(
    connection: Connection, source: MCPSource, pin: Pin, context: ToolContext, arguments: Mapping[str, Any]
) -> str:
    """Run a server's tool. Raises `ToolFault` for an answer that failed or breaks its schema, and `OutcomeUnknown`."""
    output = connection.tools.now(pin).output
    answered = await connection.call(context, pin, arguments, source.call_s)
    if answered.failed:
        raise ToolFault(answered.text or f"{pin.name} failed and said nothing.")
    fault = answer_fault(output, answered.structured) if output and answered.structured else ""
    if fault:
        raise ToolFault(f"{pin.name} answered what its own schema does not allow ({fault}): {answered.text}")
    return answered.text
