"""An agent held to a JSON Schema: its final answer is right, is put right in one correction, or fails its turn."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from actors.answers import CORRECTION, unfenced
from actors.grants import Access
from actors.messages import Limits, ModelReplied, ModelReply, ReplyStop, Said, StopReason, TurnOrigin, Usage
from actors.ports import ModelError
from actors.tools import tool
from orchestrator.errors import ResolutionFailed
from orchestrator.journal.fold import fold
from orchestrator.journal.memory import MemoryStore
from orchestrator.journal.records import ChildStatus, Noted, OutcomeRecorded, TurnAccepted, TurnEnded
from orchestrator.models.function import FunctionModel, call
from orchestrator.testing import ManualClock
from orchestrator.turn import Stop, Turn
from orchestrator.validators import answer_faults
from tests.supervision.scene import agent, cut, faults, heard, plays, scene, script

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.ports import ModelRequest
    from orchestrator.turn import Result
    from tests.supervision.scene import Scene

SCHEMA = '{"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"}'
RIGHT, WRONG = '{"n": 1}', '{"n":"one"}'
FAULT = 'n: "one" is not of type "integer"'


@tool
async def look(n: int) -> str:
    """Look."""
    return f"saw {n}"


def held(*tools: Any, **more: Any) -> Any:
    """A boss that is held to `SCHEMA`."""
    return agent("boss", *(tools or (look,)), output=SCHEMA, **more)


async def run(*answers: Any, limits: Limits | None = None) -> tuple[Result, Scene, list[ModelRequest]]:
    """Play *answers* in one turn; return how it ended, the closed session, and each request."""
    requests: list[ModelRequest] = []

    def play(request: ModelRequest) -> Any:
        requests.append(request)
        return script(*answers)(request)

    async with asyncio.timeout(5), scene(held(), plays(boss=play)) as it:
        result = await it.session.run(Turn("go", limits=limits or Limits()))
    assert faults(await it.entries()) == []
    assert fold(await it.entries()).actors["boss"].loop == it.supervisor.members["boss"].actor.state
    return result, it, requests


def corrections(request: ModelRequest) -> list[str]:
    """Every correction that an actor has been given."""
    return [text for text in heard(request) if text.startswith(CORRECTION)]


async def test_an_answer_that_is_as_asked_is_the_output_and_nobody_is_told_anything() -> None:
    result, it, requests = await run(RIGHT)
    assert (result.stop_reason, result.output, result.diagnostics) == (StopReason.COMPLETED, RIGHT, ())
    assert len(requests) == 1
    assert SCHEMA in requests[0].instructions
    assert await it.records(Noted) == []
    (replied,) = await it.records(ModelReplied)
    assert (replied.fault, replied.answer) == ("", "")


@pytest.mark.parametrize(
    "first, fault",
    [
        (WRONG, FAULT),
        ("{}", 'the output: "n" is a required property'),
        (
            "It is one.",
            "the answer is not the JSON that was asked for (JSON is malformed: invalid character (byte 0)): ",
        ),
        ("", "the answer is not the JSON that was asked for (Input data was truncated): "),
        ("NaN", "the answer is not the JSON that was asked for"),
        ("[" * 100_000, "the answer is not the JSON that was asked for"),
        (f"{'[' * 900}{']' * 900}", "the output cannot be checked: Recursion limit reached"),
        (f"Here it is: {RIGHT}", "the answer is not the JSON that was asked for"),
        (f"```json\n{RIGHT}\n```\nThere.", "the answer is not the JSON that was asked for"),
    ],
)
async def test_an_answer_that_is_put_right_in_its_one_correction_completes_the_turn(first: str, fault: str) -> None:
    result, it, requests = await run(first, RIGHT)
    assert (result.stop_reason, result.output, result.diagnostics) == (StopReason.COMPLETED, RIGHT, ())
    (told,) = corrections(requests[1])
    assert told.startswith(CORRECTION + fault)
    assert len(told) < 1000
    assert requests[1].history[1] == ModelReply(first, (), usage=requests[1].history[1].usage)  # type: ignore[union-attr]
    assert [len(request.tools) for request in requests] == [len(requests[0].tools)] * 2
    (note,) = await it.records(Noted)
    assert (note.kind, note.text[: len(fault) + 26]) == ("wrong_answer", f"the answer was sent back: {fault}")
    assert [end.reason for end in await it.records(TurnEnded)] == [StopReason.COMPLETED]


async def test_a_second_answer_that_is_wrong_fails_the_turn_which_keeps_the_text_and_says_the_fault() -> None:
    result, it, requests = await run(WRONG, "one, then", RIGHT)
    assert (result.stop_reason, result.output) == (StopReason.FAILED, "one, then")
    assert result.diagnostics[0].startswith("the answer is not the JSON that was asked for")
    assert len(requests) == 2
    (end,) = await it.records(TurnEnded)
    assert end.detail == result.diagnostics[0]
    texts = [item.text for item in it.supervisor.members["boss"].actor.state.history if isinstance(item, ModelReply)]
    assert texts == [WRONG, "one, then"]


async def test_what_is_said_of_many_long_faults_is_bounded() -> None:
    async with asyncio.timeout(5):
        wrong = '{"n":"' + "x" * 100_000 + '"}'
        result, _, requests = await run(wrong, wrong)
    assert len(corrections(requests[1])[0]) < 600
    assert len(result.diagnostics[0]) <= 300
    assert result.output == wrong
    several = answer_faults('{"items":{"type":"integer"}}', "[" + ",".join(['"y"'] * 10_000) + "]")
    assert [fault[:3] for fault in several] == ["0: ", "1: ", "2: ", "3: ", "4: "]


async def test_the_next_turn_has_a_correction_of_its_own() -> None:
    async with asyncio.timeout(5), scene(held(), plays(boss=[WRONG, RIGHT, WRONG, RIGHT])) as it:
        assert [(await it.session.run("go")).stop_reason for _ in range(2)] == [StopReason.COMPLETED] * 2
        assert len(await it.records(Noted)) == 2


async def test_tools_may_be_used_after_the_correction_and_there_is_no_second_one() -> None:
    result, _, requests = await run(WRONG, call("look", n=1), RIGHT)
    assert (result.stop_reason, result.output, result.usage.calls) == (StopReason.COMPLETED, RIGHT, 1)
    result, _, requests = await run(call("look", n=1), WRONG, call("look", n=2), WRONG)
    assert (result.stop_reason, result.output, result.diagnostics) == (StopReason.FAILED, WRONG, (FAULT,))
    assert len(corrections(requests[-1])) == 1


FENCED = [f"```json\n{RIGHT}\n```", f"\n```JSON \n{RIGHT}```\n", f"```\r\n{RIGHT}\r\n```"]


@pytest.mark.parametrize("fenced", FENCED)
async def test_json_in_one_fence_is_taken_out_of_it_and_the_history_keeps_what_was_said(fenced: str) -> None:
    result, it, requests = await run(fenced)
    assert (result.stop_reason, result.output, len(requests)) == (StopReason.COMPLETED, RIGHT, 1)
    said = it.supervisor.members["boss"].actor.state.history[-1]
    assert isinstance(said, ModelReply)
    assert said.text == fenced
    (replied,) = await it.records(ModelReplied)
    assert (replied.fault, replied.answer) == ("", RIGHT)


async def test_wrong_json_in_a_fence_is_corrected_for_what_is_in_it() -> None:
    result, _, requests = await run(f"```json\n{WRONG}\n```", f"```\n{WRONG}\n```")
    assert corrections(requests[1])[0].startswith(CORRECTION + FAULT)
    assert (result.stop_reason, result.output) == (StopReason.FAILED, WRONG)


@pytest.mark.parametrize(
    "text",
    [
        RIGHT,
        f"``` {RIGHT} ```",
        f"```yaml\n{RIGHT}\n```",
        f"~~~json\n{RIGHT}\n~~~",
        f"```json\n{RIGHT}\n",
        f"```json\n{RIGHT}\n```\n```json\n{RIGHT}\n```",
        f"See:\n```json\n{RIGHT}\n```",
        "```\nno json\n```",
        "```",
        "",
    ],
)
def test_a_text_that_is_more_or_less_than_one_fence_around_json_is_left_as_it_is(text: str) -> None:
    assert unfenced(text) == text


async def test_a_message_that_came_before_the_text_goes_first_and_its_answer_is_the_one_that_counts() -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async def play(request: ModelRequest) -> Any:
        if len(request.history) == 1:
            asked.set()
            await go.wait()
        return script(WRONG, WRONG, RIGHT)(request)

    async with asyncio.timeout(5), scene(held(), FunctionModel({"boss": play})) as it:
        running = asyncio.create_task(it.session.run("go"))
        await asked.wait()
        await it.session.send("and mind the step")
        go.set()
        assert ((await running).output, running.result().stop_reason) == (RIGHT, StopReason.COMPLETED)
        said = [item.text for item in it.supervisor.members["boss"].actor.state.history if isinstance(item, Said)]
    assert said[:2] == ["go", "and mind the step"]
    assert said[2].startswith(CORRECTION)
    assert len(said) == 3


async def test_a_message_during_the_correction_gives_no_second_correction() -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async def play(request: ModelRequest) -> Any:
        if len(request.history) == 3:
            asked.set()
            await go.wait()
        return script(WRONG, WRONG, WRONG)(request)

    async with asyncio.timeout(5), scene(held(), FunctionModel({"boss": play})) as it:
        running = asyncio.create_task(it.session.run("go"))
        await asked.wait()
        await it.session.send("by the way")
        go.set()
        result = await running
        assert (result.stop_reason, result.output, result.diagnostics) == (StopReason.FAILED, WRONG, (FAULT,))
        assert len(await it.records(ModelReplied)) == 3
        assert len(await it.records(Noted)) == 1


def cost(text: str, tokens: int = 0, stop: ReplyStop = ReplyStop.END) -> ModelReply:
    return ModelReply(text, stop=stop, usage=Usage(output_tokens=tokens, requests=1))


async def test_a_turn_whose_tokens_are_spent_is_not_corrected_and_says_the_fault() -> None:
    result, _, requests = await run(cost(WRONG, 10), RIGHT, limits=Limits(tokens=10))
    assert (result.stop_reason, result.output, result.diagnostics) == (StopReason.MAX_TOKENS, WRONG, (FAULT,))
    assert len(requests) == 1
    result, _, requests = await run(cost(RIGHT, 10), limits=Limits(tokens=10))
    assert (result.stop_reason, result.diagnostics) == (StopReason.COMPLETED, ())
    result, _, requests = await run(cost(WRONG, 9), cost(WRONG, 1), limits=Limits(tokens=10))
    assert (result.stop_reason, result.diagnostics, len(requests)) == (StopReason.FAILED, (FAULT,), 2)


async def test_at_the_step_limit_the_correction_is_the_last_request_without_tools_and_gets_no_further_one() -> None:
    result, _, requests = await run(WRONG, WRONG, RIGHT, limits=Limits(steps=1))
    assert (result.stop_reason, result.output, result.diagnostics) == (StopReason.MAX_STEPS, WRONG, (FAULT,))
    assert [bool(request.tools) for request in requests] == [True, False]
    result, _, requests = await run(call("look", n=1), WRONG, RIGHT, limits=Limits(steps=1))
    assert (result.stop_reason, result.output, result.diagnostics) == (StopReason.MAX_STEPS, WRONG, (FAULT,))
    assert len(requests) == 2


async def test_the_time_limit_of_the_turn_goes_on_through_its_correction_and_the_answer_is_kept() -> None:
    clock, corrected = ManualClock(), asyncio.Event()

    async def play(request: ModelRequest) -> str:
        if corrections(request):
            corrected.set()
            await asyncio.Event().wait()
        return WRONG

    async with asyncio.timeout(5), scene(held(), FunctionModel({"boss": play}), clock=clock) as it:
        running = asyncio.create_task(it.session.run(Turn("go", limits=Limits(seconds=9))))
        await corrected.wait()
        clock.advance(9)
        result = await running
        assert (result.stop_reason, result.output) == (StopReason.TIMED_OUT, WRONG)


async def test_a_stop_or_a_fault_of_the_model_during_the_correction_ends_the_turn_and_keeps_the_answer() -> None:
    corrected = asyncio.Event()

    async def play(request: ModelRequest) -> str:
        if not corrections(request):
            return WRONG
        if heard(request)[0] == "fail":
            message = "no line"
            raise ModelError(message)
        corrected.set()
        await asyncio.Event().wait()
        return RIGHT

    async with asyncio.timeout(5), scene(held(), FunctionModel({"boss": play})) as it:
        running = asyncio.create_task(it.session.run("stop"))
        await corrected.wait()
        await it.session.send(Stop())
        assert ((await running).stop_reason, running.result().output) == (StopReason.CANCELLED, WRONG)
    async with asyncio.timeout(5), scene(held(), FunctionModel({"boss": play})) as it:
        result = await it.session.run("fail")
        assert (result.stop_reason, result.output, result.diagnostics) == (StopReason.FAILED, WRONG, ("no line",))


async def test_an_answer_that_was_cut_is_told_so_and_a_model_that_refuses_is_not_asked_again() -> None:
    result, it, requests = await run(cost('{"n":', stop=ReplyStop.LENGTH), RIGHT)
    assert result.stop_reason is StopReason.COMPLETED
    assert corrections(requests[1])[0].startswith(f"{CORRECTION}the output limit cut the answer; the answer is not")
    assert [note.kind for note in await it.records(Noted)] == ["output_truncated", "wrong_answer"]
    result, _, requests = await run(cost(RIGHT, stop=ReplyStop.LENGTH))
    assert (result.stop_reason, result.diagnostics) == (StopReason.COMPLETED, ("the output limit cut the answer",))
    result, _, requests = await run(cost("I will not.", stop=ReplyStop.REFUSED), RIGHT)
    assert (result.stop_reason, result.output, len(requests)) == (StopReason.FAILED, "I will not.", 1)
    result, _, _ = await run(cost(RIGHT, stop=ReplyStop.REFUSED))
    assert result.stop_reason is StopReason.COMPLETED


async def test_an_agent_without_a_schema_may_say_anything() -> None:
    async with asyncio.timeout(5), scene(agent("boss"), plays(boss=[f"```json\n{RIGHT}\n```"])) as it:
        assert (await it.session.run("go")).output == f"```json\n{RIGHT}\n```"
        assert await it.records(Noted) == []


def parent() -> Any:
    return agent("boss", children=[agent("worker", look, output=SCHEMA)])


async def test_a_childs_wrong_answer_is_a_failed_outcome_with_the_fault_and_its_last_words_bounded() -> None:
    wrong = '{"n":"' + "x" * 100_000 + '"}'
    delegate = call("delegate", child="worker", task="count")
    results = []

    def boss(request: ModelRequest) -> Any:
        results[:] = [item for item in request.history if hasattr(item, "results")]
        return script(delegate, delegate, "done")(request)

    def worker(request: ModelRequest) -> str:
        return script(wrong, wrong)(request) if request.actor.endswith("2") else script(WRONG, RIGHT)(request)

    async with asyncio.timeout(5), scene(parent(), FunctionModel({"boss": boss, "worker": worker})) as it:
        assert (await it.session.run("go")).output == "done"
        failed, fine = await it.records(OutcomeRecorded)
        entries = await it.entries()
    assert (failed.status, fine.status, fine.text) == (ChildStatus.FAILED, ChildStatus.COMPLETED, RIGHT)
    assert failed.text.startswith('worker-0002 ended as failed: n: "xxx')
    assert '\nIts last words: {"n":"xxx' in failed.text
    assert len(failed.text) < 17_000
    assert [item.results[0].outcome.value for item in results] == ["error", "ok"]
    assert faults(entries) == []


async def test_a_turn_born_of_a_notice_is_held_to_the_schema_like_any_other() -> None:
    boss = agent("boss", children=[agent("worker")], output=SCHEMA)
    begin = call("delegate", child="worker", task="t", background=True)
    async with asyncio.timeout(5), scene(boss, plays(boss=[begin, RIGHT, WRONG, WRONG], worker=["w"])) as it:
        await it.session.run("go")
        await it.quiet()
        notice = next(turn.turn for turn in await it.records(TurnAccepted) if turn.origin is TurnOrigin.NOTICE)
        (end,) = [end for end in await it.records(TurnEnded) if end.turn == notice]
        assert (end.reason, end.output, end.detail) == (StopReason.FAILED, WRONG, FAULT)


def corrected_at_last(ledger: list[str]) -> tuple[Any, FunctionModel]:
    """A boss that writes and is corrected, with a child that is corrected in vain."""

    @tool(access=Access.WRITE)
    async def write(n: int) -> str:
        """Write."""
        ledger.append(str(n))
        return f"wrote {n}"

    boss = held(write, children=[agent("worker", write, output=SCHEMA)])
    delegate = call("delegate", child="worker", task="count")
    answers = [call("write", n=1), delegate, WRONG, call("write", n=2), RIGHT]
    return boss, plays(boss=answers, worker=[WRONG, call("write", n=3), WRONG, "never asked"])


async def test_a_session_cut_off_at_any_record_corrects_each_answer_once_and_no_more() -> None:
    store = MemoryStore()
    definition, model = corrected_at_last([])
    async with asyncio.timeout(5), scene(definition, model, store=store) as it:
        await it.session.run("go")
        whole, handle = await it.entries(), it.session.snapshot()
    found: dict[int, Any] = {}
    last = next(entry.seq for entry in whole if isinstance(entry.record, TurnEnded) and entry.actor == "boss")
    for length in range(1, last):
        definition, model = corrected_at_last([])
        left = cut(store, handle.session, length)
        async with asyncio.timeout(5), scene(definition, model, store=left, handle=handle) as it:
            result = await it.session.run("go" if not it.supervisor.journal.state.turns else None)
            await it.quiet()
            entries = await it.entries()
        state = fold(entries)
        replies = [e.record for e in entries if isinstance(e.record, ModelReplied)]
        seen = [
            (actor.path.partition("-")[0], sum(CORRECTION in getattr(item, "text", "") for item in actor.loop.history))
            for actor in state.actors.values()
        ]
        outcomes = [outcome.status for outcome in state.outcomes.values()]
        got = (result.stop_reason, result.output, seen, outcomes, [bool(r.fault) for r in replies], faults(entries))
        wanted = (
            StopReason.COMPLETED,
            RIGHT,
            [("boss", 1), ("boss/worker", 1)],
            [ChildStatus.FAILED],
            [False, False, True, False, True, True, False, False],
            [],
        )
        if got != wanted:
            found[length] = got
    assert found == {}
    assert last > 20


BAD = '{"properties":{"n":{"type":"nonsense"}}}'
AWAY = '{"$ref":"#/$defs/gone"}'


@pytest.mark.parametrize(
    "build", [lambda s: agent("boss", output=s), lambda s: agent("boss", children=[agent("w", output=s)])]
)
@pytest.mark.parametrize("schema", [BAD, AWAY])
async def test_a_schema_that_cannot_be_used_stops_the_start_and_names_its_agent(
    build: Callable[[str], Any], schema: str
) -> None:
    definition = build(schema)
    name = "w" if definition.children else "boss"
    with pytest.raises(ResolutionFailed, match=rf"{name}.*\n?.*its output schema cannot be used") as caught:
        async with scene(definition, plays(boss=["x"])):
            pass
    assert "boss" in str(caught.value) or definition.children
