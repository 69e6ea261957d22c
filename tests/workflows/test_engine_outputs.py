"""What a step's answer is held to, and what a run says when something that it needs is not there."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from orchestrator.journal.work import StepStarted
from orchestrator.workflows.fault import PlanError
from tests.workflows.playing import Piece, in_turn, of

AGENTS = """
name: piece
agents:
  a: {role: child, instructions: "x"}
  b: {role: child, instructions: "x"}
steps:
"""
ONE = (
    '- {id: one, agent: a, prompt: "1", '
    "output: {type: object, required: [n, s], properties: {n: {type: integer}, s: {enum: [x, y]}}}}"
)
DEEP = "[" * 100_000 + "]" * 100_000


async def told(answer: str, steps: str = ONE) -> Any:
    """The outcome of the step ``one`` when its agent answers *answer*."""
    async with asyncio.timeout(5):
        return of(await Piece(AGENTS + steps, a=answer).play(), "one")


async def test_an_answer_of_the_asked_shape_is_the_steps_output_as_it_was_written() -> None:
    outcome = await told(' {"s": "x", "n": 1} ')
    assert outcome.ok
    assert outcome.output == ' {"s": "x", "n": 1} '
    assert outcome.detail == ""


async def test_an_answer_of_another_shape_fails_the_step_and_each_fault_says_where() -> None:
    outcome = await told('{"n": "1", "s": "z"}')
    assert not outcome.ok
    assert outcome.output == '{"n": "1", "s": "z"}'
    assert sorted(outcome.detail.split("; ")) == ['n: "1" is not of type "integer"', 's: "z" is not one of "x" or "y"']
    assert "the output: " in (await told("{}")).detail


async def test_an_answer_that_is_no_json_is_shown_in_the_failure() -> None:
    outcome = await told("The linter is not installed.")
    assert not outcome.ok
    assert outcome.detail.startswith("the answer is not the JSON that was asked for (")
    assert outcome.detail.endswith("): The linter is not installed.")
    assert len((await told("x" * 5000)).detail) < 500


@pytest.mark.parametrize(
    "answer", [DEEP, '{"a":' * 300 + "1" + "}" * 300, "NaN", "1e999", "", "\x00", "[1,2", '"\ud800"']
)
async def test_an_answer_that_only_resembles_json_fails_the_step_and_not_the_run(answer: str) -> None:
    outcome = await told(answer)
    assert not outcome.ok
    assert outcome.detail


async def test_a_whole_number_of_any_length_is_held_to_the_schema_like_any_other() -> None:
    steps = '- {id: one, agent: a, prompt: "1", output: {type: integer, minimum: 3}}'
    assert (await told("9" * 300, steps)).ok
    assert not (await told("-" + "9" * 300, steps)).ok


async def test_a_text_step_may_answer_anything_and_its_text_is_not_read_as_json() -> None:
    steps = '- {id: one, agent: a, prompt: "1"}\n- {id: two, agent: b, needs: [one], prompt: "{steps.one}"}'
    piece = Piece(AGENTS + steps, a='{"k": 1}', b=lambda request: in_turn(request)[0])
    async with asyncio.timeout(5):
        result = await piece.play()
    assert of(result, "two").output == '{"k": 1}'


async def test_a_place_in_the_prompt_whose_value_is_not_there_fails_the_step_before_it_starts() -> None:
    steps = (
        '- {id: one, agent: a, prompt: "1", output: {type: object, properties: {k: {type: string}}}}\n'
        '- {id: two, agent: b, needs: [one], prompt: "{steps.one.k}"}'
    )
    piece = Piece(AGENTS + steps, a="{}", b="never asked")
    async with asyncio.timeout(5):
        result = await piece.play()
    assert of(result, "two").detail == "{steps.one.k} cannot be filled in: the value has no 'k'"
    assert [record.key for record in await piece.records(StepStarted)] == ["one"]


async def test_an_item_that_lacks_what_its_prompt_names_fails_alone() -> None:
    steps = (
        '- {id: plan, agent: a, prompt: "p", output: {type: array, items: {type: object}}}\n'
        '- {id: each, agent: b, for_each: plan, prompt: "{item.k}"}'
    )
    async with asyncio.timeout(5):
        result = await Piece(AGENTS + steps, a='[{"k":"v"},{}]', b=lambda r: in_turn(r)[0]).play()
    assert of(result, "each").output == '["v",null]'
    assert of(result, "each").detail == "1 of 2 items failed: each[1]"


async def test_an_array_that_the_schema_allows_to_be_missing_fails_the_step_that_goes_over_it() -> None:
    steps = (
        '- {id: plan, agent: a, prompt: "p", output: {type: object, properties: {files: {type: array}}}}\n'
        '- {id: each, agent: b, for_each: plan.files, prompt: "{item}"}\n'
        '- {id: end, agent: a, needs: [each], prompt: "end"}'
    )
    async with asyncio.timeout(5):
        result = await Piece(AGENTS + steps, a="{}", b="never asked").play()
    assert of(result, "each").detail == "plan.files is not there to go over: the value has no 'files'"
    assert of(result, "end").detail == "a step that it needs has failed: each"


async def test_an_agent_without_a_function_in_the_playbook_fails_its_step_and_is_named() -> None:
    async with asyncio.timeout(5):
        outcome = of(await Piece(AGENTS + '- {id: one, agent: a, prompt: "1"}', b="ok").play(), "one")
    assert not outcome.ok
    assert "no function for the agent 'a'" in outcome.detail


async def test_a_function_that_wants_to_exit_the_program_fails_its_step_only() -> None:
    def leave(_: Any) -> str:
        raise SystemExit(0)

    async with asyncio.timeout(5):
        outcome = of(await Piece(AGENTS + '- {id: one, agent: a, prompt: "1"}', a=leave).play(), "one")
    assert "wants to exit the program (0)" in outcome.detail


def test_a_workflow_whose_agent_names_a_tool_that_is_not_there_makes_no_run() -> None:
    with pytest.raises(PlanError) as caught:
        Piece(AGENTS.replace('"x"}', '"x", tools: [nope]}', 1) + '- {id: one, agent: a, prompt: "1"}')
    assert "there is no tool 'nope'" in str(caught.value)
