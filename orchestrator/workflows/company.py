"""The actors of a run: one for each agent, and one below it for each item and each part an agent has in it.

Rules:

- An agent's own actor takes one turn of a step at a time, so that no other turn has what this one is lent.
- The actors of an item are its own: its worker, its reviewer and its fixer are those of no other item. They stay until
  the item is over, so that they remember its rounds, and then go.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from orchestrator.journal.work import Stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from actors.definition import AgentDefinition
    from orchestrator.member import Member
    from orchestrator.registry import Registry
    from orchestrator.supervisor import Supervisor
    from orchestrator.workflows.plan import Step

__all__ = ["Company", "agent_of", "is_item"]


def is_item(key: str) -> bool:
    """Tell whether *key* names one item of a step."""
    return "[" in key


def agent_of(step: Step, stage: Stage) -> str:
    """Return which agent has the turns of *stage* in *step*; empty for one that the step does not have."""
    if stage is Stage.WORK:
        return step.agent
    if step.review is None:
        return ""
    return step.review.by if stage is Stage.REVIEW else step.review.fix_by


class Company:
    """Starts and finds the actors of a run below *root*. ``definitions`` are the plan's agents by name."""

    def __init__(
        self, supervisor: Supervisor, registry: Registry, root: Member, definitions: Mapping[str, AgentDefinition]
    ) -> None:
        self.root = root
        self._supervisor = supervisor
        self._registry = registry
        self._definitions = definitions
        self._owners: dict[str, Member] = {}
        self._turns: dict[str, asyncio.Lock] = {}

    @asynccontextmanager
    async def seat(self, step: Step, key: str, stage: Stage) -> AsyncIterator[Member]:
        """Enter with the actor for the turns of *stage* of *key*, once it is free; started when first needed."""
        agent = agent_of(step, stage)
        if is_item(key):
            yield self._worker(agent, self.owner(agent), _call(key, stage))
        else:
            async with self._turns.setdefault(agent, asyncio.Lock()):
                yield self.owner(agent)

    def owner(self, agent: str) -> Member:
        """Return the actor of *agent*, started when it is first needed."""
        member = self._owners.get(agent)
        if member is None or member.gone:
            member = self._owners[agent] = self._worker(agent, self.root, f"agent {agent}")
        return member

    def release(self, step: Step, key: str) -> None:
        """Let the actors of an item that is over go, now or when what they still do is done."""
        if not is_item(key):
            return
        state = self._supervisor.journal.state
        for stage in Stage:
            owner = state.by_call.get(f"{self.root.path}\0agent {agent_of(step, stage)}", "")
            member = self._supervisor.members.get(state.by_call.get(f"{owner}\0{_call(key, stage)}", ""))
            if member is not None:
                member.keep = False
                if not state.actors[member.path].waiting:
                    self._supervisor.on_idle(member)

    def _worker(self, agent: str, parent: Member, call: str) -> Member:
        """Return the actor that *call* has started below *parent*, or start it."""
        path = self._supervisor.journal.state.by_call.get(f"{parent.path}\0{call}", "")
        member = self._supervisor.members.get(path)
        if member is None:
            resolved = self._registry.resolve(self._definitions[agent])
            member = self._supervisor.spawn(resolved, parent, parent.to_share(), call=call)
        member.keep = True
        return member


def _call(key: str, stage: Stage) -> str:
    """Return by what an item's actor is found again."""
    return key if stage is Stage.WORK else f"{key} {stage.value}"
