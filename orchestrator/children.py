"""Children: started by the ``delegate`` tool, watched through outcomes, stopped with everything below them.

Rules:

- A child is on record before anyone hears its id. The same call never starts two: it finds its child again.
- Every child turn has one outcome, delivered once: as the foreground call's result, to ``collect_child``, as a notice
  to its own parent, or to nobody (after an explicit stop, or when the parent is gone).
- Notices that wait are joined into one turn, under the focus and authority of the turns that started the children.
- An idle parent is woken if its definition says so, a busy one is steered if its definition says so; else they wait.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from actors.errors import MailboxFull
from actors.grants import at_most, attenuate
from actors.messages import StopReason, TurnOrigin
from orchestrator.context import Delivered
from orchestrator.focus import join
from orchestrator.journal.records import ChildStatus, Drop, OutcomeDropped, OutcomeRecorded, TurnAccepted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from actors.grants import Grants
    from actors.messages import EndTurn, ToolCall
    from orchestrator.capability import Capability
    from orchestrator.focus import Policy
    from orchestrator.journal.state import OwedOutcome
    from orchestrator.member import Member
    from orchestrator.registry import Registry
    from orchestrator.supervisor import Supervisor

__all__ = ["Children"]

MAX_OUTCOME = 16_384
STATUS = {
    StopReason.COMPLETED: ChildStatus.COMPLETED,
    StopReason.CANCELLED: ChildStatus.CANCELLED,
    StopReason.TIMED_OUT: ChildStatus.TIMED_OUT,
    StopReason.MAX_STEPS: ChildStatus.BUDGET_EXHAUSTED,
    StopReason.MAX_TOKENS: ChildStatus.BUDGET_EXHAUSTED,
    StopReason.MAX_MONEY: ChildStatus.BUDGET_EXHAUSTED,
}
REPORTED = frozenset({TurnOrigin.DELEGATE, TurnOrigin.NOTICE, TurnOrigin.SEND})


class Children:
    """The children of one session: the executors of the delegation tools, and the delivery of outcomes."""

    def __init__(self, supervisor: Supervisor, registry: Registry) -> None:
        self._supervisor = supervisor
        self._registry = registry
        self._claimed: set[str] = set()
        supervisor.on_ended = self.ended
        supervisor.on_idle = self.idle
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

    # Delegation

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
                names = ", ".join(d.address for d in member.resolved.definition.children)
                return Delivered(
                    f"There is no agent {arguments['child']!r} to start. You may start: {names}.", failed=True
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
        grants = member.base if capability.narrowing is None else attenuate(member.base, capability.narrowing)
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

    async def _outcome(self, capability: Capability, path: str, turn: str, *, stop: bool) -> Delivered:
        """Wait for the outcome of *turn* and take it; nobody else gets it. With *stop*, cancelling stops the child."""
        supervisor = self._supervisor
        state = supervisor.journal.state
        self._claimed.add(turn)
        try:
            if turn not in state.outcomes:
                with supervisor.waits.hold(capability.member.path, path):
                    await supervisor.wait(supervisor.members[path], turn)
        except asyncio.CancelledError:
            self._claimed.discard(turn)
            child = supervisor.members.get(path)
            if stop and capability.stopping and child is not None:
                self._stop_soon(child)
            elif not supervisor.closing:
                self.idle(capability.member)
            raise
        self._claimed.discard(turn)
        owed = state.outcomes.get(turn)
        if owed is None or owed.discharged:
            return Delivered(f"The result of {path.rpartition('/')[2]} was delivered before.", failed=True)
        return Delivered(owed.text, (turn,), failed=owed.status is not ChildStatus.COMPLETED)

    def _stop_soon(self, child: Member) -> None:
        """Mark and cancel *child* and all below it now; they end by themselves."""
        reason = "the turn that waited for it was stopped"
        members = child.subtree()
        for member in members:
            member.explicit_stop = member.explicit_stop or reason
        for member in reversed(members):
            for accepted in tuple(self._supervisor.journal.state.actors[member.path].waiting):
                self._supervisor.stops.turn(member, accepted.turn, StopReason.CANCELLED, reason)

    # Asking and steering

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
        self._supervisor.accept(child, self._turn(arguments["text"], TurnOrigin.SEND, policy, grants))
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
            (o.turn for o in state.owed(capability.member.path) if o.child == path and o.turn not in self._claimed), ""
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
        names = ", ".join(path.rpartition("/")[2] for path in paths[-20:]) or "none"
        return Delivered(f"You have no child {arguments['child']!r}. Yours: {names}.", failed=True)

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

    # Outcomes

    def ended(self, member: Member, accepted: TurnAccepted, end: EndTurn) -> None:
        """Record the outcome of a child's turn and see to its delivery."""
        parent = member.parent
        if parent is None or accepted.origin not in REPORTED:
            return
        journal = self._supervisor.journal
        status = STATUS.get(end.reason, ChildStatus.FAILED)
        text = _bounded(end.output if status is ChildStatus.COMPLETED else _account(member.id, status, end))
        wakes = accepted.origin is not TurnOrigin.NOTICE
        if end.turn not in journal.state.outcomes:
            journal.append(parent.path, OutcomeRecorded(member.path, end.turn, status, text, wakes))
        if journal.state.outcomes[end.turn].discharged:
            return
        if status is ChildStatus.CANCELLED and end.turn not in self._claimed:
            journal.append(parent.path, OutcomeDropped(end.turn, Drop.SUPPRESSED))
        elif parent.gone:
            journal.append(parent.path, OutcomeDropped(end.turn, Drop.DEAD_LETTER))

    def idle(self, member: Member) -> None:
        """A turn of *member* is over: deliver what it is owed, let it go if it is done, and see to its parent."""
        if self._supervisor.closing or member.gone:
            return
        self._deliver(member)
        parent = member.parent
        done = not member.keep and not self._supervisor.journal.state.actors[member.path].waiting
        if parent is not None and done and not member.alive_children():
            self._supervisor.exit(member, member.explicit_stop or "its task is done")
        if parent is not None:
            if self._supervisor.journal.state.actors[parent.path].waiting:
                self._deliver(parent)
            else:
                self.idle(parent)

    def resume(self) -> None:
        """After a resume: deliver what was owed and not yet delivered."""
        for member in tuple(self._supervisor.members.values()):
            if not self._supervisor.journal.state.actors[member.path].waiting:
                self.idle(member)

    def with_notices(self, member: Member, text: str) -> tuple[str, tuple[str, ...]]:
        """Return *text* with what *member* is owed in front of it, and the child turns which that delivers."""
        owed = self._undelivered(member)
        return (f"{notice_text(owed)}\n\n{text}", tuple(o.turn for o in owed)) if owed else (text, ())

    def _undelivered(self, member: Member) -> tuple[OwedOutcome, ...]:
        """Return the outcomes of background children that nobody else is about to take."""
        state = self._supervisor.journal.state
        owed = state.owed(member.path)
        return tuple(o for o in owed if o.turn not in self._claimed and self._nobody_waits(o))

    def _nobody_waits(self, owed: OwedOutcome) -> bool:
        """Tell whether no call will return the outcome: a background child's, or one whose turn is over."""
        actors = self._supervisor.journal.state.actors
        spawned = actors[owed.child].spawned
        return spawned.background or actors[owed.parent].accepted(spawned.cause) is None

    def _deliver(self, member: Member) -> None:
        """Wake or steer *member* with the outcomes it is owed, or leave them where they are."""
        state, definition = self._supervisor.journal.state, member.resolved.definition
        busy = bool(state.actors[member.path].waiting)
        if not (definition.steer if busy else definition.wake) or member.explicit_stop or self._supervisor.closing:
            return
        owed = self._undelivered(member)
        if not any(outcome.wakes for outcome in owed):
            return
        turns = tuple(outcome.turn for outcome in owed)
        if busy:
            with suppress(MailboxFull):
                member.actor.steer(notice_text(owed), turns)
        else:
            policy, grants = self._joined(owed)
            turn = self._turn(notice_text(owed), TurnOrigin.NOTICE, policy, grants, turns)
            self._supervisor.accept(member, turn)

    def _turn(
        self, text: str, origin: TurnOrigin, policy: Policy, grants: Grants | None, notices: tuple[str, ...] = ()
    ) -> TurnAccepted:
        return TurnAccepted(self._supervisor.next_turn(), text, origin, policy, grants, notices=notices)

    def _joined(self, owed: tuple[OwedOutcome, ...]) -> tuple[Policy, Grants | None]:
        """Return the terms of a turn born of *owed*: no wider than any turn that started one of the children."""
        state = self._supervisor.journal.state
        terms = [state.actors[outcome.child].terms or state.actors[outcome.parent].last_terms for outcome in owed]
        policy, grants = terms[0]
        for other_policy, other_grants in terms[1:]:
            policy = join(policy, other_policy)
            if other_grants is not None:
                grants = other_grants if grants is None else attenuate(grants, other_grants)
        return policy, grants


def notice_text(owed: tuple[OwedOutcome, ...]) -> str:
    """Return what a parent reads of its children's outcomes."""
    parts = (f"[{o.child.rpartition('/')[2]} {o.status.value}, turn {o.turn}]\n{o.text}" for o in owed)
    return "Notice from your children:\n" + "\n\n".join(parts)


def _account(name: str, status: ChildStatus, end: EndTurn) -> str:
    text = f"{name} ended as {status.value}: {end.detail or end.reason.value}"
    return f"{text}\nIts last words: {end.output}" if end.output else text


def _bounded(text: str) -> str:
    if len(text) <= MAX_OUTCOME:
        return text
    return f"{text[:MAX_OUTCOME]}\n… shortened: {len(text)} characters in all"
