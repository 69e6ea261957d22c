"""Servers that never stop: what they can make the session do is bounded, and so is what it writes down about them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from actors.messages import Outcome
from orchestrator.journal.source import SourceStarted
from orchestrator.testing import ScriptedModel, call
from tests.consent.office import Person, answered, approve, at_the_desk, office
from tests.core.stage import staged
from tests.sources.stage import LIMIT_S, Servers, entries, entry, finished, servers, told, user
from tests.sources.test_lost import PROMPT_S, deadly

if TYPE_CHECKING:
    from actors.sources import MCPSource

__all__ = ["deadly", "servers"]

TIMES = 3000


def note(method: str, params: str = "{}", times: int = TIMES) -> dict[str, Any]:
    """A step that sends a notification again and again."""
    return {"line": f'{{"jsonrpc":"2.0","method":"notifications/{method}","params":{params}}}', "times": times}


def request(method: str, params: str = "{}", times: int = 300) -> dict[str, Any]:
    """A step that asks us for something again and again."""
    return {"line": f'{{"jsonrpc":"2.0","id":"{method}$N","method":"{method}","params":{params}}}', "times": times}


LOG = note("message", '{"level":"info","data":"x"}')
PROGRESS = note("progress", '{"progressToken":"none","progress":$N}')
FORM = '{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}'
ANSWER = {"answer": True}


async def test_a_server_that_dies_as_soon_as_it_is_up_is_tried_again_once_in_each_turn(servers: Servers) -> None:
    source = servers.liar("s", "t", does={"tools/list": [ANSWER, {"sleep": 0.1}, {"exit": 3}]})
    runner, _ = staged(user(source), "one", "two")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        (connection,) = session._supervisor.registry.sources or ()
        for starts, task in ((2, "go"), (4, "again"), (6, "")):
            while connection.standing != "down":
                await asyncio.sleep(0.01)
            assert len([e for e in await entries(session) if isinstance(e.record, SourceStarted)]) == starts
            if task:
                await session.run(task)


async def test_a_second_death_in_one_turn_makes_the_source_unavailable(servers: Servers) -> None:
    source = servers.liar("s", "die", "ok", does={"tools/call die": [{"exit": 3}]})
    script = [call("s__die"), call("s__ok"), call("s__die"), call("s__die"), call("s__ok"), "one", call("s__ok"), "two"]
    runner, _ = staged(user(source), *script)
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        first = await finished(session)
        await session.run("again")
        second = await finished(session)
    assert servers.called("s") == ["die", "ok", "die", "die", "ok"]
    assert first["s__ok"].outcome is not Outcome.OK
    assert "source_unavailable" in first["s__ok"].text
    assert second["s__ok"].outcome is Outcome.OK


@pytest.mark.requirement("B32")
async def test_a_call_beside_the_one_that_kills_its_server_ends_and_the_next_is_answered(deadly: MCPSource) -> None:
    runner, model = staged(user(deadly), [call("s__die"), call("s__ok")], call("s__ok"), "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        async with asyncio.timeout(PROMPT_S):
            result = await session.run("go")
        said = await told(session)
    dead, beside = model.requests[1].history[-1].results
    (after,) = model.requests[2].history[-1].results
    assert result.output == "end"
    assert (dead.outcome, after.outcome) == (Outcome.UNKNOWN, Outcome.OK)
    assert "server_lost: the server s was lost before it answered" in dead.text
    assert beside.outcome is Outcome.OK or "server_lost: the server s" in beside.text
    assert [kind for kind, _ in said] == ["server_lost", "server_back"]


async def test_notifications_without_end_make_no_call_last_and_list_the_tools_a_few_times(servers: Servers) -> None:
    storm = [
        note("tools/list_changed"),
        LOG,
        PROGRESS,
        note("resources/updated", '{"uri":"a://b"}'),
        note("unheard/of"),
    ]
    source = servers.liar("s", "t", "u", declared={"call_s": 15.0}, does={"tools/call t": [*storm, ANSWER]})
    runner, _ = staged(user(source), call("s__t"), call("s__u"), "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        while servers.lines("s").count("listed") < 2:
            await asyncio.sleep(0.01)
        seen, said = await finished(session), await told(session)
    assert {name: result.outcome for name, result in seen.items()} == {"s__t": Outcome.OK, "s__u": Outcome.OK}
    assert servers.lines("s").count("listed") in (2, 3)
    assert said == []


async def test_neither_log_lines_nor_progress_that_stands_still_keep_a_silent_call_alive(servers: Servers) -> None:
    chatter = [
        {"line": LOG["line"]},
        {"line": PROGRESS["line"].replace('"none"', "4").replace("$N", "1")},
        {"sleep": 0.1},
    ]
    source = servers.liar("s", "t", declared={"call_s": 0.4}, does={"tools/call t": chatter * 100})
    runner, _ = staged(user(source), call("s__t"), "end")
    began = asyncio.get_running_loop().time()
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        seen = await finished(session)
    assert "timed_out: the server s was silent for 0.4 s" in seen["s__t"].text
    assert asyncio.get_running_loop().time() - began < 8


async def test_a_call_whose_progress_never_ends_is_given_up_in_the_end(servers: Servers, monkeypatch: Any) -> None:
    monkeypatch.setattr("orchestrator.sources.client.MAX_SPANS", 3)
    source = servers.source("s", "t", declared={"call_s": 0.2}, acts={"t": "slow"}, steps=200, step_s=0.05)
    runner, _ = staged(user(source), call("s__t"), "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        seen = await finished(session)
    assert "timed_out: the server s had no end within 0.6 s" in seen["s__t"].text


async def test_what_is_not_offered_to_a_server_is_refused_however_often_it_asks(servers: Servers) -> None:
    asks = [request("sampling/createMessage", '{"messages":[],"maxTokens":5}'), request("roots/list"), request("ping")]
    source = servers.liar("s", "t", does={"tools/call t": [*asks, request("un/known"), ANSWER]})
    runner, _ = staged(user(source), call("s__t"), "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        seen = await finished(session)
    assert seen["s__t"].outcome is Outcome.OK


async def test_a_person_is_asked_a_few_questions_for_one_call_and_no_more(servers: Servers) -> None:
    storm = request("elicitation/create", FORM)
    source = servers.liar("s", "t", does={"tools/call t": [storm, ANSWER]})
    person = Person(*[lambda question: approve(question.approval, reason="x")] * 300)
    model = ScriptedModel(boss=[call("s__t"), "done"])
    async with asyncio.timeout(LIMIT_S), office(user(source), model, approver=at_the_desk(person)) as it:
        await it.session.run("go")
        (seen,) = await answered(it, "boss", "s__t")
        said = await told(it.session)
    assert seen.outcome is Outcome.OK
    assert len(person.asked) == 10
    assert [kind for kind, _ in said] == ["question_declined"] * 51
    assert "told for the 100th time" in said[-1][1]


async def test_a_question_outside_any_call_is_declined_and_told_a_few_times(servers: Servers) -> None:
    source = servers.liar("s", "t", does={"tools/list": [ANSWER, request("elicitation/create", FORM)]})
    person, model = Person(), ScriptedModel(boss=["done"])
    async with asyncio.timeout(LIMIT_S), office(user(source), model, approver=at_the_desk(person)) as it:
        await it.session.run("go")
        while sum(line.startswith("answered") for line in servers.lines("s")) < 300:
            await asyncio.sleep(0.01)
        said = await told(it.session)
    assert person.asked == []
    assert [kind for kind, _ in said] == ["question_declined"] * 51
    assert "told for the 100th time" in said[-1][1]
    assert "it asked with 0 calls in flight" in said[0][1]


async def test_a_server_that_is_another_one_at_each_listing_is_told_a_few_times(servers: Servers) -> None:
    changing = [{"line": '{"jsonrpc":"2.0","id":$ID,"result":{"tools":[{"name":"t","description":"$CLOCK"}]}}'}]
    storm = note("tools/list_changed")
    source = servers.liar("s", "t", does={"tools/list": [*changing, storm]})
    runner, _ = staged(user(source), "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        while servers.lines("s").count("listed") < 4:
            await asyncio.sleep(0.05)
        said = await told(session)
    assert 2 <= len(said) <= 5
    assert {kind for kind, _ in said} == {"tool_definition_changed"}


async def test_junk_and_error_output_without_end_are_bounded_and_the_tool_answers(servers: Servers) -> None:
    flood = [{"line": "not a message $N", "times": 30_000}, {"err": "y" * 100, "times": 30_000}]
    source = servers.liar("s", entry("t"), declared={"call_s": 15.0}, does={"tools/call t": [*flood, ANSWER]})
    runner, _ = staged(user(source), call("s__t"), "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        seen, said = await finished(session), await told(session)
        (connection,) = session._supervisor.registry.sources or ()
        assert 100 <= len(connection.diagnosis.last_words()) <= 400
    assert seen["s__t"].outcome is Outcome.OK
    assert connection.diagnosis.dropped == 30_000
    assert [kind for kind, _ in said] == ["source_junk"] * 5
