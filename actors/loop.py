"""The loop of one actor, pure: ``advance(state, fact) -> (state, effects)``.

Rules:

- Facts arrive in one total order; the same facts give the same state, live or folded from a journal.
- A fact for another turn, or one the phase has no transition for, changes nothing.
- Every call is answered exactly once, directly after its reply, in call order; ids are unique in the whole history.
- A reply cut by the output limit runs nothing. At the step limit the model is asked once more, without tools.
- The same calls with the same results, again and again: the model is told once, then the turn ends.
- A final answer that is judged not to be as asked is corrected once a turn, where the limits allow it; the next one
  fails the turn. The judgement comes with the fact, so the loop knows no schema and a fold needs none.

Phases and what moves them (the table `TRANSITIONS`):

    idle  --TurnOpened-->  model
    model --ModelReplied-> tools | model | idle        model --ModelFailed--> idle
    tools --CallFinished-> tools | model | idle
    any but idle: Steered stays, TurnStopped --> idle
"""

from __future__ import annotations

import enum
from bisect import bisect_left
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from actors.answers import correction
from actors.ids import with_unique_ids
from actors.messages import (
    AskModel,
    CallFinished,
    EndTurn,
    Item,
    Limits,
    ModelFailed,
    ModelReplied,
    Note,
    Outcome,
    ReplyStop,
    Results,
    RunCalls,
    Said,
    Steered,
    StopReason,
    ToolCall,
    ToolResult,
    TurnOpened,
    TurnStopped,
    Usage,
)
from actors.repeats import Seen, count_pairs
from actors.spending import spent
from actors.text import clip

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.messages import Effect, Fact

__all__ = ["IDLE", "LoopState", "Phase", "advance", "failures", "unanswered"]

MAX_NAME = 128
TRUNCATED = "The output limit cut this reply, so the call was not run. Send less in one reply."
CUT_ANSWER = "the output limit cut the answer"
OVER_CALLS = "The turn's limit of tool calls is reached, so the call was not run. Answer with what you have."
NO_TOOLS = "No tools are left in this turn, so the call was not run."
REPEATED = "You made the same call with the same result {count} times. Do something else, or answer with what you have."


class Phase(enum.StrEnum):
    """Where a turn stands: no turn, waiting for the model, or waiting for tools."""

    IDLE = "idle"
    MODEL = "model"
    TOOLS = "tools"


class LoopState(msgspec.Struct, frozen=True):
    """Everything the loop knows. ``history`` spans all turns; the rest is of the turn in flight.

    ``pending`` are the calls of the last reply, ``places`` their ids in order, ``answered`` a bit for each place that
    has its answer, ``results`` the answers so far, ``seen`` the recent call and result pairs with their counts,
    ``wrong`` the answer that was corrected in this turn, ``ids`` every call id of the history, ``began`` where in the
    history the last turn begins.
    """

    phase: Phase = Phase.IDLE
    turn: str = ""
    history: tuple[Item, ...] = ()
    limits: Limits = Limits()
    usage: Usage = Usage()
    steps: int = 0
    pending: tuple[ToolCall, ...] = ()
    places: tuple[str, ...] = ()
    answered: int = 0
    results: tuple[ToolResult, ...] = ()
    steered: tuple[str, ...] = ()
    seen: Seen = ()
    warned: bool = False
    final: bool = False
    wrong: str | None = None
    ids: frozenset[str] = frozenset()
    began: int = 0


IDLE = LoopState()
Step = tuple[LoopState, tuple["Effect", ...]]


def advance(state: LoopState, fact: Fact) -> Step:
    """Return the next state and what to do now. Never raises for any fact in any phase."""
    handler = TRANSITIONS.get((state.phase, type(fact)))
    if handler is None or (state.phase is not Phase.IDLE and fact.turn != state.turn):
        return state, ()
    return handler(state, fact)


