"""The loop of one actor: limits, cut replies, repeated calls, steering, stops; each a short story of facts."""

from __future__ import annotations

import msgspec
import pytest

from actors.loop import IDLE, LoopState, Phase, advance, failures, unanswered
from actors.messages import (
    AskModel,
    CallFinished,
    Denial,
    Effect,
    EndTurn,
    Fact,
    Limits,
    ModelFailed,
    ModelReplied,
    ModelReply,
    Note,
    Outcome,
    ReplyStop,
    Results,
    Retry,
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

NOTHING = Usage()
NO_LIMIT = Limits(steps=None, calls=None)


def play(*facts: Fact, state: LoopState = IDLE) -> tuple[LoopState, tuple[Effect, ...]]:
    """Apply *facts* in order; return the state and the effects of the last one."""
    effects: tuple[Effect, ...] = ()
    for fact in facts:
        state, effects = advance(state, fact)
    return state, effects


def opened(limits: Limits = NO_LIMIT, turn: str = "t1") -> TurnOpened:
    return TurnOpened(turn, "go", limits=limits)


def replied(
    *calls: ToolCall, text: str = "", stop: ReplyStop = ReplyStop.TOOL_CALLS, usage: Usage = NOTHING
) -> ModelReplied:
    return ModelReplied("t1", ModelReply(text, calls, stop, usage))


def finished(call: str, text: str = "done", outcome: Outcome = Outcome.OK) -> CallFinished:
    return CallFinished("t1", ToolResult(call, "tool", text, outcome))


def calling(
    name: str, arguments: str = "{}", *, result: str = "same", state: LoopState
) -> tuple[LoopState, tuple[Effect, ...]]:
    """Let the model make one call and give it *result*."""
    state, effects = play(replied(ToolCall("", name, arguments)), state=state)
    assert isinstance(effects[0], RunCalls)
    return play(finished(effects[0].calls[0].id, result), state=state)


def end(effects: tuple[Effect, ...]) -> EndTurn:
    last = effects[-1]
    assert isinstance(last, EndTurn)
    return last


def test_a_turn_without_calls_is_one_question_and_one_answer() -> None:
    state, effects = play(opened())
    assert effects == (AskModel(),)
    state, effects = play(replied(text="hello", stop=ReplyStop.END), state=state)
    assert effects == (EndTurn("t1", StopReason.COMPLETED, "hello", Usage()),)
    assert (state.phase, len(state.history)) == (Phase.IDLE, 2)


def test_results_are_put_into_the_history_in_call_order_whatever_the_order_they_came_in() -> None:
    state, effects = play(opened(), replied(ToolCall("a", "x"), ToolCall("b", "y")))
    assert effects == (RunCalls((ToolCall("a", "x"), ToolCall("b", "y"))),)
    state, effects = play(finished("b"), state=state)
    assert (effects, unanswered(state)) == ((), (ToolCall("a", "x"),))
    state, effects = play(finished("a"), state=state)
    assert effects == (AskModel(),)
    last = state.history[-1]
    assert isinstance(last, Results)
    assert [result.call_id for result in last.results] == ["a", "b"]


def test_a_second_result_of_a_call_and_one_of_no_call_change_nothing() -> None:
    state, _ = play(opened(), replied(ToolCall("a", "x"), ToolCall("b", "y")), finished("a"))
    assert advance(state, finished("a", "again")) == (state, ())
    assert advance(state, finished("zzz")) == (state, ())


def test_a_fact_of_another_turn_changes_nothing() -> None:
    state, _ = play(opened())
    for fact in (
        TurnStopped("t9", StopReason.CANCELLED),
        ModelFailed("t9", "x"),
        Steered("t9", "x"),
        opened(turn="t9"),
    ):
        assert advance(state, fact) == (state, ())


def test_a_model_that_cannot_answer_ends_the_turn_as_failed_with_its_reason() -> None:
    state, effects = play(opened(), ModelFailed("t1", "no key"))
    assert (end(effects).reason, end(effects).detail, state.phase) == (StopReason.FAILED, "no key", Phase.IDLE)


# Limits


def test_at_the_step_limit_the_model_is_asked_once_more_without_tools_and_nothing_is_thrown_away() -> None:
    state, effects = play(opened(Limits(steps=1)), replied(ToolCall("a", "x")), finished("a"))
    assert effects == (AskModel(final=True),)
    state, effects = play(replied(text="so far", stop=ReplyStop.END), state=state)
    assert end(effects) == EndTurn("t1", StopReason.MAX_STEPS, "so far", Usage(calls=1))


def test_a_call_after_the_step_limit_is_answered_without_running_and_ends_the_turn() -> None:
    state, effects = play(
        opened(Limits(steps=1)), replied(ToolCall("a", "x")), finished("a"), replied(ToolCall("b", "x"))
    )
    assert end(effects).reason is StopReason.MAX_STEPS
    last = state.history[-1]
    assert isinstance(last, Results)
    assert (last.results[0].call_id, last.results[0].outcome) == ("b", Outcome.ERROR)


def test_a_reply_cut_again_and_again_after_the_step_limit_does_not_go_on_for_ever() -> None:
    state, effects = play(opened(Limits(steps=2)))
    for step in range(20):
        cut = ToolCall("", "put", f'{{"part": {step}')
        state, effects = play(replied(cut, stop=ReplyStop.LENGTH), state=state)
        if isinstance(effects[-1], EndTurn):
            break
    assert end(effects).reason is StopReason.MAX_STEPS


def test_a_cut_reply_counts_against_the_turns_tokens() -> None:
    state, effects = play(opened(Limits(steps=None, tokens=100)))
    for step in range(5):
        cut = ToolCall("", "put", f'{{"part": {step}')
        state, effects = play(replied(cut, stop=ReplyStop.LENGTH, usage=Usage(output_tokens=60)), state=state)
        if isinstance(effects[-1], EndTurn):
            break
    assert end(effects).reason is StopReason.MAX_TOKENS


def test_a_message_sent_in_the_meantime_does_not_lift_the_turns_tokens() -> None:
    state, effects = play(opened(Limits(tokens=100)))
    for _ in range(5):
        state, _ = play(Steered("t1", "more"), state=state)
        state, effects = play(replied(text="ok", stop=ReplyStop.END, usage=Usage(output_tokens=60)), state=state)
        if isinstance(effects[-1], EndTurn):
            break
    assert isinstance(effects[-1], EndTurn)
    assert end(effects).usage.tokens <= 120


@pytest.mark.parametrize(
    "limits,reason",
    [(Limits(tokens=10), StopReason.MAX_TOKENS), (Limits(money=0.5), StopReason.MAX_MONEY)],
)
def test_a_turn_that_has_spent_its_tokens_or_money_runs_nothing_more(limits: Limits, reason: StopReason) -> None:
    usage = Usage(input_tokens=6, output_tokens=4, money=0.5)
    state, effects = play(opened(limits), replied(ToolCall("a", "x"), text="half", usage=usage))
    assert (end(effects).reason, end(effects).output) == (reason, "half")
    assert isinstance(state.history[-1], Results)


def test_an_unknown_price_is_not_taken_for_nothing_nor_for_too_much() -> None:
    _, effects = play(opened(Limits(money=0.01)), replied(ToolCall("a", "x"), usage=Usage(output_tokens=10**9)))
    assert isinstance(effects[0], RunCalls)


def test_calls_over_the_turns_limit_are_answered_and_the_others_run() -> None:
    state, effects = play(opened(Limits(calls=2)), replied(*(ToolCall(str(n), "x") for n in range(4))))
    assert effects == (RunCalls((ToolCall("0", "x"), ToolCall("1", "x"))),)
    state, effects = play(finished("0"), finished("1"), state=state)
    assert effects == (AskModel(),)
    assert [result.error for result in state.history[-1].results] == [False, False, True, True]  # type: ignore[union-attr]
    state, effects = play(replied(ToolCall("9", "x")), state=state)
    assert effects == (AskModel(),)


@pytest.mark.parametrize("name", ["steps", "calls", "tokens", "repeats"])
def test_a_limit_of_nothing_is_refused_and_says_how_to_have_none(name: str) -> None:
    for value in (0, -1):
        with pytest.raises(ValueError, match=f"Limits.{name} is {value}; give at least 1"):
            Limits(**{name: value})


@pytest.mark.parametrize("name", ["seconds", "money"])
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_a_limit_in_seconds_or_money_is_above_nothing(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"Limits.{name}"):
        Limits(**{name: value})  # type: ignore[arg-type]


def test_a_limit_read_from_a_file_is_held_to_the_same_rules() -> None:
    with pytest.raises(msgspec.ValidationError, match="give at least 1"):
        msgspec.json.decode(b'{"steps":0}', type=Limits)
    with pytest.raises(msgspec.ValidationError, match="stepz"):
        msgspec.json.decode(b'{"stepz":1}', type=Limits)


# Cut replies


@pytest.mark.requirement("B22")
def test_no_call_of_a_reply_cut_by_the_output_limit_runs_however_complete_it_looks() -> None:
    state, effects = play(opened(), replied(ToolCall("c", "put", '{"path":"c.md"}'), stop=ReplyStop.LENGTH))
    assert effects == (Note("output_truncated", "1 calls not run"), AskModel())
    last = state.history[-1]
    assert isinstance(last, Results)
    assert "output limit" in last.results[0].text
    assert "Send less" in last.results[0].text


@pytest.mark.requirement("B22")
def test_an_answer_cut_by_the_output_limit_says_so() -> None:
    _, effects = play(opened(), replied(text="half an ans", stop=ReplyStop.LENGTH))
    assert effects[0] == Note("output_truncated", "the answer")
    assert (end(effects).output, end(effects).detail) == ("half an ans", "the output limit cut the answer")


def test_a_message_that_arrived_while_an_answer_was_cut_is_still_taken_up() -> None:
    state, effects = play(opened(), Steered("t1", "and b?"), replied(text="half", stop=ReplyStop.LENGTH))
    assert isinstance(effects[-1], AskModel)
    assert state.history[-1] == Said("and b?")


# Ids


@pytest.mark.requirement("B24")
def test_equal_empty_and_absent_ids_become_distinct_and_a_unique_one_is_kept() -> None:
    calls = [ToolCall(known, "put") for known in ("x", "x", "", None)]  # type: ignore[arg-type]
    state, effects = play(opened(), replied(*calls))
    assert isinstance(effects[0], RunCalls)
    ids = [call.id for call in effects[0].calls]
    assert ids[0] == "x"
    assert len(set(ids)) == 4
    assert all(ids)
    state, effects = play(*map(finished, ids), replied(ToolCall("x", "put")), state=state)
    assert isinstance(effects[0], RunCalls)
    assert effects[0].calls[0].id not in ids


@pytest.mark.requirement("B24")
def test_an_id_is_unique_over_all_turns_and_a_made_up_one_yields_to_none_that_exists() -> None:
    state, _ = play(opened(), replied(ToolCall("t1.2.1", "put")), finished("t1.2.1"))
    state, effects = play(replied(ToolCall("", "put"), ToolCall("t1.2.1x", "put")), state=state)
    assert isinstance(effects[0], RunCalls)
    assert len({"t1.2.1", *(call.id for call in effects[0].calls)}) == 3


# Repeats


@pytest.mark.requirement("B58")
def test_the_fifth_equal_call_is_pointed_out_and_the_sixth_ends_the_turn() -> None:
    state, effects = play(opened())
    for n in range(1, 7):
        state, effects = calling("read", '{"path":"nope"}', state=state)
        notes = [effect for effect in effects if isinstance(effect, Note)]
        assert bool(notes) is (n == 5)
        if n == 5:
            assert isinstance(state.history[-1], Said)
            assert "5 times" in state.history[-1].text
    assert end(effects).reason is StopReason.REPEATED_CALLS
    assert len(state.history) > 10


@pytest.mark.requirement("B58")
def test_key_order_and_blanks_do_not_hide_a_repeat() -> None:
    state, effects = play(opened())
    spellings = [
        '{"a":1,"b":2}',
        '{"b":2,"a":1}',
        '{ "a": 1, "b": 2 }',
        '{"b": 2,\n"a": 1}',
        '{"a":1,"b":2}',
        '{"b":2,"a":1}',
    ]
    for arguments in spellings:
        state, effects = calling("read", arguments, state=state)
    assert end(effects).reason is StopReason.REPEATED_CALLS


@pytest.mark.requirement("B58")
@pytest.mark.parametrize("count", [2, 3, 16])
def test_going_round_through_several_calls_is_a_repeat_too(count: int) -> None:
    state, effects = play(opened())
    for n in range(count * 7):
        state, effects = calling("read", f'{{"path":"{n % count}"}}', state=state)
        if isinstance(effects[-1], EndTurn):
            break
    assert end(effects).reason is StopReason.REPEATED_CALLS
    assert n < count * 6


@pytest.mark.requirement("B58")
@pytest.mark.parametrize("size", [2, 16, 17, 40])
def test_the_same_batch_again_and_again_is_a_repeat_however_large(size: int) -> None:
    state, effects = play(opened())
    for _ in range(8):
        state, effects = play(replied(*(ToolCall("", "read", str(n)) for n in range(size))), state=state)
        assert isinstance(effects[0], RunCalls)
        state, effects = play(*(finished(call.id, "same") for call in effects[0].calls), state=state)
        if isinstance(effects[-1], EndTurn):
            break
    assert end(effects).reason is StopReason.REPEATED_CALLS


@pytest.mark.requirement("B58")
def test_polling_a_result_that_changes_is_not_stopped() -> None:
    state, effects = play(opened())
    for n in range(40):
        state, effects = calling("poll", result=f"{n} %", state=state)
        assert effects == (AskModel(),)
    for result in ("r1", "r1", "r2", "r1", "r1"):
        state, effects = calling("poll", result=result, state=state)
        assert effects == (AskModel(),)


@pytest.mark.requirement("B58")
def test_results_that_differ_only_far_behind_their_beginning_are_the_same() -> None:
    state, effects = play(opened())
    for n in range(6):
        state, effects = calling("read", result="x" * 500 + str(n), state=state)
    assert end(effects).reason is StopReason.REPEATED_CALLS


@pytest.mark.requirement("B58")
def test_something_else_in_between_starts_the_count_again() -> None:
    state, effects = play(opened())
    for round_ in range(6):
        for _ in range(3):
            state, effects = calling("read", state=state)
            assert effects == (AskModel(),)
        state, effects = calling("other", f"{round_}", state=state)
        assert effects == (AskModel(),)


@pytest.mark.requirement("B58")
def test_a_new_turn_starts_the_count_again() -> None:
    state, effects = play(opened())
    for _ in range(4):
        state, _ = calling("read", state=state)
    state, _ = play(replied(text="x", stop=ReplyStop.END), TurnOpened("t1", "again", limits=NO_LIMIT), state=state)
    for _ in range(4):
        state, effects = calling("read", state=state)
        assert effects == (AskModel(),)


# Steering and stopping


def test_a_message_joins_after_the_results_of_the_batch() -> None:
    state, _ = play(opened(), replied(ToolCall("a", "x")), Steered("t1", "use b"), finished("a"))
    assert isinstance(state.history[-2], Results)
    assert state.history[-1] == Said("use b")


def test_a_message_during_the_final_text_makes_the_loop_go_on() -> None:
    state, effects = play(opened(), Steered("t1", "and b?"), replied(text="a", stop=ReplyStop.END))
    assert effects == (AskModel(),)
    state, effects = play(replied(text="b", stop=ReplyStop.END), state=state)
    assert end(effects).output == "b"


def test_a_message_that_comes_too_late_stays_in_the_history() -> None:
    state, _ = play(opened(), Steered("t1", "wait"), ModelFailed("t1", "gone"))
    assert state.history[-1] == Said("wait")


@pytest.mark.requirement("B26", "I15")
def test_a_stop_answers_every_open_call_as_cancelled_and_keeps_what_was_answered() -> None:
    state, _ = play(opened(), replied(*(ToolCall(known, "x") for known in "abc")), finished("c", "real"))
    state, effects = play(TurnStopped("t1", StopReason.CANCELLED, "by a person"), state=state)
    assert end(effects) == EndTurn("t1", StopReason.CANCELLED, "", Usage(calls=3), "by a person")
    last = state.history[-1]
    assert isinstance(last, Results)
    assert [(r.call_id, r.outcome) for r in last.results] == [
        ("a", Outcome.CANCELLED),
        ("b", Outcome.CANCELLED),
        ("c", Outcome.OK),
    ]
    assert advance(state, TurnStopped("t1", StopReason.CANCELLED)) == (state, ())
    assert advance(state, finished("a", "late")) == (state, ())


def test_what_was_denied_or_failed_in_the_last_turn_is_told_in_order_and_only_that() -> None:
    denial = Denial("denied_by_policy", "put", "a", 6, "put is not available.", "Ask.", Retry.NEVER)
    denied = CallFinished("t1", ToolResult("b", "put", denial.text, Outcome.DENIED, denial))
    state, _ = play(
        opened(), replied(ToolCall("a", "x"), ToolCall("b", "put")), finished("a", "broke", Outcome.ERROR), denied
    )
    assert failures(state) == ("tool: broke", "put: put is not available. Ask.")
    state, _ = play(replied(text="x", stop=ReplyStop.END), TurnOpened("t1", "again"), state=state)
    assert failures(state) == ()
