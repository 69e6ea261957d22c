"""Tools of a server, from the listing to the answer of a call."""

from __future__ import annotations

import asyncio

import pytest

from actors.grants import Access
from actors.messages import Outcome
from actors.sources import ToolRule
from orchestrator import Policy, Turn
from orchestrator.journal.records import OfferMade
from orchestrator.testing import call
from tests.core.stage import Ledger, names, results, staged
from tests.sources.stage import LIMIT_S, Servers, entries, entry, finished, servers, told, user

__all__ = ["servers"]


async def test_a_tool_of_a_server_is_offered_called_and_answered_like_any_other(servers: Servers) -> None:
    ledger = Ledger()
    definition = user(servers.source("db", "look", "query__records"), direct=(ledger.tool("own"),))
    script = ([call("db__look", x=1), call("db__query__records"), call("own")], "done")
    runner, model = staged(definition, *script)
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        result = await session.run("go")
        offers = [e.record for e in await entries(session) if isinstance(e.record, OfferMade)]
    assert result.output == "done"
    assert names(model.requests[0])[:3] == ["own", "db__look", "db__query__records"]
    assert [item.text for item in results(model.requests[1])] == ['{"x": 1}', "{}", "own ran"]
    assert sorted(servers.called("db")) == ["look", "query__records"]
    assert offers[0].tools == tuple(names(model.requests[0]))
    assert offers[0].fingerprint != definition.fingerprint


async def test_a_servers_error_is_an_error_of_the_call_and_nothing_more(servers: Servers) -> None:
    definition = user(servers.source("db", "look", acts={"look": "fail"}))
    runner, _ = staged(definition, call("db__look"), "done")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        result = await session.run("go")
        seen = await finished(session)
    assert result.output == "done"
    assert (seen["db__look"].outcome, seen["db__look"].text) == (Outcome.ERROR, "no such thing")


@pytest.mark.requirement("I3", "B03")
async def test_a_policy_a_ceiling_and_an_unknown_name_bind_tools_of_a_server_too(servers: Servers) -> None:
    definition = user(servers.source("db", "look", "write", declared={"rules": (ToolRule("write", access="write"),)}))
    runner, model = staged(definition, [call("db__look"), call("db__write"), call("db__absent")], "done")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run(Turn("go", policy=Policy.deny("db__look")))
        seen = await finished(session)
    assert "db__look" not in names(model.requests[0])
    codes = {name: None if result.denial is None else result.denial.code for name, result in seen.items()}
    assert codes == {"db__look": "denied_by_policy", "db__write": None, "db__absent": "unknown_tool"}
    assert servers.called("db") == ["write"]


async def test_what_a_server_does_not_know_it_refuses_and_the_session_goes_on(servers: Servers) -> None:
    source = servers.source("db", "look", "later", pages=[[entry("look")], [], [entry("later")]])
    runner, _ = staged(user(source), [call("db__look"), call("db__later")], "done")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        assert (await session.run("go")).output == "done"
    assert sorted(servers.called("db")) == ["later", "look"]


async def test_an_answer_of_a_megabyte_passes_and_the_model_sees_its_beginning(servers: Servers) -> None:
    source = servers.source("db", "look", acts={"look": "big"}, bytes=1_000_000)
    runner, _ = staged(user(source), call("db__look"), "done")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        seen = await finished(session)
    assert seen["db__look"].outcome is Outcome.OK
    assert "shortened: 1000000 bytes in all" in seen["db__look"].text


async def test_a_structured_answer_is_held_against_the_schema_that_its_tool_declared(servers: Servers) -> None:
    answers = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    right = servers.source("a", entry("look", outputSchema=answers), acts={"look": "structured"}, value={"n": 1})
    wrong = servers.source("b", entry("look", outputSchema=answers), acts={"look": "structured"}, value={"n": "x"})
    runner, _ = staged(user(right, wrong), [call("a__look"), call("b__look")], "done")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        seen = await finished(session)
    assert seen["a__look"].text == '{"n":1}'
    assert seen["b__look"].outcome is Outcome.ERROR
    assert "what its own schema does not allow" in seen["b__look"].text


async def test_arguments_that_break_the_schema_never_reach_the_server(servers: Servers) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    source = servers.source("db", entry("look", inputSchema=schema))
    runner, _ = staged(user(source), [call("db__look", n="x"), call("db__look", n=1)], "done")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
    assert servers.lines("db")[1:] == ['call look {"n": 1}']


async def test_a_write_of_a_server_is_on_record_before_it_starts(servers: Servers) -> None:
    source = servers.source("db", "put", declared={"access": Access.WRITE})
    runner, _ = staged(user(source), call("db__put", x=1), "done")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        kinds = [type(e.record).__name__ for e in await entries(session) if e.actor == "boss"]
    assert kinds.index("CallIntended") < kinds.index("CallFinished")


async def test_progress_is_shown_and_a_call_that_makes_progress_is_not_silent(servers: Servers) -> None:
    source = servers.source("db", "crawl", declared={"call_s": 0.5}, acts={"crawl": "slow"}, steps=8, step_s=0.12)
    runner, _ = staged(user(source), call("db__crawl"), "done")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        events = session.events()
        await session.run("go")
        seen = await finished(session)
        await session.close()
        shown = [event async for event in events if type(event).__name__ == "Progressed"]
    assert seen["db__crawl"].outcome is Outcome.OK
    assert shown
    assert (shown[0].actor, shown[0].total) == ("boss", None)
    assert [event.done for event in shown] == sorted(event.done for event in shown)


async def test_a_call_that_is_silent_too_long_is_given_up_with_an_unknown_outcome(servers: Servers) -> None:
    source = servers.source("db", "wait", "look", declared={"call_s": 0.3}, acts={"wait": "hang"})
    runner, _ = staged(user(source), call("db__wait"), call("db__look"), "done")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        seen = await finished(session)
    assert seen["db__wait"].outcome is Outcome.UNKNOWN
    assert "timed_out: the server db was silent for 0.3 s" in seen["db__wait"].text
    assert seen["db__look"].outcome is Outcome.OK


@pytest.mark.requirement("I9")
async def test_a_write_whose_end_nobody_saw_is_not_sent_again(servers: Servers) -> None:
    source = servers.source("db", "put", declared={"call_s": 0.3, "access": Access.WRITE}, acts={"put": "hang"})
    runner, _ = staged(user(source), call("db__put", x=1), call("db__put", x=1), "done")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        seen = await finished(session)
    assert seen["db__put"].denial is not None
    assert seen["db__put"].denial.code == "unresolved_effect"
    assert servers.called("db") == ["put"]


async def test_stopping_a_turn_tells_the_server_to_stop_its_call(servers: Servers) -> None:
    source = servers.source("db", "wait", acts={"wait": "hang"})
    runner, _ = staged(user(source), call("db__wait"), "done")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        turn = asyncio.ensure_future(session.run("go"))
        while not servers.called("db"):
            await asyncio.sleep(0.01)
        turn.cancel()
        await asyncio.wait({turn})
        while "cancelled wait" not in servers.lines("db"):
            await asyncio.sleep(0.01)
        assert await told(session) == []
