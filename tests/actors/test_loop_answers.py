"""The loop and a final answer that is judged not to be as asked: corrected once, within limits, with nothing lost."""

from __future__ import annotations

import pytest

from actors.answers import ASKED, CORRECTION, correction, unfenced
from actors.ids import with_unique_ids
from actors.loop import IDLE, LoopState, advance
from actors.messages import (
    AskModel,
    Effect,
    EndTurn,
    Fact,
    Limits,
    ModelFailed,
    ModelReplied,
    ModelReply,
    Note,
    ReplyStop,
    Said,
    Steered,
    StopReason,
    ToolCall,
    TurnOpened,
    TurnStopped,
    Usage,
)
from actors.spending import spent

TOLD = Said(
    "Your answer could not be taken: x.\nGive the whole answer once more: JSON that satisfies the schema of what was "
    "asked, and nothing else."
)
NOTE = Note("wrong_answer", "the answer was sent back: x")
CUT = "the output limit cut the answer"


def replied(
    text: str, fault: str = "x", answer: str = "", stop: ReplyStop = ReplyStop.END, tokens: int = 0
) -> ModelReplied:
    return ModelReplied("t1", ModelReply(text, stop=stop, usage=Usage(output_tokens=tokens)), fault, answer)


def play(*facts: Fact, limits: Limits | None = None) -> tuple[LoopState, tuple[Effect, ...]]:
    """Open a turn and apply *facts*; return the state and the effects of the last one."""
    state, effects = advance(IDLE, TurnOpened("t1", "go", limits=limits or Limits(steps=None)))
    for fact in facts:
        state, effects = advance(state, fact)
    return state, effects


def ended(*facts: Fact, limits: Limits | None = None) -> tuple[StopReason, str, str]:
    """How a turn of *facts* ended: the reason, the output, the detail."""
    end = play(*facts, limits=limits)[1][-1]
    assert isinstance(end, EndTurn)
    return end.reason, end.output, end.detail


def test_what_is_said_of_schemas_is_word_for_word() -> None:
    assert ASKED == "Answer with JSON that satisfies this schema, and nothing else:\n"
    assert TOLD.text == correction("x") == f"{CORRECTION}{TOLD.text.removeprefix(CORRECTION)}"


def test_the_first_wrong_answer_is_corrected_and_the_second_fails_the_turn() -> None:
    state, effects = play(replied("a"))
    assert effects == (NOTE, AskModel())
    assert state.history == (Said("go"), ModelReply("a", usage=Usage()), TOLD)
    assert state.wrong == "a"
    assert ended(replied("a"), replied("b", "")) == (StopReason.COMPLETED, "b", "")
    assert ended(replied("a"), replied("b", "y")) == (StopReason.FAILED, "b", "y")
    assert ended(replied(""), replied("b", "y")) == (StopReason.FAILED, "b", "y")
    assert ended(replied("a"), replied("", "y")) == (StopReason.FAILED, "a", "y")


def test_the_answer_inside_a_fence_is_the_output_and_the_history_keeps_the_fence() -> None:
    assert ended(replied("```1```", "", "1")) == (StopReason.COMPLETED, "1", "")
    assert play(replied("```1```", "x", "1"))[0].wrong == "1"
    assert play(replied("```1```", "", "1"))[0].history[-1] == ModelReply("```1```", usage=Usage())


def test_a_turn_that_ends_in_its_correction_keeps_the_answer() -> None:
    assert ended(replied("a"), ModelFailed("t1", "no line")) == (StopReason.FAILED, "a", "no line")
    stopped = TurnStopped("t1", StopReason.CANCELLED, "enough")
    assert ended(replied("a"), stopped) == (StopReason.CANCELLED, "a", "enough")
    assert ended(TurnStopped("t1", StopReason.CANCELLED)) == (StopReason.CANCELLED, "", "")
    assert play(replied("a"), stopped)[0].wrong is None


def test_a_message_goes_before_a_correction_and_uses_none_up() -> None:
    state, effects = play(Steered("t1", "more"), replied("a"))
    assert effects == (AskModel(),)
    assert state.history[-1] == Said("more")
    assert state.wrong is None
    told = (Steered("t1", "more"), replied("a"), replied("b"))
    assert play(*told)[1] == (NOTE, AskModel())
    assert play(replied("a"), Steered("t1", "more"), replied("b"))[1] == (AskModel(),)
    assert ended(replied("a"), Steered("t1", "more"), replied("b"), replied("c")) == (StopReason.FAILED, "c", "x")


