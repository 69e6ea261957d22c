"""Servers that die, hang, forget, and come back."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from actors.grants import Access
from actors.messages import Outcome
from actors.sources import MCPSource
from orchestrator import Agent, ResolutionFailed, RuntimeConfig
from orchestrator.testing import ScriptedModel, call
from tests.core.stage import names, staged
from tests.sources.stage import LIMIT_S, Servers, alive, finished, servers, told, user
from tests.sources.web import Web, served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from orchestrator import Session
    from orchestrator.agent import SessionStart

__all__ = ["servers"]

PROMPT_S = 3.0


@pytest.fixture(params=["stdio", "http"])
async def deadly(request: pytest.FixtureRequest, servers: Servers) -> AsyncIterator[MCPSource]:
    """A source, of each transport, with a tool that kills its server's end of the connection."""
    if request.param == "stdio":
        yield servers.source("s", "die", "ok", acts={"die": "die"})
        return
    web = Web()
    await web.open()
    yield MCPSource("s", url=web.url, access=Access.READ, start_s=10.0, call_s=5.0)
    await web.close()


@pytest.mark.requirement("B32")
async def test_a_server_that_dies_in_a_call_is_told_at_once_and_is_back_for_the_next(deadly: MCPSource) -> None:
    runner, _ = staged(user(deadly), call("s__die"), call("s__ok"), "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        began = asyncio.get_running_loop().time()
        result = await session.run("go")
        took = asyncio.get_running_loop().time() - began
        seen, said = await finished(session), await told(session)
    assert result.output == "end"
    assert took < PROMPT_S
    assert seen["s__die"].outcome is Outcome.UNKNOWN
    assert "server_lost: the server s was lost before it answered" in seen["s__die"].text
    assert seen["s__ok"].outcome is Outcome.OK
    assert [kind for kind, _ in said] == ["server_lost", "server_back"]
    assert all(text.startswith("s: ") and len(text) > len("s: ") for _, text in said)


async def test_other_calls_in_flight_at_a_lost_server_end_too_and_other_servers_do_not_notice(servers: Servers) -> None:
    dying = servers.source("s", "die", "wait", acts={"die": "die", "wait": "hang"})
    well = servers.source("t", "ok")
    runner, _ = staged(user(dying, well), [call("s__wait"), call("s__die"), call("t__ok")], "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        seen, said = await finished(session), await told(session)
    assert {name: result.outcome for name, result in seen.items()} == {
        "s__wait": Outcome.UNKNOWN,
        "s__die": Outcome.UNKNOWN,
        "t__ok": Outcome.OK,
    }
    assert {text.partition(":")[0] for _, text in said} == {"s"}


async def test_a_server_that_does_not_come_back_is_unavailable_until_a_later_turn(servers: Servers) -> None:
    source = servers.source("s", "die", "ok", acts={"die": "die"})
    script = (call("s__die"), call("s__ok"), call("s__ok"), "first", call("s__ok"), "second")
    runner, model = staged(user(source), *script)
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        servers.script("s", exit="no licence")
        await session.run("go")
        seen, said = await finished(session), await told(session)
        servers.source("s", "die", "ok")
        assert (await session.run("again")).output == "second"
        again = await finished(session)
    denial = seen["s__ok"].denial
    assert denial is not None
    assert (denial.code, denial.retryable) == ("source_unavailable", "later")
    assert "no licence" in denial.message
    assert [kind for kind, _ in said] == ["server_lost"]
    assert "s__ok" not in names(model.requests[3])
    assert again["s__ok"].outcome is Outcome.OK


@pytest.mark.requirement("I11")
async def test_a_source_that_cannot_start_stops_the_session_and_says_why(servers: Servers) -> None:
    broken = servers.source("s", exit="cannot read licence.txt")
    runner, _ = staged(user(broken), "never")
    async with asyncio.timeout(LIMIT_S), runner:
        with pytest.raises(ResolutionFailed, match=r"MCP source 's' is not there.*cannot read licence.txt"):
            await runner.run("go")


async def test_a_source_that_need_not_be_there_may_be_missing(servers: Servers) -> None:
    broken = servers.source("s", declared={"required": False}, exit="no")
    well = servers.source("t", "ok")
    runner, model = staged(user(broken, well), call("get_api_spec", tool_name="s__look"), "done")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        result = await session.run("go")
        seen, said = await finished(session), await told(session)
    assert result.output == "done"
    assert [name for name in names(model.requests[0]) if "__" in name] == ["t__ok"]
    assert "server_unavailable=[s] requested=[s__look]" in seen["get_api_spec"].text
    assert "will not help" in seen["get_api_spec"].text
    assert [(kind, text[:3]) for kind, text in said] == [("source_unavailable", "s: ")]


@pytest.mark.parametrize("how", ["mute", "loop", "delay"])
async def test_a_server_that_hangs_at_the_start_is_bounded_and_the_others_do_not_wait_for_it(
    servers: Servers, how: str
) -> None:
    script = {"mute": {"mute": True}, "loop": {"loop": "same"}, "delay": {"delay_s": 30}}[how]
    slow = servers.source("slow", "t", declared={"required": False, "start_s": 1.0}, **script)
    well = servers.source("well", "ok")
    runner, _ = staged(user(slow, well), call("well__ok"), "done")
    began = asyncio.get_running_loop().time()
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        took = asyncio.get_running_loop().time() - began
        await session.run("go")
        seen, said = await finished(session), await told(session)
    assert took < 1.0 + PROMPT_S
    assert seen["well__ok"].outcome is Outcome.OK
    expected = "the cursor 'same' came twice" if how == "loop" else "were not listed within 1 s"
    assert [(kind, expected in text) for kind, text in said] == [("source_unavailable", True)]


async def test_a_session_that_a_server_forgot_is_opened_again_and_the_call_is_sent_once_more() -> None:
    async with asyncio.timeout(LIMIT_S), served(Web()) as web:
        source = MCPSource("s", url=web.url, access=Access.WRITE, call_s=5.0)
        runner, _ = staged(user(source), call("s__ok"), call("s__ok", x=1), "end")
        async with runner, runner.start() as session:
            web.sessions.clear()
            await session.run("go")
            seen = await finished(session)
    assert seen["s__ok"].outcome is Outcome.OK
    assert web.calls == ["ok", "ok"]


async def test_a_stream_that_is_cut_leaves_an_unknown_outcome_and_is_not_sent_again() -> None:
    async with asyncio.timeout(LIMIT_S), served(Web()) as web:
        source = MCPSource("s", url=web.url, access=Access.WRITE, call_s=5.0)
        runner, _ = staged(user(source), call("s__cut"), call("s__cut"), "end")
        async with runner, runner.start() as session:
            await session.run("go")
            seen = await finished(session)
    assert seen["s__cut"].denial is not None
    assert seen["s__cut"].denial.code == "unresolved_effect"
    assert web.calls == ["cut"]


@pytest.mark.parametrize("status", [401, 403, 500])
async def test_how_http_went_is_in_the_reason(status: int) -> None:
    async with asyncio.timeout(LIMIT_S), served(Web()) as web:
        web.status = status
        source = MCPSource("s", url=web.url, access=Access.READ)
        runner, _ = staged(user(source), "never")
        async with runner:
            with pytest.raises(ResolutionFailed, match=f"HTTP {status}"):
                await runner.run("go")


async def test_a_server_that_nobody_serves_is_told_as_such() -> None:
    async with served(Web()) as web:
        url = web.url
    runner, _ = staged(user(MCPSource("s", url=url, access=Access.READ)), "never")
    async with asyncio.timeout(LIMIT_S), runner:
        with pytest.raises(ResolutionFailed, match=r"MCP source 's' is not there: .*[Cc]onnect"):
            await runner.run("go")


async def test_headers_are_filled_in_from_the_environment_and_stand_nowhere_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOKEN_OF_WEB", "t0p-secret")
    async with asyncio.timeout(LIMIT_S), served(Web()) as web:
        source = MCPSource("s", url=web.url, access=Access.READ, headers={"Authorization": "Bearer ${TOKEN_OF_WEB}"})
        runner, _ = staged(user(source), call("s__ok"), "end")
        async with runner, runner.start() as session:
            await session.run("go")
            journal = "".join(map(repr, await session._supervisor.journal.read(0)))
    assert {headers.get("authorization") for headers in web.headers} == {"Bearer t0p-secret"}
    assert "t0p-secret" not in journal
    assert "t0p-secret" not in repr(source.declaration())


async def test_a_header_that_no_header_can_hold_is_named_and_its_value_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_OF_WEB", "t0p-secret\nX-Other: 1")
    async with asyncio.timeout(LIMIT_S), served(Web()) as web:
        source = MCPSource("s", url=web.url, access=Access.READ, headers={"Authorization": "Bearer ${TOKEN_OF_WEB}"})
        async with Agent(user(source), RuntimeConfig(ScriptedModel())) as runner:
            with pytest.raises(ResolutionFailed, match="the value of its header Authorization holds") as caught:
                await runner.run("go")
        assert web.headers == []
    assert "t0p-secret" not in str(caught.value)


async def test_a_variable_that_is_not_set_is_named_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_SET_HERE", raising=False)
    async with asyncio.timeout(LIMIT_S), served(Web()) as web:
        source = MCPSource("s", url=web.url, access=Access.READ, headers={"X": "${NOT_SET_HERE}"})
        async with Agent(user(source), RuntimeConfig(ScriptedModel())) as runner:
            with pytest.raises(ResolutionFailed, match="needs the environment variable NOT_SET_HERE"):
                await runner.run("go")
        assert web.headers == []


@pytest.mark.requirement("B40")
async def test_sessions_with_sources_are_closed_in_any_order_from_any_task_and_twice(servers: Servers) -> None:
    sources = [servers.source(name, "ok") for name in ("a", "b", "c")]
    async with asyncio.timeout(LIMIT_S), AsyncExitStack() as stack:
        starts: list[SessionStart] = []
        for source in sources:
            runner = await stack.enter_async_context(staged(user(source), call(f"{source.name}__ok"), "done")[0])
            starts.append(runner.start())
        opened: list[asyncio.Future[Session]] = [asyncio.get_running_loop().create_future() for _ in starts]

        async def owned(start: SessionStart, told: asyncio.Future[Session]) -> None:
            async with start as session:
                told.set_result(session)
                await asyncio.Event().wait()

        opener = asyncio.create_task(owned(starts[1], opened[1]))
        for number in (0, 2):
            opened[number].set_result(await asyncio.create_task(starts[number].__aenter__()))
        sessions = await asyncio.gather(*opened)
        await asyncio.create_task(sessions[0].close())
        opener.cancel()
        await asyncio.wait({opener})
        assert alive(servers.lines("b")) == []
        assert (await asyncio.create_task(sessions[2].run("go"))).output == "done"
        for session in sessions:
            await asyncio.gather(session.close(), session.close())
        for start in starts:
            await start.close()
    assert [alive(servers.lines(name)) for name in ("a", "b", "c")] == [[], [], []]
    assert asyncio.all_tasks() == {asyncio.current_task()}
