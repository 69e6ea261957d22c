"""Calls that meet the end of their connection or of their session: each ends, and nothing is left over."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

import pytest

from actors.errors import OutcomeUnknown, ToolFault
from actors.messages import Outcome
from orchestrator.journal.source import SourceEnded, SourceStarted
from orchestrator.testing import ScriptedModel, call
from tests.consent.office import Person, at_the_desk, never, office
from tests.core.stage import staged
from tests.sources.stage import LIMIT_S, Servers, entries, finished, marked_processes, servers, told, user

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from orchestrator import Session
    from orchestrator.sources.connection import Connection

__all__ = ["servers"]

FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}


@pytest.fixture(autouse=True)
async def nothing_left() -> AsyncIterator[None]:
    """No task and no process is left over, and nothing was forgotten that warns when it is thrown away."""
    before = asyncio.all_tasks()
    yield
    for _ in range(5):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() - before == {asyncio.current_task()} - before
    gc.collect()


def only(session: Session) -> Connection:
    """The one connection of a session."""
    (connection,) = session._supervisor.registry.sources or ()
    return connection


def pin(connection: Connection, name: str) -> Any:
    """A tool of a server as it was listed."""
    return next(pin for pin in connection.tools.pins or () if pin.name == name)


class Call:
    """What a call is for, as far as these tests need it."""

    actor, turn, call_id = "boss", "t1", "c1"


def calls(connection: Connection, name: str, count: int) -> list[asyncio.Task[Any]]:
    """As many calls of one tool."""
    context: Any = Call()
    tool = pin(connection, name)
    return [asyncio.create_task(connection.call(context, tool, {"n": n}, 30.0)) for n in range(count)]


async def test_of_two_hundred_calls_in_flight_half_are_cancelled_and_the_others_are_answered(servers: Servers) -> None:
    gate = servers.folder / "gate"
    source = servers.source("s", "t", acts={"t": "wait"}, gate=str(gate))
    runner, _ = staged(user(source))
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        flying = calls(only(session), "t", 200)
        while len(servers.called("s")) < 200:
            await asyncio.sleep(0.01)
        for task in flying[::2]:
            task.cancel()
        gate.touch()
        ended = await asyncio.gather(*flying, return_exceptions=True)
        assert only(session).flights == set()
    assert [isinstance(each, asyncio.CancelledError) for each in ended] == [True, False] * 100
    assert [each.text for each in ended[1::2]] == [f'{{"n": {n}}}' for n in range(1, 200, 2)]


@pytest.mark.parametrize("closed_after", [0, 1, 2, 5])
async def test_calls_that_race_with_the_close_end_and_the_close_does_not_wait_for_them(
    servers: Servers, closed_after: int
) -> None:
    source = servers.source("s", "hang", "ok", acts={"hang": "hang"})
    runner, _ = staged(user(source))
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        connection = only(session)
        flying = calls(connection, "hang", 20) + calls(connection, "ok", 20)
        for _ in range(closed_after):
            await asyncio.sleep(0)
        await session.close()
        ended = await asyncio.gather(*flying, return_exceptions=True)
        late = await asyncio.gather(*calls(connection, "ok", 3), return_exceptions=True)
    assert all(isinstance(each, ToolFault) for each in ended[:20])
    assert all(type(each) is ToolFault for each in late)


async def test_calls_while_it_reconnects_wait_for_the_new_connection(servers: Servers) -> None:
    source = servers.source("s", "die", "ok", acts={"die": "die"})
    runner, _ = staged(user(source))
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        connection = only(session)
        (dying,) = calls(connection, "die", 1)
        with pytest.raises(OutcomeUnknown):
            await dying
        answered = await asyncio.gather(*calls(connection, "ok", 20))
    assert [each.text for each in answered] == [f'{{"n": {n}}}' for n in range(20)]


async def test_a_session_is_closed_while_a_server_asks_the_person(servers: Servers) -> None:
    source = servers.source("s", "t", acts={"t": "ask"}, question=FORM)
    person, model = Person(never), ScriptedModel(boss=[call("s__t")])
    async with asyncio.timeout(LIMIT_S), office(user(source), model, approver=at_the_desk(person)) as it:
        turn = asyncio.ensure_future(it.session.run("go"))
        await person.came.wait()
        await it.session.close()
        await asyncio.wait({turn})
        assert person.withdrawn == 1


async def test_a_session_is_closed_while_a_server_is_started_again(servers: Servers) -> None:
    source = servers.source("s", "t")
    runner, _ = staged(user(source))
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        servers.script("s", mute=True)
        connection = only(session)
        assert connection._client is not None
        connection._client.lost("for the test")
        while len(servers.lines("s")) < 2:
            await asyncio.sleep(0.01)
        waiting = calls(connection, "t", 3)
        await session.close()
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        records = [type(e.record) for e in await entries(session)]
    assert all(isinstance(each, ToolFault) for each in ended)
    assert records.count(SourceStarted) == records.count(SourceEnded) == 2


async def test_a_server_that_reads_nothing_holds_up_neither_other_calls_nor_the_close(servers: Servers) -> None:
    deaf = servers.liar("s", "t", deaf=True, declared={"call_s": 0.5})
    runner, _ = staged(user(deaf, servers.source("well", "ok")))
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        connections = {each.source.name: each for each in session._supervisor.registry.sources or ()}
        context: Any = Call()
        tool = pin(connections["s"], "t")
        full = [asyncio.create_task(connections["s"].call(context, tool, {"x": "y" * 500_000}, 0.5)) for _ in range(5)]
        assert len(await asyncio.gather(*calls(connections["well"], "ok", 5))) == 5
        ended = await asyncio.gather(*full, return_exceptions=True)
        began = asyncio.get_running_loop().time()
        await session.close()
        took = asyncio.get_running_loop().time() - began
    assert all(isinstance(each, OutcomeUnknown) for each in ended)
    assert took < 8


async def test_a_server_that_closes_its_output_and_lives_on_is_lost_and_ended(servers: Servers) -> None:
    source = servers.liar("s", "t", "ok", does={"tools/call t": [{"close": True}, {"sleep": 60}]})
    runner, _ = staged(user(source), call("s__t"), call("s__ok"), "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        seen, said = await finished(session), await told(session)
    assert seen["s__t"].outcome is Outcome.UNKNOWN
    assert seen["s__ok"].outcome is Outcome.OK
    assert [kind for kind, _ in said] == ["server_lost", "server_back"]
    first = int(servers.lines("s")[0].split()[1])
    assert first not in marked_processes()


async def test_a_server_that_answers_its_opening_too_late_is_ended_with_its_session(servers: Servers) -> None:
    late = servers.liar(
        "s", "t", does={"initialize": [{"sleep": 1.0}, {"answer": 1}]}, declared={"start_s": 0.5, "required": False}
    )
    runner, _ = staged(user(late, servers.source("well", "ok")), call("well__ok"), "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        said = await told(session)
    assert [(kind, "within 0.5 s" in text) for kind, text in said] == [("source_unavailable", True)]
    assert servers.called("well") == ["ok"]
