"""Which steps run when: needs, readiness, queues of items, and what a failure takes with it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.journal.records import ActorExited, ActorSpawned
from orchestrator.journal.work import StepFinished, StepStarted
from orchestrator.runtime import SessionLimits
from tests.workflows.playing import Piece, in_turn, of

if TYPE_CHECKING:
    from actors.ports import ModelRequest

AGENTS = """
name: piece
agents:
  a: {role: child, instructions: "x"}
  b: {role: child, instructions: "x"}
  c: {role: child, instructions: "x"}
steps:
"""
LIST = "output: {type: object, required: [items], properties: {items: {type: array}}}"


class Meeting:
    """Everybody waits until *size* are there; so it is over only if they are there at the same time."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.here: list[str] = []
        self.full = asyncio.Event()

    async def __call__(self, request: ModelRequest) -> str:
        text = in_turn(request)[0]
        self.here.append(text)
        if len(self.here) == self.size:
            self.full.set()
        await self.full.wait()
        return f"{text} done"


async def test_steps_that_need_nothing_run_at_the_same_time() -> None:
    meeting = Meeting(3)
    steps = (
        '- {id: one, agent: a, prompt: "1"}\n- {id: two, agent: b, prompt: "2"}\n- {id: three, agent: c, prompt: "3"}'
    )
    async with asyncio.timeout(5):
        result = await Piece(AGENTS + steps, a=meeting, b=meeting, c=meeting).play()
    assert result.ok
    assert [(o.key, o.output) for o in result.outcomes] == [("one", "1 done"), ("two", "2 done"), ("three", "3 done")]


async def test_a_step_starts_as_soon_as_its_own_needs_are_done_whatever_else_still_runs() -> None:
    order: list[str] = []
    release = asyncio.Event()

    async def slow(_: ModelRequest) -> str:
        await release.wait()
        order.append("slow")
        return "slow"

    def quick(request: ModelRequest) -> str:
        order.append(in_turn(request)[0])
        if order[-1] == "last":
            release.set()
        return "quick"

    steps = (
        '- {id: slow, agent: a, prompt: "s"}\n'
        '- {id: last, agent: b, needs: [first], prompt: "last"}\n'
        '- {id: first, agent: b, prompt: "first"}'
    )
    async with asyncio.timeout(5):
        result = await Piece(AGENTS + steps, a=slow, b=quick).play()
    assert result.ok
    assert order == ["first", "last", "slow"]
    assert [o.key for o in result.outcomes] == ["slow", "last", "first"]


async def test_the_outputs_of_earlier_steps_are_in_the_prompt_text_as_text_and_the_rest_as_json() -> None:
    heard: list[str] = []

    def listen(request: ModelRequest) -> str:
        heard.append(in_turn(request)[0])
        return "{steps.one}"

    steps = (
        f'- {{id: one, agent: a, prompt: "1", {LIST}}}\n'
        '- {id: two, agent: b, needs: [one], prompt: "{steps.one.items} of {steps.one.items.1}"}\n'
        '- {id: three, agent: b, needs: [two], prompt: "{steps.two}"}'
    )
    async with asyncio.timeout(5):
        assert (await Piece(AGENTS + steps, a='{"items":[1,"x {item}"]}', b=listen).play()).ok
    assert heard == ['[1, "x {item}"] of x {item}', "{steps.one}"]


@pytest.mark.parametrize("items, at_once", [(7, 3), (2, 5), (1, 1)])
async def test_a_for_each_holds_its_max_concurrent_and_reaches_it(items: int, at_once: int) -> None:
    inside, peak = 0, 0
    meet = min(items, at_once)
    full = asyncio.Event()

    async def work(request: ModelRequest) -> str:
        nonlocal inside, peak
        inside += 1
        peak = max(peak, inside)
        if inside >= meet:
            full.set()
        await full.wait()
        inside -= 1
        return in_turn(request)[0]

    steps = (
        f'- {{id: plan, agent: a, prompt: "p", {LIST}}}\n'
        f'- {{id: each, agent: b, for_each: plan.items, max_concurrent: {at_once}, prompt: "{{item}}"}}'
    )
    numbers = ",".join(map(str, range(items)))
    async with asyncio.timeout(5):
        result = await Piece(AGENTS + steps, a=f'{{"items":[{numbers}]}}', b=work).play(limits=SessionLimits(alive=2))
    assert result.output("each") == [str(number) for number in range(items)]
    assert peak == meet


