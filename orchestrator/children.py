"""Children: started by the ``delegate`` tool, asked and steered by its kin, stopped with everything below them.

Rules:

- A child is on record before anyone hears its id. The same call never starts two: it finds its child again.
- A child has a part of what its parent holds of its own; what is lent to the parent, and its focus, stay with it.
- An actor sees, steers, stops and collects its own children only.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from actors.grants import at_most, attenuate
from actors.messages import StopReason, TurnOrigin
from actors.text import clip, listed
from orchestrator.context import PARKED, Delivered
from orchestrator.denials import MAX_NAME
from orchestrator.journal.records import ChildStatus, TurnAccepted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from actors.messages import ToolCall
    from orchestrator.capability import Capability
    from orchestrator.member import Member
    from orchestrator.outcomes import Outcomes
    from orchestrator.registry import Registry
    from orchestrator.supervisor import Supervisor

__all__ = ["Children"]


class Children:
    """The children of one session: the executors of the delegation tools."""

    def __init__(self, supervisor: Supervisor, registry: Registry, outcomes: Outcomes) -> None:
        self._supervisor = supervisor
        self._registry = registry
        self._outcomes = outcomes
        supervisor.intrinsics.update(self.tools())

    def tools(self) -> dict[str, Callable[[Capability, ToolCall, Mapping[str, Any]], Any]]:
        """Return the executors by tool name."""
        return {
            "delegate": self.delegate,
            "list_children": self.list_children,
            "child_status": self.child_status,
            "message_child": self.message_child,
            "stop_child": self.stop_child,
            "collect_child": self.collect_child,
        }

    async def delegate(self, capability: Capability, call: ToolCall, arguments: Mapping[str, Any]) -> Any:
        """Start a child on a task, or find the one that this call started before a crash."""
        state, member = self._supervisor.journal.state, capability.member
        background = bool(arguments.get("background"))
        path = state.by_call.get(f"{member.path}\0{call.id}")
        if path is not None and not state.actors[path].task and path in self._supervisor.members:
            self._task(capability, self._supervisor.members[path], arguments)
        if path is None:
            child = self._start(capability, call, arguments, background=background)
            if child is None:
                names = listed(child.address for child in member.resolved.definition.children)
                return Delivered(
                    f"There is no agent {clip(arguments['child'], MAX_NAME)!r} to start. You may start: {names}.",
                    failed=True,
                )
            path = child.path
            await self._supervisor.journal.sync()
        name, turn = path.rpartition("/")[2], state.actors[path].task
        if background:
            return f"{name} was started in the background. A notice comes when it ends."
        return await self._outcome(capability, path, turn, stop=True)

    def _start(
        self, capability: Capability, call: ToolCall, arguments: Mapping[str, Any], *, background: bool
    ) -> Member | None:
        member = capability.member
        wanted = arguments["child"]
        definition = next((d for d in member.resolved.definition.children if wanted in (d.address, d.name)), None)
        if definition is None:
            return None
        resolved = self._registry.resolve(definition)
        grants = member.to_share()
        if capability.narrowing is not None:
            grants = attenuate(grants, capability.narrowing)
        supervisor = self._supervisor
        child = supervisor.spawn(resolved, member, grants, background=background, cause=capability.turn, call=call.id)
        self._task(capability, child, arguments)
        return child

    def _task(self, capability: Capability, child: Member, arguments: Mapping[str, Any]) -> None:
        supervisor, member = self._supervisor, capability.member
        child.keep = False
        task = TurnAccepted(supervisor.next_turn(), arguments["task"], TurnOrigin.DELEGATE, grants=capability.narrowing)
        turn = supervisor.accept(child, task)
        if member.explicit_stop:
            child.explicit_stop = member.explicit_stop
            supervisor.stops.turn(child, turn, StopReason.CANCELLED, member.explicit_stop)

    async def _outcome(self, capability: Capability, path: str, turn: str, *, stop: bool) -> Any:
        """Wait for the outcome of *turn* and take it; nobody else gets it. With *stop*, cancelling stops the child."""
        supervisor = self._supervisor
        state = supervisor.journal.state
        self._outcomes.claimed.add(turn)
        try:
            if turn not in state.outcomes:
                with supervisor.waits.hold(capability.member.path, path):
                    result = await supervisor.results.wait(supervisor.members[path], turn)
                if result.stop_reason is StopReason.SUSPENDED:
                    self._outcomes.claimed.discard(turn)
                    return PARKED
        except asyncio.CancelledError:
            self._outcomes.claimed.discard(turn)
            child = supervisor.members.get(path)
            if stop and capability.stopping and child is not None:
                supervisor.stops.soon(child)
            elif not supervisor.closing:
                self._outcomes.idle(capability.member)
            raise
        self._outcomes.claimed.discard(turn)
        owed = state.outcomes.get(turn)
        if owed is None or owed.discharged:
            return Delivered(f"The result of {path.rpartition('/')[2]} was delivered before.", failed=True)
        return Delivered(owed.text, (turn,), failed=owed.status is not ChildStatus.COMPLETED)

    async def list_children(self, capability: Capability, _: ToolCall, __: Mapping[str, Any]) -> Any:
        """Return every child that the actor started, with its state."""
        paths = self._supervisor.journal.state.children.get(capability.member.path, [])
        return [self._describe(path) for path in paths]

    async def child_status(self, capability: Capability, _: ToolCall, arguments: Mapping[str, Any]) -> Any:
        """Return the state of one child."""
        path = self._path(capability, arguments)
        return self._unknown(capability, arguments) if path is None else self._describe(path)

    async def message_child(self, capability: Capability, _: ToolCall, arguments: Mapping[str, Any]) -> Any:
        """Steer a child's turn, or open one in an idle child."""
        path = self._path(capability, arguments)
        if path is None:
            return self._unknown(capability, arguments)
        child = self._supervisor.members.get(path)
        if child is None:
            return Delivered(f"{arguments['child']} has ended and takes no messages.", failed=True)
        state, narrowing = self._supervisor.journal.state.actors[path], capability.narrowing
        policy, grants = state.last_terms
        terms = state.waiting[0].grants if state.waiting else None
        no_wider = narrowing is None or (terms is not None and at_most(terms, narrowing))
        if no_wider and child.actor.steer(arguments["text"]):
            return f"{child.id} takes the message up after its current step."
        if narrowing is not None:
            grants = narrowing if grants is None else attenuate(grants, narrowing)
        turn = TurnAccepted(self._supervisor.next_turn(), arguments["text"], TurnOrigin.SEND, policy, grants)
        self._supervisor.accept(child, turn)
        return f"{child.id} starts a turn with the message."

    async def stop_child(self, capability: Capability, _: ToolCall, arguments: Mapping[str, Any]) -> Any:
        """Stop a child and all below it."""
        path = self._path(capability, arguments)
        if path is None:
            return self._unknown(capability, arguments)
        child = self._supervisor.members.get(path)
        if child is None:
            return f"{arguments['child']} had ended already."
        await self._supervisor.stops.tree(child, "stopped by its parent")
        return f"{arguments['child']} was stopped, with everything below it."

    async def collect_child(self, capability: Capability, _: ToolCall, arguments: Mapping[str, Any]) -> Any:
        """Wait for a child's outcome and take it."""
        path = self._path(capability, arguments)
        if path is None:
            return self._unknown(capability, arguments)
        state = self._supervisor.journal.state
        ready = next(
            (
                o.turn
                for o in state.owed(capability.member.path)
                if o.child == path and o.turn not in self._outcomes.claimed
            ),
            "",
        )
        waiting = state.actors[path].waiting
        if not ready and not waiting:
            return Delivered(
                f"{arguments['child']} has nothing to collect: its result was delivered or dropped.", failed=True
            )
        return await self._outcome(capability, path, ready or waiting[0].turn, stop=False)

    def _path(self, capability: Capability, arguments: Mapping[str, Any]) -> str | None:
        path = f"{capability.member.path}/{arguments['child']}"
        return path if path in self._supervisor.journal.state.children.get(capability.member.path, ()) else None

    def _unknown(self, capability: Capability, arguments: Mapping[str, Any]) -> Delivered:
        paths = self._supervisor.journal.state.children.get(capability.member.path, [])
        names = listed(path.rpartition("/")[2] for path in reversed(paths))
        return Delivered(f"You have no child {clip(arguments['child'], MAX_NAME)!r}. Yours: {names}.", failed=True)

    def _describe(self, path: str) -> dict[str, Any]:
        state = self._supervisor.journal.state
        actor = state.actors[path]
        outcome = state.outcomes.get(actor.task)
        status = ChildStatus.RUNNING if outcome is None else outcome.status
        member = self._supervisor.members.get(path)
        return {
            "child": path.rpartition("/")[2],
            "agent": actor.spawned.agent,
            "status": status.value,
            "steps": 0 if member is None else member.actor.state.steps,
            "delivered": outcome is not None and bool(outcome.discharged),
        }
