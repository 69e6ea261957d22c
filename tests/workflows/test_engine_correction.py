"""An answer that is not as the step asks gets one more turn, told what is wrong; then the step fails."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from actors.messages import ModelReply, StopReason, TurnOrigin
from orchestrator.journal.records import ActorExited, LoanMade, TurnAccepted, TurnEnded
from orchestrator.journal.work import Stage, StageStarted, StepFinished, StepStarted
from orchestrator.workflows.telling import bare
from tests.workflows.playing import Piece, in_turn, of

if TYPE_CHECKING:
    from actors.ports import ModelRequest

AGENTS = """
name: piece
agents:
  a: {role: child, instructions: "x"}
  b: {role: child, instructions: "x"}
steps:
"""
ONE = '- {id: one, agent: a, prompt: "1", output: {type: object, required: [n], properties: {n: {type: integer}}}}'


def said(request: ModelRequest) -> int:
    """How many answers the actor has given so far, over all its turns."""
    return sum(isinstance(item, ModelReply) for item in request.history)


def answering(*answers: str) -> Any:
    return lambda request: answers[min(said(request), len(answers) - 1)]


async def test_a_wrong_answer_that_is_put_right_is_the_steps_output_and_the_actor_was_told_what_was_wrong() -> None:
    heard = []

    def play(request: ModelRequest) -> str:
        heard.append(in_turn(request)[0])
        return ['{"n":"1"}', '{"n":1}'][said(request)]

    it = Piece(AGENTS + ONE, a=play)
    async with asyncio.timeout(5):
        outcome = of(await it.play(), "one")
    assert (outcome.ok, outcome.output, outcome.detail) == (True, '{"n":1}', "")
    assert heard[0] == "1"
    assert heard[1].startswith('Your answer could not be taken: n: "1" is not of type "integer".')
    assert '"required":["n"]' in heard[1]
    assert len(heard) == 2
    (started,) = await it.records(StepStarted)
    assert await it.records(StageStarted) == [
        StageStarted("one", Stage.WORK, started.by, "t0002", round=0, of=0, again=True)
    ]
    assert [turn.origin for turn in await it.records(TurnAccepted)] == [TurnOrigin.STEP, TurnOrigin.STEP]


async def test_a_step_is_told_its_schema_before_its_first_answer_and_a_reviewer_of_the_step_as_well() -> None:
    heard: list[str] = []

    def play(request: ModelRequest) -> str:
        heard.append(request.history[0].text)  # type: ignore[union-attr]
        return '{"n":1}'

    def review(request: ModelRequest) -> str:
        heard.append(request.history[0].text)  # type: ignore[union-attr]
        return '{"verdict":"accepted","findings":[]}'

    text = AGENTS.replace(
        "steps:", '  r: {role: reviewer, instructions: "x"}\n  f: {role: fixer, instructions: "x"}\nsteps:'
    )
    it = Piece(text + ONE[:-1] + ", review: {by: r, fix_by: f}}", a=play, r=review)
    async with asyncio.timeout(5):
        assert of(await it.play(), "one").ok
    schema = '{"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"}'
    assert heard[0] == f"1\n\nAnswer with JSON that satisfies this schema, and nothing else:\n{schema}"
    assert f'"output_schema":{schema}' in heard[1]
    assert '"asked":"1"' in heard[1]


async def test_json_in_one_fence_is_the_output_of_its_step_without_the_fence() -> None:
    it = Piece(AGENTS + ONE, a=lambda _: '```json\n{"n": 1}\n```')
    async with asyncio.timeout(5):
        outcome = of(await it.play(), "one")
    assert (outcome.ok, outcome.output) == (True, '{"n": 1}')
    assert await it.records(StageStarted) == []
    (end,) = await it.records(TurnEnded)
    assert end.output == '```json\n{"n": 1}\n```'
    it = Piece(AGENTS + '- {id: one, agent: a, prompt: "1"}', a=lambda _: "```\n1\n```")
    async with asyncio.timeout(5):
        assert of(await it.play(), "one").output == "```\n1\n```"


@pytest.mark.parametrize(
    "answers, detail",
    [(("no json", '{"n":"1"}'), 'n: "1" is not of type "integer"'), (("{}", "no json"), "the answer is not the JSON")],
)
async def test_a_second_wrong_answer_fails_the_step_with_what_is_wrong_with_it(
    answers: tuple[str, str], detail: str
) -> None:
    it = Piece(AGENTS + ONE, a=answering(*answers, '{"n":1}'))
    async with asyncio.timeout(5):
        outcome = of(await it.play(), "one")
    assert (outcome.ok, outcome.output) == (False, answers[1])
    assert outcome.detail.startswith(detail)
    assert len(await it.records(TurnAccepted)) == 2


async def test_a_turn_that_gives_no_answer_is_not_corrected_and_the_first_answer_is_kept_when_a_correction_fails() -> (
    None
):
    def broken(_: ModelRequest) -> Any:
        raise RuntimeError("out of order")

    def later(request: ModelRequest) -> Any:
        return "no json" if not said(request) else broken(request)

    it = Piece(AGENTS + ONE, a=broken)
    async with asyncio.timeout(5):
        outcome = of(await it.play(), "one")
    assert not outcome.ok
    assert "out of order" in outcome.detail
    assert await it.records(StageStarted) == []
    it = Piece(AGENTS + ONE, a=later)
    async with asyncio.timeout(5):
        outcome = of(await it.play(), "one")
    assert (outcome.ok, outcome.output) == (False, "no json")
    assert "out of order" in outcome.detail
    assert [end.reason for end in await it.records(TurnEnded)] == [StopReason.COMPLETED, StopReason.FAILED]


async def test_a_step_without_a_schema_is_never_corrected() -> None:
    it = Piece(AGENTS + '- {id: one, agent: a, prompt: "1"}', a="no json")
    async with asyncio.timeout(5):
        assert of(await it.play(), "one").ok
    assert await it.records(StageStarted) == []


async def test_each_item_is_corrected_for_itself_by_its_own_actor_which_goes_when_the_item_is_over() -> None:
    steps = (
        '- {id: plan, agent: a, prompt: "p", output: {type: array}}\n'
        '- {id: each, agent: b, for_each: plan, background: true, prompt: "{item}", output: {type: integer}}'
    )

    def slow(request: ModelRequest) -> str:
        first = bare(request.history[0].text)  # type: ignore[union-attr]
        return {"fine": "1", "slow": "2" if said(request) else "x", "never": "y"}[first]

    it = Piece(AGENTS + steps, a='["fine","slow","never"]', b=slow)
    async with asyncio.timeout(5):
        result = await it.play()
    assert result.output("each") == [1, 2, None]
    assert sorted(stage.key for stage in await it.records(StageStarted)) == ["each[1]", "each[2]"]
    started = {record.key: record.by for record in await it.records(StepStarted)}
    assert {s.key: s.by for s in await it.records(StageStarted)} == {k: started[k] for k in ("each[1]", "each[2]")}
    entries = await it.entries()
    over = {e.record.key: e.seq for e in entries if isinstance(e.record, StepFinished)}
    gone = {e.actor: e.seq for e in entries if isinstance(e.record, ActorExited)}
    for key in ("each[0]", "each[1]", "each[2]"):
        assert gone[started[key]] > over[key]


async def test_a_correction_is_lent_nothing() -> None:
    lend = "lend: {authorities: [workspace.write], roots: [src]}"
    it = Piece(AGENTS + f'- {{id: one, agent: a, prompt: "1", output: {{type: integer}}, {lend}}}', a="x")
    async with asyncio.timeout(5):
        await it.play()
    assert [loan.until for loan in await it.records(LoanMade)] == ["t0001"]
    assert [turn.turn for turn in await it.records(TurnAccepted)] == ["t0001", "t0002"]
