"""One conversation with one agent and everything it starts. Five methods: run, send, snapshot, events, close."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from actors.errors import ActorStopped
from actors.messages import StopReason, TurnOrigin
from actors.text import clean
from orchestrator.approver import Answer
from orchestrator.errors import SessionBusy, SessionClosed, SessionIdle, TransitionRefused, TurnRefused
from orchestrator.journal.consent import StateMoved
from orchestrator.journal.records import SessionParked, TurnAccepted, TurnRejected
from orchestrator.turn import DeliveryResult, Result, Stop, Transition, Turn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from orchestrator.events import Event, Events
    from orchestrator.member import Member
    from orchestrator.outcomes import Outcomes
    from orchestrator.supervisor import Supervisor

__all__ = ["Session", "SessionHandle"]


TREE = "the session's tree was stopped"


class SessionHandle(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What resumes a session anywhere: which one, in which store, made with which definition. Opaque to its holder."""

    session: str
    store: str
    fingerprint: str
    version: int = 1

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


class Session:
    """A live session. Made by ``Agent.start``; leaving its ``async with`` block closes it."""

    def __init__(
        self, handle: SessionHandle, supervisor: Supervisor, outcomes: Outcomes, root: Member, events: Events
    ) -> None:
        self._handle = handle
        self._supervisor = supervisor
        self._outcomes = outcomes
        self._root = root
        self._events = events
        self._running = False
        self._closed: asyncio.Task[None] | None = None

    async def run(self, turn: Turn | str | None = None) -> Result:
        """Run one turn of the root agent and return its result.

        ``None`` waits for the turn in flight, after a resume or an answer; when none is, it returns the result of the
        last turn that ended with nobody waiting for it.

        One caller at a time: another one gets `SessionBusy` at once, nothing taken. Behind a turn that the session
        started itself it queues. Raises `TurnRefused` for a policy that names tools the agent does not have,
        `SessionIdle` when there is nothing to wait for, `SessionClosed`, and `StoreError` when the journal fails. On
        cancel the turn is stopped; it ends as ``cancelled``.
        """
        self._check_open()
        if self._running:
            raise SessionBusy(self._handle.session)
        if turn is None and self._supervisor.results.unheard is not None and not self._busy():
            result, self._supervisor.results.unheard = self._supervisor.results.unheard, None
            return result
        self._running = True
        try:
            turn_id = self._in_flight() if turn is None else self._accept(_as_turn(turn), TurnOrigin.RUN)
            waiting = self._supervisor.results.wait(self._root, turn_id)
            try:
                return await waiting
            except asyncio.CancelledError:
                if not self._supervisor.closing:
                    self._supervisor.stops.turn(self._root, turn_id, StopReason.CANCELLED, "the caller gave up waiting")
                raise
        finally:
            self._running = False

    async def send(self, message: str | Turn | Stop | Answer | Transition) -> DeliveryResult:
        """Deliver a message and say what became of it; never waits for a run.

        A text steers the turn in flight, or starts a turn under the terms of the last one; a `Turn` always opens one.
        `Stop` goes by the control lane: ``turn`` ends the foreground turn and leaves background children alone,
        ``tree`` ends all. An `Answer` answers an approval, a `Transition` moves the workflow. Raises `MailboxFull`,
        `TurnRefused`, `AnswerRefused`, `TransitionRefused`, `SessionClosed`.
        """
        self._check_open()
        root, state = self._root, self._supervisor.journal.state
        if isinstance(message, Stop):
            return await self._stop(message)
        if isinstance(message, Answer):
            self._supervisor.approvals.answer(message)
            await self._supervisor.journal.sync()
            return DeliveryResult("answered", state.approvals[message.approval].asked.turn)
        if isinstance(message, Transition):
            self._move(message)
            await self._supervisor.journal.sync()
            return DeliveryResult("moved", "")
        waiting = state.actors[root.path].waiting
        if isinstance(message, str):
            message = clean(message)
            if root.actor.steer(message):
                return DeliveryResult("steered", root.actor.state.turn)
            policy, grants = state.actors[root.path].last_terms
            message = Turn(message, policy, grants)
        how = "queued" if waiting else "started"
        turn = self._accept(message, TurnOrigin.SEND)
        await self._supervisor.journal.sync()
        return DeliveryResult(how, turn)

    def snapshot(self) -> SessionHandle:
        """Return the handle that resumes this session; the journal holds everything else."""
        return self._handle

    def events(self, after: int | None = None) -> AsyncIterator[Event]:
        """Return the session's events: every journal entry after the number *after*, and from now on as they come.

        ``None`` begins with the present. Pieces of model text come as `Delta`, what a slow reader missed as `Gap`. The
        stream ends when the session is closed.
        """
        journal = self._supervisor.journal
        return self._events.subscribe(after, journal.seq, journal.read)

    async def close(self) -> None:
        """Stop everything and give the session back to its store; what was open goes on when it is resumed.

        Closing twice is fine; both return when it is done. On cancel the closing goes on.
        """
        if self._closed is None:
            self._closed = asyncio.get_running_loop().create_task(self._close(), name=f"close {self._handle.session}")
        await asyncio.shield(self._closed)

    async def _close(self) -> None:
        supervisor, journal = self._supervisor, self._supervisor.journal
        supervisor.closing = True
        open_turns = [accepted.turn for actor in journal.state.actors.values() for accepted in actor.waiting]
        await supervisor.stops.all()
        if supervisor.registry.sources is not None:
            await supervisor.registry.sources.close()
        try:
            journal.append("", SessionParked(tuple(open_turns)))
        finally:
            try:
                await journal.close("open" if open_turns else "closed")
            finally:
                self._events.close()

    def _check_open(self) -> None:
        if self._supervisor.closing:
            raise SessionClosed(self._handle.session)
        if self._supervisor.fault is not None:
            raise self._supervisor.fault
        leaving = self._root.gone or self._root.explicit_stop
        if leaving:
            raise ActorStopped(self._root.path, leaving)

    def _busy(self) -> bool:
        return bool(self._supervisor.journal.state.actors[self._root.path].waiting)

    def _in_flight(self) -> str:
        if not self._busy():
            raise SessionIdle(self._handle.session)
        return self._supervisor.journal.state.actors[self._root.path].waiting[0].turn

    def _accept(self, turn: Turn, origin: TurnOrigin) -> str:
        supervisor, root = self._supervisor, self._root
        unknown = sorted(turn.policy.names() - set(root.resolved.names))
        if unknown:
            turn_id = supervisor.next_turn()
            reason = f"its policy names tools that {root.resolved.definition.name} does not have: {', '.join(unknown)}"
            supervisor.journal.append(root.path, TurnRejected(turn_id, reason))
            raise TurnRefused(turn_id, reason)
        text, notices = self._outcomes.with_notices(root, clean(turn.input))
        accepted = TurnAccepted(supervisor.next_turn(), text, origin, turn.policy, turn.grants, turn.limits, notices)
        return supervisor.accept(root, accepted)

    def _move(self, message: Transition) -> None:
        chart = self._supervisor.registry.chart
        if chart is None or chart.get(message.to) is None:
            known = () if chart is None else tuple(state.name for state in chart.states)
            raise TransitionRefused(message.to, known)
        self._supervisor.journal.append("", StateMoved(message.to, message.by))

    async def _stop(self, message: Stop) -> DeliveryResult:
        supervisor, root = self._supervisor, self._root
        waiting = tuple(supervisor.journal.state.actors[root.path].waiting)
        turn = waiting[0].turn if waiting else ""
        if message.scope == "tree":
            for member in root.subtree()[1:]:
                member.explicit_stop = member.explicit_stop or TREE
        for accepted in waiting if message.scope == "tree" else waiting[:1]:
            supervisor.stops.turn(root, accepted.turn, StopReason.CANCELLED, "stopped by a message")
        if message.scope == "tree":
            await asyncio.gather(
                *(supervisor.stops.tree(child, TREE) for child in tuple((root.children or {}).values()))
            )
        return DeliveryResult("stopping", turn)


def _as_turn(turn: Turn | str) -> Turn:
    return Turn(turn) if isinstance(turn, str) else turn
