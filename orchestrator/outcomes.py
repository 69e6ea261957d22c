"""Outcomes: how each child turn ended, recorded once and delivered once.

Rules:

- A foreground child's outcome is the result of the call that waits for it; a collected one, of the collecting call.
- What nobody waits for is a notice. Notices that wait are joined into one turn, under the focus and authority of the
  turns that started the children: never wider than any of them.
- An idle parent is woken if its definition says so, a busy one is steered if its definition says so; else they wait,
  for the next turn whoever opens it. A notice of a turn that itself came of a notice wakes nobody.
- After an explicit stop an outcome is delivered to nobody; when its parent is gone it is a dead letter.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from actors.errors import MailboxFull
from actors.grants import attenuate
from actors.messages import StopReason, TurnOrigin
from orchestrator.focus import join
from orchestrator.journal.records import ChildStatus, Drop, OutcomeDropped, OutcomeRecorded, TurnAccepted

if TYPE_CHECKING:
    from actors.grants import Grants
    from actors.messages import EndTurn
    from orchestrator.focus import Policy
    from orchestrator.journal.state import OwedOutcome
    from orchestrator.member import Member
    from orchestrator.supervisor import Supervisor

__all__ = ["Outcomes"]

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


class Outcomes:
    """The outcomes of one session. ``claimed`` are the child turns that a call in flight is about to return."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self.claimed: set[str] = set()
        supervisor.on_ended = self.ended
        supervisor.on_idle = self.idle

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
        if status is ChildStatus.CANCELLED and end.turn not in self.claimed:
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
            self._supervisor.woken(parent.path)
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
        return tuple(o for o in owed if o.turn not in self.claimed and self._nobody_waits(o))

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