async def test_a_for_each_keeps_the_order_of_its_items_whichever_ends_first() -> None:
    ended: list[str] = []
    gates = {name: asyncio.Event() for name in "abc"}

    async def work(request: ModelRequest) -> str:
        name = in_turn(request)[0]
        if name != "c":
            await gates[chr(ord(name) + 1)].wait()
        ended.append(name)
        gates[name].set()
        return name.upper()

    steps = (
        f'- {{id: plan, agent: a, prompt: "p", {LIST}}}\n'
        '- {id: each, agent: b, for_each: plan.items, prompt: "{item}"}'
    )
    piece = Piece(AGENTS + steps, a='{"items":["a","b","c"]}', b=work)
    async with asyncio.timeout(5):
        result = await piece.play()
    assert ended == ["c", "b", "a"]
    assert result.output("each") == ["A", "B", "C"]
    started = [record.key for record in await piece.records(StepStarted)]
    assert started == ["plan", "each[0]", "each[1]", "each[2]"]


async def test_a_for_each_over_nothing_is_done_with_an_empty_list_and_asks_nobody() -> None:
    steps = (
        f'- {{id: plan, agent: a, prompt: "p", {LIST}}}\n'
        '- {id: each, agent: b, for_each: plan.items, prompt: "{item}"}\n'
        '- {id: end, agent: a, needs: [each], prompt: "{steps.each}"}'
    )
    async with asyncio.timeout(5):
        result = await Piece(AGENTS + steps, a=lambda r: in_turn(r)[0].replace("p", '{"items":[]}')).play()
    assert result.ok
    assert result.output("each") == []
    assert of(result, "end").output == "[]"


async def test_an_item_that_fails_fails_its_step_by_name_while_the_others_are_finished() -> None:
    steps = (
        f'- {{id: plan, agent: a, prompt: "p", {LIST}}}\n'
        '- {id: each, agent: b, for_each: plan.items, prompt: "{item}", output: {type: integer}}'
    )
    async with asyncio.timeout(5):
        result = await Piece(AGENTS + steps, a='{"items":[1,"x",3]}', b=lambda r: in_turn(r)[0]).play()
    each = of(result, "each")
    assert not result.ok
    assert not each.ok
    assert each.detail == "1 of 3 items failed: each[1]"
    assert each.output == "[1,null,3]"


async def test_a_failed_background_for_each_is_told_and_its_dependents_see_null() -> None:
    steps = (
        f'- {{id: plan, agent: a, prompt: "p", {LIST}}}\n'
        '- {id: each, agent: b, for_each: plan.items, background: true, prompt: "{item}", output: {type: integer}}\n'
        '- {id: end, agent: c, needs: [each], prompt: "{steps.each}"}'
    )
    piece = Piece(AGENTS + steps, a='{"items":[1,"x"]}', b=lambda r: in_turn(r)[0], c=lambda r: in_turn(r)[0])
    async with asyncio.timeout(5):
        result = await piece.play()
    assert result.ok
    assert of(result, "each").detail == "1 of 2 items failed: each[1]"
    assert of(result, "end").output == "[1, null]"


async def test_a_failed_background_step_is_told_and_does_not_fail_the_run() -> None:
    steps = (
        '- {id: one, agent: a, prompt: "1"}\n'
        '- {id: aside, agent: b, background: true, prompt: "2", output: {type: integer}}'
    )
    async with asyncio.timeout(5):
        result = await Piece(AGENTS + steps, a="fine", b="no number").play()
    assert result.ok
    assert not of(result, "aside").ok
    assert "not the JSON" in of(result, "aside").detail


async def test_the_run_ends_only_when_its_background_steps_have() -> None:
    ended: list[str] = []
    first = asyncio.Event()

    async def aside(_: ModelRequest) -> str:
        await first.wait()
        ended.append("aside")
        return "late"

    def front(_: ModelRequest) -> str:
        first.set()
        return "early"

    steps = '- {id: aside, agent: b, background: true, prompt: "2"}\n- {id: one, agent: a, prompt: "1"}'
    async with asyncio.timeout(5):
        result = await Piece(AGENTS + steps, a=front, b=aside).play()
    assert ended == ["aside"]
    assert of(result, "aside").output == "late"


