"""What a journal says, pure: ``fold`` applies every entry, in order, to an empty `SessionState`.

Rules:

- The state after n entries is the state the live session had after appending them; a test holds every prefix to it.
- Loop states are folded through the same ``advance`` that moves a live actor. A live session leaves that part out
  (``loops=False``), because its actors hold their own loop states.
- An intent without an outcome is *in doubt*; one whose outcome is ``unknown`` is *unresolved* until it is settled.
- A child turn's outcome is owed to its parent until exactly one record discharges or drops it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from actors.loop import Phase, advance
from actors.messages import (
    CallFinished,
    EndTurn,
    ModelFailed,
    ModelReplied,
    Outcome,
    Steered,
    TurnOpened,
    TurnOrigin,
    TurnStopped,
    Usage,
)
from orchestrator.journal.consent import ApprovalAnswered, ApprovalAsked, ApprovalLapsed, RuleMade, StateMoved
from orchestrator.journal.records import (
    ActorExited,
    ActorRestarted,
    ActorSpawned,
    CallIntended,
    EffectSettled,
    LoanEnded,
    LoanMade,
    OfferMade,
    OutcomeDropped,
    OutcomeRecorded,
    SessionOpened,
    SessionParked,
    SessionResumed,
    TurnAccepted,
    TurnEnded,
    TurnRejected,
)
from orchestrator.journal.source import SOURCE_HANDLERS
from orchestrator.journal.state import ActorState, ApprovalState, OwedOutcome, SessionState
from orchestrator.journal.worked import WORK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from orchestrator.journal.records import Entry

__all__ = ["apply", "fold"]

LOOP_FACTS = (TurnOpened, ModelReplied, ModelFailed, CallFinished, Steered, TurnStopped)


def apply(state: SessionState, entry: Entry, *, loops: bool = True) -> None:
    """Take one entry in; with ``loops=False`` the loop states are left out."""
    state.seq = entry.seq
    record = entry.record
    handler = HANDLERS.get(type(record))
    if handler is not None:
        handler(state, entry.actor, record)
    if loops and isinstance(record, LOOP_FACTS):
        _advance(state, entry, record)


def _advance(state: SessionState, entry: Entry, fact: Any) -> None:
    actor = state.actors.get(entry.actor)
    if actor is None:
        return
    actor.last_fact = entry.seq
    actor.loop, effects = advance(actor.loop, fact)
    for effect in effects:
        if isinstance(effect, EndTurn):
            actor.ended = effect


def fold(entries: Iterable[Entry]) -> SessionState:
    """Return the state that *entries* add up to."""
    state = SessionState()
    for entry in entries:
        apply(state, entry)
    return state


def _opened(state: SessionState, _: str, record: SessionOpened) -> None:
    state.opened = record


def _parked(state: SessionState, _: str, __: SessionParked) -> None:
    state.parked = True


def _resumed(state: SessionState, _: str, __: SessionResumed) -> None:
    """Mark the place of each open turn; one that crashed twice at the same place is stuck."""
    for actor in state.actors.values():
        if actor.loop.phase is not Phase.IDLE and not actor.exited:
            mark = max(a.last_fact for a in state.actors.values() if a is actor or a.path.startswith(f"{actor.path}/"))
            calm = state.parked or state.asks(actor.path)
            actor.stuck = not calm and actor.crash_mark == mark
            actor.crash_mark = 0 if calm else mark
    state.parked = False


def _spawned(state: SessionState, path: str, record: ActorSpawned) -> None:
    actor = state.actors[path] = ActorState(path, record)
    parent = state.actors.get(record.parent)
    cause = parent.accepted(record.cause) if parent is not None else None
    actor.terms = None if cause is None else (cause.policy, cause.grants)
    state.spawned = max(state.spawned, record.number)
    if record.parent:
        state.children.setdefault(record.parent, []).append(path)
    if record.call:
        state.by_call[f"{record.parent}\0{record.call}"] = path


def _restarted(state: SessionState, path: str, record: ActorRestarted) -> None:
    state.actors[path].incarnation = record.incarnation


def _exited(state: SessionState, path: str, record: ActorExited) -> None:
    state.actors[path].exited = record.reason


def _accepted(state: SessionState, path: str, record: TurnAccepted) -> None:
    state.turns += 1
    actor = state.actors[path]
    actor.waiting.append(record)
    actor.last_terms = (record.policy, record.grants)
    if record.origin is TurnOrigin.DELEGATE:
        actor.task = record.turn
    for turn in record.notices:
        _discharge(state, turn, "notice")


def _rejected(state: SessionState, _: str, __: TurnRejected) -> None:
    state.turns += 1


def _offered(state: SessionState, path: str, record: OfferMade) -> None:
    state.actors[path].offered = record


def _ended(state: SessionState, path: str, record: TurnEnded) -> None:
    actor = state.actors[path]
    accepted = actor.accepted(record.turn)
    if accepted is not None and accepted.origin is TurnOrigin.STEP:
        state.step_ends[record.turn] = record
    actor.waiting = [waiting for waiting in actor.waiting if waiting.turn != record.turn]
    actor.ended = None
    actor.offered = None
    actor.stuck = False
    for key, intent in tuple(state.in_doubt.items()):
        if key[0] == path and intent.turn == record.turn:
            state.unresolved[intent.effect_key] = state.in_doubt.pop(key)


def _asked(state: SessionState, path: str, record: ApprovalAsked) -> None:
    state.approvals[record.approval] = ApprovalState(path, record)
    state.asked_for[path, record.call] = record.approval


def _approval_answered(state: SessionState, _: str, record: ApprovalAnswered) -> None:
    approval = state.approvals.get(record.approval)
    if approval is not None and approval.answered is None:
        approval.answered = record


def _lapsed(state: SessionState, _: str, record: ApprovalLapsed) -> None:
    approval = state.approvals.get(record.approval)
    if approval is not None and approval.answered is None:
        approval.lapsed = True


def _rule(state: SessionState, _: str, record: RuleMade) -> None:
    state.rules.append(record)


def _moved(state: SessionState, _: str, record: StateMoved) -> None:
    state.workflow = record.state
    state.moves += 1


def _intended(state: SessionState, path: str, record: CallIntended) -> None:
    state.use(path, record.call)
    state.in_doubt[path, record.call] = record


def _call_finished(state: SessionState, path: str, record: CallFinished) -> None:
    state.use(path, record.result.call_id)
    intent = state.in_doubt.pop((path, record.result.call_id), None)
    if intent is not None and record.result.outcome is Outcome.UNKNOWN:
        state.unresolved[intent.effect_key] = intent
    if record.result.outcome is not Outcome.DENIED:
        state.actors[path].spent += Usage(calls=1)
    for turn in record.discharged:
        _discharge(state, turn, "result")


def _replied(state: SessionState, path: str, record: ModelReplied) -> None:
    state.actors[path].spent += record.reply.usage


def _settled(state: SessionState, _: str, record: EffectSettled) -> None:
    state.unresolved.pop(record.effect_key, None)


def _steered(state: SessionState, _: str, record: Steered) -> None:
    for turn in record.notices:
        _discharge(state, turn, "notice")


def _outcome(state: SessionState, parent: str, record: OutcomeRecorded) -> None:
    owed = state.outcomes[record.turn] = OwedOutcome(parent, record)
    state.owing.setdefault(parent, {})[record.turn] = owed


def _dropped(state: SessionState, _: str, record: OutcomeDropped) -> None:
    _discharge(state, record.turn, record.why.value)


def _discharge(state: SessionState, turn: str, how: str) -> None:
    owed = state.outcomes.get(turn)
    if owed is not None and not owed.discharged:
        owed.discharged = how
        del state.owing[owed.parent][turn]


def _loan(state: SessionState, path: str, record: LoanMade) -> None:
    state.loans[record.loan] = record
    state.borrowed.setdefault(path, []).append(record.loan)


def _loan_ended(state: SessionState, path: str, record: LoanEnded) -> None:
    loan = state.loans.pop(record.loan, None)
    if loan is not None:
        state.borrowed[path].remove(record.loan)
        state.ended_loans.setdefault(path, []).append(loan)


HANDLERS: dict[type, Callable[[SessionState, str, Any], None]] = {
    SessionOpened: _opened,
    SessionParked: _parked,
    SessionResumed: _resumed,
    ActorSpawned: _spawned,
    ActorRestarted: _restarted,
    ActorExited: _exited,
    TurnAccepted: _accepted,
    TurnRejected: _rejected,
    OfferMade: _offered,
    TurnEnded: _ended,
    CallIntended: _intended,
    CallFinished: _call_finished,
    ModelReplied: _replied,
    EffectSettled: _settled,
    ApprovalAsked: _asked,
    ApprovalAnswered: _approval_answered,
    ApprovalLapsed: _lapsed,
    RuleMade: _rule,
    StateMoved: _moved,
    Steered: _steered,
    OutcomeRecorded: _outcome,
    OutcomeDropped: _dropped,
    LoanMade: _loan,
    LoanEnded: _loan_ended,
    **SOURCE_HANDLERS,
    **WORK,
}