def test_spent_limits_end_the_turn_where_it_would_go_on_and_only_there() -> None:
    few = Limits(steps=None, tokens=5)
    assert ended(replied("a", tokens=5), limits=few) == (StopReason.MAX_TOKENS, "a", "x")
    assert ended(replied("a", "", tokens=5), limits=few) == (StopReason.COMPLETED, "a", "")
    assert ended(replied("a", tokens=4), replied("b", tokens=1), limits=few) == (StopReason.FAILED, "b", "x")
    assert ended(Steered("t1", "m"), replied("a", tokens=5), limits=few) == (StopReason.MAX_TOKENS, "a", "x")
    assert spent(few, Usage(input_tokens=2, output_tokens=2)) is None
    assert spent(Limits(money=1.0), Usage(money=None)) is None
    assert spent(Limits(money=1.0), Usage(money=0.9)) is None
    assert spent(Limits(money=1.0), Usage(money=1.0)) is StopReason.MAX_MONEY


def test_at_the_step_limit_the_correction_is_the_last_request() -> None:
    one = Limits(steps=1)
    assert play(replied("a"), limits=one)[1] == (NOTE, AskModel(final=True))
    assert ended(replied("a"), replied("b"), limits=one) == (StopReason.MAX_STEPS, "b", "x")
    assert ended(replied("a"), replied("b", ""), limits=one) == (StopReason.MAX_STEPS, "b", "")
    assert ended(replied("a"), replied("b", "", stop=ReplyStop.LENGTH), limits=one)[2] == CUT
    calling = ModelReplied("t1", ModelReply("c", (ToolCall("", "x"),)))
    assert ended(replied("a"), calling, limits=one) == (StopReason.MAX_STEPS, "c", "")


def test_a_cut_answer_is_told_so_and_a_refusal_is_not_answered() -> None:
    state, effects = play(replied("a", stop=ReplyStop.LENGTH))
    said = f"{CUT}; x"
    note = Note("wrong_answer", f"the answer was sent back: {said}")
    assert effects == (Note("output_truncated", "the answer"), note, AskModel())
    assert state.history[-1] == Said(correction(said))
    twice = play(replied("a"), replied("b", stop=ReplyStop.LENGTH))[1]
    assert twice[0] == Note("output_truncated", "the answer")
    assert ended(replied("a", "", stop=ReplyStop.LENGTH)) == (StopReason.COMPLETED, "a", CUT)
    assert ended(replied("no", stop=ReplyStop.REFUSED)) == (StopReason.FAILED, "no", "x")
    assert ended(replied("no", "", stop=ReplyStop.REFUSED)) == (StopReason.COMPLETED, "no", "")


@pytest.mark.parametrize(
    "text, json",
    [("```json\n1\n```", "1"), (" ```JSON \n[1]```\n", "[1]"), ("```\n{}\n```", "{}"), ("```\r\n1\r\n```", "1")],
)
def test_one_fence_around_json_is_taken_off(text: str, json: str) -> None:
    assert unfenced(text) == json


@pytest.mark.parametrize(
    "text",
    [" 1 ", "```1```", "```yaml\n1\n```", "~~~\n1\n~~~", "```json\n1\n", "a\n```\n1\n```", "```\n1\n```\n```\n1\n```"],
)
def test_anything_else_is_left_as_it_is(text: str) -> None:
    assert unfenced(text) == text
    assert unfenced(f"```\n{'[' * 100_000}\n```") == f"```\n{'[' * 100_000}\n```"


def test_ids_that_are_known_or_missing_are_named_by_step_and_place() -> None:
    calls = (ToolCall("a", "x"), ToolCall("", "x"), ToolCall("a", "x"), ToolCall("b", "x", "1"))
    reply, ids = with_unique_ids(ModelReply("t", calls), frozenset({"b", "s.2", "s.2x"}), "s")
    assert [call.id for call in reply.calls] == ["a", "s.2xx", "s.3", "s.4"]
    assert reply.calls[3] == ToolCall("s.4", "x", "1")
    assert ids == {"b", "s.2", "s.2x", "a", "s.2xx", "s.3", "s.4"}
    assert reply.text == "t"
