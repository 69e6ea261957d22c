"""The loop under any sequence of facts: it never raises, its history is well paired, its ids are unique."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.loop import IDLE, TRANSITIONS, LoopState, Phase, advance, unanswered
from actors.messages import (
    AskModel,
    CallFinished,
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

if TYPE_CHECKING:
    from actors.messages import Item

TURNS = st.sampled_from(["t1", "t2"])
IDS = st.sampled_from(["", "a", "b", "c", "t1.1.1", "t1.2.1", "t1.1.2", "t2.1.1"])
ARGUMENTS = st.sampled_from(["{}", '{"a":1}', '{ "a" :1}', "{", "", "NaN", "[" * 2000, '{"a":"\ud83d"}', "9" * 5000])
TEXTS = st.text(st.characters(), max_size=3)
NAMES = st.sampled_from(["x", "y", ""])
CALLS = st.builds(ToolCall, IDS, NAMES, ARGUMENTS)
USAGES = st.builds(Usage, st.integers(0, 9), st.just(0), st.integers(0, 9), money=st.none() | st.floats(0, 1))
LIMITS = st.builds(
    Limits,
    steps=st.none() | st.integers(1, 4),
    calls=st.none() | st.integers(1, 4),
    tokens=st.none() | st.integers(1, 40),
    money=st.none() | st.floats(0.1, 3),
    repeats=st.integers(1, 3),
)
REPLIES = st.builds(ModelReply, TEXTS, st.lists(CALLS, max_size=4).map(tuple), st.sampled_from(ReplyStop), USAGES)
FAULTS = st.sampled_from(["", "", "not as asked"])
FACTS: st.SearchStrategy[Fact] = st.one_of(
    st.builds(TurnOpened, TURNS, TEXTS, limits=LIMITS),
    st.builds(ModelReplied, TURNS, REPLIES, FAULTS, TEXTS),
    st.builds(ModelFailed, TURNS, TEXTS),
    st.builds(CallFinished, TURNS, st.builds(ToolResult, IDS, NAMES, TEXTS, st.sampled_from(Outcome))),
    st.builds(Steered, TURNS, TEXTS),
    st.builds(TurnStopped, TURNS, st.sampled_from(StopReason)),
)
# Facts as they come in life: the answer to what the loop asked, now and then something else.
CHOICES = st.lists(st.tuples(REPLIES, st.booleans(), FACTS, st.integers(0, 5), LIMITS, FAULTS), max_size=30)
Choice = tuple[ModelReply, bool, Fact, int, Limits, str]


def check(history: tuple[Item, ...], *, open_end: bool) -> None:
    """Each reply with calls is followed directly by one result for each call, in order; no id comes twice."""
    ids: list[str] = []
    for place, item in enumerate(history):
        follows = history[place + 1] if place + 1 < len(history) else None
        if isinstance(item, ModelReply) and item.calls:
            ids.extend(call.id for call in item.calls)
            if follows is None:
                assert open_end
            else:
                assert isinstance(follows, Results)
                assert [result.call_id for result in follows.results] == [call.id for call in item.calls]
        elif isinstance(follows, Results):
            pytest.fail(f"results after {item!r}")
    assert all(ids)
    assert len(set(ids)) == len(ids)


def check_state(state: LoopState) -> None:
    check(state.history, open_end=state.phase is Phase.TOOLS)
    assert bool(state.pending) is (state.phase is Phase.TOOLS)
    if state.phase is Phase.IDLE:
        assert (state.results, state.steered) == ((), ())
    if state.phase is Phase.TOOLS:
        assert unanswered(state)


def turn_of_life(state: LoopState, choice: Choice) -> Fact:
    """The fact that answers what the loop asked, or, where the choice says so, any other."""
    reply, natural, other, pick, limits, fault = choice
    if not natural:
        return other
    if state.phase is Phase.IDLE:
        return TurnOpened("t1", "go", limits=limits)
    if state.phase is Phase.MODEL:
        return ModelReplied(state.turn, reply, fault)
    call = unanswered(state)[pick % len(unanswered(state))]
    return CallFinished(state.turn, ToolResult(call.id, call.name, "same"))


@pytest.mark.requirement("I15")
@given(st.lists(FACTS, max_size=40))
def test_no_sequence_of_facts_raises_and_the_history_is_always_well_paired(facts: list[Fact]) -> None:
    state = IDLE
    for fact in facts:
        state, _ = advance(state, fact)
        check_state(state)


@pytest.mark.requirement("I15")
@given(CHOICES)
def test_a_life_of_answers_and_interruptions_keeps_history_and_effects_in_step(
    choices: list[Choice],
) -> None:
    state: LoopState = IDLE
    for choice in choices:
        before = state
        state, made = advance(state, turn_of_life(state, choice))
        check_state(state)
        if state is before:
            assert made == ()
            continue
        ends = [effect for effect in made if isinstance(effect, EndTurn)]
        assert len(ends) == (before.phase is not Phase.IDLE and state.phase is Phase.IDLE)
        asked = any(isinstance(effect, AskModel) for effect in made)
        assert not (asked and state.phase is not Phase.MODEL)
        for effect in made:
            if isinstance(effect, RunCalls):
                assert effect.calls == unanswered(state)


@given(CHOICES)
def test_no_turn_is_corrected_twice_and_none_that_completes_has_an_answer_with_a_fault(choices: list[Choice]) -> None:
    state, corrected = IDLE, 0
    for choice in choices:
        fact = turn_of_life(state, choice)
        state, made = advance(state, fact)
        if isinstance(fact, TurnOpened) and made:
            corrected = 0
        corrected += sum(isinstance(effect, Note) and effect.kind == "wrong_answer" for effect in made)
        assert corrected <= 1
        for effect in made:
            if isinstance(fact, ModelReplied) and isinstance(effect, EndTurn):
                assert fact.fault == "" or effect.reason is not StopReason.COMPLETED


@given(st.lists(FACTS, max_size=25))
def test_the_same_facts_give_the_same_state_and_effects(facts: list[Fact]) -> None:
    one = two = IDLE
    for fact in facts:
        one, first = advance(one, fact)
        two, second = advance(two, fact)
        assert first == second
    assert one == two


@given(st.lists(FACTS, max_size=25))
def test_facts_that_were_written_down_and_read_back_give_the_same_history(facts: list[Fact]) -> None:
    live = read = IDLE
    for fact in facts:
        try:
            data = msgspec.json.encode(fact)
        except UnicodeEncodeError:
            continue
        live, _ = advance(live, fact)
        read, _ = advance(read, msgspec.json.decode(data, type=type(fact)))
    assert live == read


@given(CHOICES, LIMITS)
def test_with_limits_every_turn_comes_to_its_end(choices: list[Choice], limits: Limits) -> None:
    steps = limits.steps or 4
    state, _ = advance(IDLE, TurnOpened("t1", "go", limits=msgspec.structs.replace(limits, steps=steps)))
    replies = [(reply, fault) for reply, *_, fault in choices] or [(ModelReply("x"), "")]
    for n in range(4 * steps + 8):
        if state.phase is Phase.IDLE:
            break
        reply, fault = replies[n % len(replies)]
        state, _ = advance(state, ModelReplied("t1", msgspec.structs.replace(reply, text=str(n)), fault))
        for call in unanswered(state):
            state, _ = advance(state, CallFinished("t1", ToolResult(call.id, call.name, f"{n}")))
    assert state.phase is Phase.IDLE
    check_state(state)


def test_the_table_of_transitions_knows_no_way_out_of_idle_but_a_turn() -> None:
    assert {fact for phase, fact in TRANSITIONS if phase is Phase.IDLE} == {TurnOpened}
    assert {fact for phase, fact in TRANSITIONS if phase is Phase.MODEL} == {
        ModelReplied,
        ModelFailed,
        Steered,
        TurnStopped,
    }
    assert {fact for phase, fact in TRANSITIONS if phase is Phase.TOOLS} == {CallFinished, Steered, TurnStopped}
    assert Said("x") in advance(IDLE, TurnOpened("t1", "x"))[0].history