def unanswered(state: LoopState) -> tuple[ToolCall, ...]:
    """Return the calls of the last reply that have no result yet."""
    answered = {result.call_id for result in state.results}
    return tuple(call for call in state.pending if call.id not in answered)


def failures(state: LoopState) -> tuple[str, ...]:
    """Return a sentence for each call of the last turn that was denied or failed, in order."""
    return tuple(
        f"{clip(result.name, MAX_NAME)}: {result.denial.text if result.denial else result.text}"
        for item in state.history[state.began :]
        if isinstance(item, Results)
        for result in item.results
        if result.error
    )


def _opened(state: LoopState, fact: TurnOpened) -> Step:
    opened = LoopState(
        phase=Phase.MODEL,
        turn=fact.turn,
        history=(*state.history, Said(fact.text)),
        limits=fact.limits,
        ids=state.ids,
        began=len(state.history),
    )
    return opened, (AskModel(),)


def _replied(state: LoopState, fact: ModelReplied) -> Step:
    reply = fact.reply
    history, usage, steps = state.history, state.usage + reply.usage, state.steps + 1
    if not reply.calls:
        return _answered(replace(state, history=(*history, reply), usage=usage, steps=steps), fact)
    reply, ids = with_unique_ids(reply, state.ids, f"{state.turn}.{steps}")
    calls = reply.calls
    over = spent(state.limits, usage)
    state = replace(
        state,
        phase=Phase.TOOLS,
        history=(*history, reply),
        usage=usage,
        steps=steps,
        pending=calls,
        places=tuple(sorted(call.id for call in calls)),
        answered=0,
        ids=ids,
    )
    if state.final or over is not None:
        return _end(_closed(_refuse(state, calls, NO_TOOLS)), over or StopReason.MAX_STEPS, reply.text)
    if reply.stop is ReplyStop.LENGTH:
        state, effects = _after_results(_refuse(state, calls, TRUNCATED))
        return state, (Note("output_truncated", f"{len(calls)} calls not run"), *effects)
    return _start(state)


def _start(state: LoopState) -> Step:
    """Run the pending calls, as many as the turn's limit allows."""
    run, usage = state.pending, state.usage
    if state.limits.calls is not None and usage.calls + len(run) > state.limits.calls:
        run = run[: max(0, state.limits.calls - usage.calls)]
        state = _refuse(state, state.pending[len(run) :], OVER_CALLS)
        if not run:
            return _after_results(state)
    return replace(state, usage=replace(usage, calls=usage.calls + len(run))), (RunCalls(run),)


def _answered(state: LoopState, fact: ModelReplied) -> Step:
    """The model gave a text and no calls."""
    text, cut, detail = fact.answer or fact.reply.text, fact.reply.stop is ReplyStop.LENGTH, fact.fault
    if cut:
        detail = f"{CUT_ANSWER}; {detail}" if detail else CUT_ANSWER
    if state.final:
        return _end(state, StopReason.MAX_STEPS, text, detail)
    over: StopReason | None = StopReason.COMPLETED
    wrong = fact.fault != "" and not state.steered
    if wrong and (state.wrong is not None or fact.reply.stop is ReplyStop.REFUSED):
        over = StopReason.FAILED
    elif wrong or state.steered:
        over = spent(state.limits, state.usage)
    if over is not None:
        state, effects = _end(state, over, text, detail)
    else:
        state, effects = _correct(state, text, detail) if wrong else _ask(state)
    return state, (Note("output_truncated", "the answer"), *effects) if cut else effects


def _correct(state: LoopState, text: str, fault: str) -> Step:
    """The final text is not as asked: say so and go on."""
    state, effects = _ask(replace(state, wrong=text, history=(*state.history, Said(correction(fault)))))
    return state, (Note("wrong_answer", f"the answer was sent back: {fault}"), *effects)


def _failed(state: LoopState, fact: ModelFailed) -> Step:
    return _end(state, StopReason.FAILED, "", fact.error)