async def test_what_needs_a_failed_step_is_skipped_with_the_reason_and_the_rest_goes_on() -> None:
    asked: list[str] = []

    def listen(request: ModelRequest) -> str:
        asked.append(in_turn(request)[0])
        return "ok"

    steps = (
        '- {id: bad, agent: a, prompt: "1", output: {type: integer}}\n'
        '- {id: skipped, agent: b, needs: [bad], prompt: "skipped"}\n'
        '- {id: after, agent: b, needs: [skipped], prompt: "after"}\n'
        '- {id: other, agent: c, prompt: "other"}\n'
        '- {id: more, agent: c, needs: [other], prompt: "more"}'
    )
    piece = Piece(AGENTS + steps, a="words", b=listen, c=listen)
    async with asyncio.timeout(5):
        result = await piece.play()
    assert not result.ok
    assert of(result, "skipped").detail == "a step that it needs has failed: bad"
    assert of(result, "after").detail == "a step that it needs has failed: skipped"
    assert asked == ["other", "more"]
    with pytest.raises(KeyError):
        result.output("skipped")
    finished = [record.key for record in await piece.records(StepFinished)]
    assert sorted(finished) == ["after", "bad", "more", "other", "skipped"]


async def test_an_agent_has_one_actor_for_all_its_steps_and_items_are_children_of_it_that_end() -> None:
    steps = (
        f'- {{id: plan, agent: a, prompt: "p", {LIST}}}\n'
        '- {id: each, agent: a, for_each: plan.items, prompt: "{item}"}\n'
        '- {id: end, agent: a, needs: [each], prompt: "end"}\n'
        '- {id: more, agent: b, needs: [each], prompt: "more"}'
    )
    answers = {"p": '{"items":[1,2]}'}
    piece = Piece(AGENTS + steps, a=lambda r: answers.get(in_turn(r)[0], "ok"), b="ok")
    async with asyncio.timeout(5):
        assert (await piece.play()).ok
    by = {record.key: record.by for record in await piece.records(StepStarted)}
    assert by == {
        "plan": "piece/a-0002",
        "each[0]": "piece/a-0002/a-0003",
        "each[1]": "piece/a-0002/a-0004",
        "end": "piece/a-0002",
        "more": "piece/b-0005",
    }
    entries = await piece.entries()
    assert [e.actor for e in entries if isinstance(e.record, ActorExited)] == [by["each[0]"], by["each[1]"]]
    assert len([e for e in entries if isinstance(e.record, ActorSpawned)]) == 5


async def test_steps_of_one_agent_take_turns_in_file_order() -> None:
    inside: list[str] = []

    async def work(request: ModelRequest) -> Any:
        inside.append(f"in {in_turn(request)[0]}")
        await asyncio.sleep(0)
        inside.append(f"out {in_turn(request)[0]}")
        return "ok"

    steps = "\n".join(f'- {{id: s{n}, agent: a, prompt: "{n}"}}' for n in range(3))
    async with asyncio.timeout(5):
        assert (await Piece(AGENTS + steps, a=work).play()).ok
    assert inside == ["in 0", "out 0", "in 1", "out 1", "in 2", "out 2"]


async def test_an_actor_that_crashes_for_good_fails_its_step_and_a_later_step_gets_a_new_one() -> None:
    def work(request: ModelRequest) -> str:
        if in_turn(request)[0] == "crash":
            raise RuntimeError("out of order")
        return "fine"

    steps = (
        '- {id: crash, agent: a, background: true, prompt: "crash"}\n'
        '- {id: between, agent: b, needs: [], prompt: "x"}\n'
        '- {id: again, agent: a, prompt: "again"}'
    )
    piece = Piece(AGENTS + steps, a=work, b="ok")
    async with asyncio.timeout(5):
        result = await piece.play()
    assert result.ok
    assert "out of order" in of(result, "crash").detail
    assert of(result, "again").output == "fine"
    by = {record.key: record.by for record in await piece.records(StepStarted)}
    assert by["again"] != by["crash"]
