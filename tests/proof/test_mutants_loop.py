"""The loop where its stories and properties could miss a fault: exact limits, exact words, who is answered already."""

from __future__ import annotations

import pytest

from actors.loop import IDLE, MAX_NAME, LoopState, Phase, advance, failures
from actors.messages import (
    AskModel,
    CallFinished,
    EndTurn,
    Limits,
    ModelFailed,
    ModelReplied,
    ModelReply,
    Note,
    Outcome,
    ReplyStop,
    RunCalls,
    StopReason,
    ToolCall,
    ToolResult,
    TurnOpened,
)
from actors.repeats import REMEMBERED_PAIRS, count_pairs


def opened(**limits: int) -> LoopState:
    """A turn that waits for the model."""
    return advance(IDLE, TurnOpened("t1", "go", limits=Limits(**limits)))[0]


def asked(state: LoopState, *ids: str, name: str = "look") -> tuple[LoopState, tuple[object, ...]]:
    """The model calls, once for each id."""
    calls = tuple(ToolCall(call, name, f'{{"n":"{call}"}}') for call in ids)
    return advance(state, ModelReplied("t1", ModelReply("", calls, ReplyStop.TOOL_CALLS)))


def done(state: LoopState, call: str, text: str = "done") -> tuple[LoopState, tuple[object, ...]]:
    """A call has its result."""
    return advance(state, CallFinished("t1", ToolResult(call, "look", text)))


def test_an_idle_loop_knows_nothing_and_no_state_can_be_changed() -> None:
    assert (IDLE.phase, IDLE.turn, IDLE.steps, IDLE.answered, IDLE.began) == (Phase.IDLE, "", 0, 0, 0)
    assert tuple(Phase) == ("idle", "model", "tools")
    with pytest.raises(AttributeError):
        IDLE.steps = 1  # type: ignore[misc]  # that is the test


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_the_model_is_asked_as_often_as_the_step_limit_says_and_once_more_without_tools(limit: int) -> None:
    state, questions, finals = opened(steps=limit), 0, [False]
    while state.phase is not Phase.IDLE and questions < 10:
        questions += 1
        state, run = asked(state, f"c{questions}")
        if run and isinstance(run[0], RunCalls):
            state, effects = done(state, f"c{questions}", f"result {questions}")
            finals += [effect.final for effect in effects if isinstance(effect, AskModel)]
    assert finals == [False] * limit + [True]


def test_a_turn_that_fails_or_goes_round_has_no_output_and_says_what_happened() -> None:
    _, (failed,) = advance(opened(), ModelFailed("t1", "no line"))
    assert isinstance(failed, EndTurn)
    assert (failed.reason, failed.output, failed.detail) == (StopReason.FAILED, "", "no line")
    state, kinds = opened(repeats=2), []
    for number in range(1, 5):
        state, run = advance(
            state, ModelReplied("t1", ModelReply("", (ToolCall("", "look", "{}"),), ReplyStop.TOOL_CALLS))
        )
        assert isinstance(run[0], RunCalls)
        state, effects = done(state, f"t1.{number}.1")
        kinds += [effect.kind for effect in effects if isinstance(effect, Note)]
        ends = [effect for effect in effects if isinstance(effect, EndTurn)]
        if ends:
            assert (ends[0].reason, ends[0].output) == (StopReason.REPEATED_CALLS, "")
            break
    assert kinds == ["repeated_calls"]
    assert state.phase is Phase.IDLE


def test_a_call_over_the_limit_is_answered_already_and_the_others_are_not() -> None:
    state, (run,) = asked(opened(calls=2), "b", "d", "a", "c")
    assert isinstance(run, RunCalls)
    assert [call.id for call in run.calls] == ["b", "d"]
    for refused in ("a", "c"):
        assert done(state, refused) == (state, ())
    state, effects = done(state, "b")
    assert effects == ()
    assert done(state, "b") == (state, ())
    state, effects = done(state, "d")
    assert isinstance(effects[0], AskModel)
    assert (state.answered, state.pending, state.places, state.results) == (0, (), (), ())
    outcomes = [result.outcome for result in state.history[-1].results]  # type: ignore[union-attr]  # the last item is results
    assert outcomes == [Outcome.OK, Outcome.OK, Outcome.ERROR, Outcome.ERROR]


def test_a_call_without_an_id_of_its_own_is_named_by_turn_step_and_place() -> None:
    state, (run,) = asked(opened(), "t1.1.2", "t1.1.2", "t1.1.2x", "")
    assert isinstance(run, RunCalls)
    assert [call.id for call in run.calls] == ["t1.1.2", "t1.1.2x", "t1.1.3", "t1.1.4"]
    assert state.ids == {"t1.1.2", "t1.1.2x", "t1.1.3", "t1.1.4"}


def test_a_failure_quotes_no_more_of_a_name_than_a_name_may_have() -> None:
    name = "x" * 500
    state, _ = asked(opened(), "a", name=name)
    state, _ = advance(state, CallFinished("t1", ToolResult("a", name, "broken", Outcome.ERROR)))
    assert MAX_NAME == 128
    assert failures(state) == (f"{'x' * 127}…: broken",)


def pair(number: int, arguments: str = "{}") -> tuple[ToolCall, ToolResult]:
    """A call and its result."""
    return ToolCall(f"c{number}", "look", arguments), ToolResult(f"c{number}", "look", f"text {number}")


def test_every_call_of_a_step_counts_and_a_new_one_among_them_starts_the_counts_again() -> None:
    one, two, three = pair(1), pair(2), pair(3)
    seen, most = count_pairs((), (one[0], two[0]), (one[1], two[1]))
    assert (len(seen), most) == (2, 1)
    seen, most = count_pairs(seen, (one[0], two[0]), (two[1], one[1]))
    assert (len(seen), most) == (2, 2)
    seen, most = count_pairs(seen, (one[0], three[0]), (one[1], three[1]))
    assert ([count for _, count in seen], most) == ([1, 1, 1], 1)
    assert count_pairs((), (one[0],), (one[1],))[1] == 1


def test_sixteen_pairs_are_remembered() -> None:
    seen: tuple[object, ...] = ()
    for number in range(20):
        call, result = pair(number)
        seen, _ = count_pairs(seen, (call,), (result,))  # type: ignore[arg-type]  # the pairs of the call before
    assert len(seen) == REMEMBERED_PAIRS == 16


@pytest.mark.parametrize(
    "first, second, same",
    [('{"a":1,"b":2}', '{ "b": 2, "a": 1 }', True), ('{"a":1}', '{"a":2}', False), ("{", "[", False), ("{", "{", True)],
)
def test_arguments_are_the_same_by_their_values_and_broken_ones_by_their_text(
    first: str,
    second: str,
    same: bool,  # noqa: FBT001  # a parameter of the table
) -> None:
    result = ToolResult("c", "look", "text")
    seen, _ = count_pairs((), (ToolCall("c", "look", first),), (result,))
    assert (count_pairs(seen, (ToolCall("c", "look", second),), (result,))[1] == 2) is same