def _finished(state: LoopState, fact: CallFinished) -> Step:
    result = fact.result
    place = bisect_left(state.places, result.call_id)
    if place == len(state.places) or state.places[place] != result.call_id or state.answered >> place & 1:
        return state, ()
    state = replace(state, results=(*state.results, result), answered=state.answered | 1 << place)
    return (state, ()) if len(state.results) < len(state.pending) else _after_results(state)


def _after_results(state: LoopState) -> Step:
    """All calls are answered: put the results into the history and go on, or stop a loop that goes round."""
    seen, most = count_pairs(state.seen, state.pending, state.results)
    state = _closed(state, seen)
    if most < state.limits.repeats:
        return _ask(state)
    if state.warned:
        return _end(state, StopReason.REPEATED_CALLS, "", f"the same call gave the same result {most} times")
    text = REPEATED.format(count=most)
    state, effects = _ask(replace(state, warned=True, history=(*state.history, Said(text))))
    return state, (Note("repeated_calls", text), *effects)


def _ask(state: LoopState) -> Step:
    """Take up what was sent meanwhile and ask the model, for the last time when the step limit is reached."""
    if state.steered:
        state = replace(state, history=(*state.history, *map(Said, state.steered)), steered=())
    final = state.limits.steps is not None and state.steps >= state.limits.steps
    return replace(state, phase=Phase.MODEL, final=final), (AskModel(final=final),)


def _steered(state: LoopState, fact: Steered) -> Step:
    return replace(state, steered=(*state.steered, fact.text)), ()


def _stopped(state: LoopState, fact: TurnStopped) -> Step:
    text = f"The call was stopped ({fact.reason.value}) before it ended."
    state = _refuse(state, unanswered(state), text, Outcome.CANCELLED)
    return _end(_closed(state) if state.pending else state, fact.reason, "", fact.detail)


def _refuse(state: LoopState, calls: tuple[ToolCall, ...], text: str, outcome: Outcome = Outcome.ERROR) -> LoopState:
    """Answer *calls* without running them."""
    answered = state.answered
    for call in calls:
        answered |= 1 << bisect_left(state.places, call.id)
    refused = tuple(ToolResult(call.id, call.name, text, outcome) for call in calls)
    return replace(state, results=(*state.results, *refused), answered=answered)


def _closed(state: LoopState, seen: Seen | None = None) -> LoopState:
    """Put the results into the history in call order; nothing is pending afterwards."""
    ordered = state.results
    if len(ordered) > 1:
        by_id = {result.call_id: result for result in ordered}
        ordered = tuple(by_id[call.id] for call in state.pending)
    history = (*state.history, Results(ordered))
    return replace(
        state, history=history, pending=(), places=(), answered=0, results=(), seen=state.seen if seen is None else seen
    )


def _end(state: LoopState, reason: StopReason, output: str, detail: str = "") -> Step:
    """End the turn. What was sent and not taken up stays in the history, so nothing said is lost.

    A turn that ends in its correction keeps the answer that was to be corrected.
    """
    history = (*state.history, *map(Said, state.steered)) if state.steered else state.history
    ended = LoopState(turn=state.turn, history=history, ids=state.ids, began=state.began)
    return ended, (EndTurn(state.turn, reason, output or state.wrong or "", state.usage, detail),)


TRANSITIONS: dict[tuple[Phase, type], Callable[[LoopState, Any], Step]] = {
    (Phase.IDLE, TurnOpened): _opened,
    (Phase.MODEL, ModelReplied): _replied,
    (Phase.MODEL, ModelFailed): _failed,
    (Phase.MODEL, Steered): _steered,
    (Phase.MODEL, TurnStopped): _stopped,
    (Phase.TOOLS, CallFinished): _finished,
    (Phase.TOOLS, Steered): _steered,
    (Phase.TOOLS, TurnStopped): _stopped,
}
