"""What the tests of the catalog are made of: tools that only stand there, agents, callers, subjects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from actors import Access, AgentDefinition, Grants, Role, Tool, ToolSet
from orchestrator.catalog.subject import Annotations, Caller, Declared, Subject
from orchestrator.facts import PERMIT
from orchestrator.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.facts import Verdict
    from orchestrator.registry import Registered

DESCRIPTION = "Does it. Not for anything else."
OPEN_SCHEMA = '{"type":"object"}'


async def _nothing(_: object, __: object) -> str:
    return "done"


def tool(name: str, description: str = DESCRIPTION, **declared: Any) -> Tool:
    """A tool that takes any object."""
    return Tool(name, description, OPEN_SCHEMA, run=_nothing, **declared)


def declared(name: str, *, says: Annotations | None = None, size: int | None = None, **more: Any) -> Declared:
    """A tool of a catalog."""
    return Declared(tool(name, **more), says or Annotations(), size)


def agent(*tools: Tool, name: str = "boss", **more: Any) -> AgentDefinition:
    """A run actor with these tools: unlike a builder it may have an external one that nobody approves."""
    return AgentDefinition(name, Role.RUN, tools=ToolSet(direct=tools), **more)


def caller(definition: AgentDefinition, *authorities: str, name: str = "chat", **more: Any) -> Caller:
    """A caller that holds *authorities* and every access."""
    access = more.pop("access", Access.EXTERNAL)
    return Caller(name, definition, Grants(authorities, access), more.pop("context", ()), **more)


def subject(*tools: Declared, callers: tuple[Caller, ...] | None = None, **more: Any) -> Subject:
    """A catalog of *tools*; without *callers* one that has all of them and holds nothing."""
    own = callers if callers is not None else (caller(agent(*(each.tool for each in tools))),)
    return Subject("shop", tools, own, **more)


def catalog_of(
    definition: AgentDefinition, verdicts: Mapping[str, Verdict] | None = None
) -> tuple[tuple[Registered, Verdict], ...]:
    """What a capability's ``catalog()`` would return, with these verdicts and a permit for the rest."""
    resolved = Registry().resolve(definition)
    return tuple((item, (verdicts or {}).get(name, PERMIT)) for name, item in resolved.tools.items())
