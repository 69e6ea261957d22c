"""From the agents that a workflow names to definitions: tools taken from a pool, children built first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.definition import AgentDefinition, ToolSet
from actors.errors import DefinitionError
from orchestrator.workflows.section import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from actors.definition import Skill
    from actors.states import StateChart
    from actors.tools import Tool
    from orchestrator.workflows.draft import AgentDraft
    from orchestrator.workflows.fault import FaultLog
    from orchestrator.workflows.plan import AgentSpec

__all__ = ["check_definitions", "definitions"]


def definitions(
    specs: Iterable[AgentSpec],
    pool: Mapping[str, Tool],
    skills: Mapping[str, Skill] | None = None,
    states: StateChart | None = None,
) -> dict[str, AgentDefinition]:
    """Return each agent's definition by name, in that order; one that has every tool of *states* works by them.

    :raises KeyError: an agent names a tool or a skill that is not there.
    :raises DefinitionError: an agent is not possible in its role.
    """
    by_name = {spec.name: spec for spec in specs}
    built: dict[str, AgentDefinition] = {}
    staged = frozenset(name for state in (states.states if states else ()) for name in state.tools)

    def build(spec: AgentSpec) -> AgentDefinition:
        known = built.get(spec.name)
        if known is None:
            learned = [(skills or {})[name] for name in spec.skills]
            direct = [pool[name] for name in spec.tools]
            children = [build(by_name[name]) for name in spec.children]
            known = built[spec.name] = AgentDefinition(
                name=spec.name,
                role=spec.role,
                instructions=spec.instructions,
                skills=learned,
                tools=ToolSet(direct, spec.sources, states if staged <= set(spec.tools) else None),
                children=children,
            )
        return known

    for spec in by_name.values():
        build(spec)
    return {name: built[name] for name in by_name}


def check_definitions(agents: tuple[AgentDraft, ...], pool: Mapping[str, Tool], faults: FaultLog) -> None:
    """Note tools that are not in *pool*, then what makes an agent impossible; each fault at the place that names it."""
    for agent in agents:
        for word in agent.tools:
            if word.text not in pool:
                faults.add(word.mark, f"there is no tool {word.text!r}", nearest(word.text, pool))
        if agent.spec.skills:
            faults.add(agent.mark, f"agent {agent.spec.name!r} names skills, and none are known here", "Remove them.")
    if faults.faults:
        return
    by_name = {agent.spec.name: agent for agent in agents}
    for agent in agents:
        below = _with_descendants(agent, by_name)
        try:
            definitions((each.spec for each in below), pool)
        except DefinitionError as error:
            named = next(each for each in below if repr(each.spec.name) in error.subject)
            for fault in error.faults:
                faults.add(named.mark, f"agent {named.spec.name!r}: {fault}", "Change its role, tools or children.")


def _with_descendants(agent: AgentDraft, by_name: Mapping[str, AgentDraft]) -> list[AgentDraft]:
    found = [agent]
    for each in found:
        found.extend(by_name[name] for name in each.spec.children if by_name[name] not in found)
    return found
