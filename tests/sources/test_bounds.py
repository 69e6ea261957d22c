"""What bounds a source: how long and how many start, how often they are listed and shown, what is kept of a call."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from actors import AgentDefinition, Role
from actors.grants import Access
from actors.messages import Outcome
from actors.sources import MCPSource
from orchestrator.events import Progressed
from orchestrator.sources import sieve
from orchestrator.sources.calling import Flight, Questions, call_tool
from orchestrator.sources.connection import LEAVE_S
from orchestrator.testing import call
from tests.core.stage import staged
from tests.sources.stage import LIMIT_S, Servers, finished, servers, user
from tests.sources.test_racing import calls, only
from tests.sources.web import Web, served

__all__ = ["servers"]

CHANGED = {"line": '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'}
PROGRESS = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$ID,"progress":$N,"total":99}}'
ENDLESS = '{"jsonrpc":"2.0","id":$ID,"result":{"resources":[{"uri":"a://b","name":"n"}],"nextCursor":"$CLOCK"}}'
ANSWER = {"answer": True}
FOREVER_S = 600.0


@pytest.mark.parametrize("limits", [(0.1, 15.0), (15.0, 0.1)], ids=["the longer one last", "the longer one first"])
async def test_of_two_definitions_with_one_server_the_one_that_waits_longest_for_it_counts(
    limits: tuple[float, float],
) -> None:
    web = Web()
    web.delay_s = 0.2
    async with asyncio.timeout(LIMIT_S), served(web):
        first, second = (MCPSource("s", url=web.url, access=Access.READ, start_s=each, call_s=5.0) for each in limits)
        child: AgentDefinition = user(second, name="helper", role=Role.CHILD)
        runner, _ = staged(user(first, role=Role.BUILDER, children=(child,)), call("s__ok"), "end")
        async with runner, runner.start() as session:
            await session.run("go")
            seen = await finished(session)
            assert only(session).source.start_s == max(limits)
    assert seen["s__ok"].outcome is Outcome.OK
    assert len(web.sessions) == 1


class Opening(Web):
    """A server that counts, with the others, how many are being opened."""

    def __init__(self, counts: list[int]) -> None:
        super().__init__()
        self._counts = counts
        self._seen = False

    async def _post(self, writer: asyncio.StreamWriter, headers: dict[str, str], message: dict[str, Any]) -> bool:
        if not self._seen:
            self._seen = True
            self._counts.append(self._counts[-1] + 1)
        if message.get("method") == "tools/list":
            self._counts.append(self._counts[-1] - 1)
        return await super()._post(writer, headers, message)


async def test_only_so_many_sources_are_opened_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.sources.sources.AT_ONCE", 3)
    counts = [0]
    async with asyncio.timeout(LIMIT_S), AsyncExitStack() as stack:
        webs = [await stack.enter_async_context(served(Opening(counts))) for _ in range(10)]
        sources = [MCPSource(f"s{n}", url=web.url, access=Access.READ, call_s=5.0) for n, web in enumerate(webs)]
        for web in webs:
            web.delay_s = 0.01
        runner, _ = staged(user(*sources), call("s9__ok"), "end")
        async with runner, runner.start() as session:
            await session.run("go")
    assert (max(counts), counts[-1], len(counts)) == (3, 0, 21)
    assert webs[9].calls == ["ok"]


async def test_notices_of_changed_tools_spread_over_time_are_answered_by_one_listing_at_a_time(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.sources.connection.LIST_EVERY_S", FOREVER_S)
    source = servers.liar("s", "t", does={"tools/call t": [CHANGED, ANSWER]})
    runner, _ = staged(user(source), call("s__t"), "one", *[call("s__t", n=n) for n in range(8)], "two")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        while servers.lines("s").count("listed") < 2:
            await asyncio.sleep(0.01)
        await session.run("again")
        await session.close()
    assert servers.called("s") == ["t"] * 9
    assert servers.lines("s").count("listed") == 2


async def test_of_fast_progress_the_first_and_the_last_are_shown_and_between_them_one_at_a_time(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.sources.sources.PROGRESS_EVERY_S", FOREVER_S)
    source = servers.liar("s", "t", does={"tools/call t": [{"line": PROGRESS, "times": 100}, ANSWER]})
    runner, _ = staged(user(source), call("s__t"), "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        events = session.events()
        await session.run("go")
        await session.close()
        shown = [event async for event in events if isinstance(event, Progressed)]
    assert [(event.done, event.total) for event in shown] == [(0, 99), (99, 99)]


async def test_what_was_asked_and_cancelled_is_not_remembered(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[dict[Any, str]] = []

    class Watched(sieve.Outgoing):
        def __init__(self, inner: Any, asked: dict[Any, str]) -> None:
            super().__init__(inner, asked)
            kept.append(asked)

    monkeypatch.setattr(sieve, "Outgoing", Watched)
    source = servers.liar("s", "t", does={"tools/call t": []})
    runner, _ = staged(user(source))
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        flying = calls(only(session), "t", 20)
        while len(servers.called("s")) < 20:
            await asyncio.sleep(0.01)
        assert [len(asked) for asked in kept] == [20]
        for task in flying:
            task.cancel()
        await asyncio.gather(*flying, return_exceptions=True)
        while servers.lines("s").count("cancelled") < 20:
            await asyncio.sleep(0.01)
        assert kept == [{}]


class Moved:
    """An SDK whose server says at the first call that what was listed has changed meanwhile."""

    def __init__(self, refusals: int) -> None:
        self.session = self
        self.done: list[str] = []
        self._refusals = refusals

    async def call_tool(self, tool: str, *_: Any, **__: Any) -> Any:
        from mcp import MCPError
        from mcp_types import HEADER_MISMATCH, CallToolResult, TextContent

        self.done.append(f"call {tool}")
        if self.done.count(f"call {tool}") <= self._refusals:
            raise MCPError(HEADER_MISMATCH, "no")
        return CallToolResult(content=[TextContent(type="text", text="ran")])

    async def list_tools(self) -> None:
        self.done.append("list")


async def test_a_call_that_was_refused_because_the_tools_changed_is_made_once_more_after_a_listing() -> None:
    from mcp import MCPError

    watch: Any = None
    context: Any = None
    flight, questions = Flight(context, lambda *_: None), Questions("s", watch, ())
    once, always = Moved(1), Moved(9)
    assert (await call_tool(once, questions, flight, "t", {})).text == "ran"
    assert once.done == ["call t", "list", "call t"]
    with pytest.raises(MCPError):
        await call_tool(always, questions, flight, "t", {})
    assert always.done == ["call t", "list", "call t"]


async def test_a_listing_of_data_that_never_ends_is_cut_off(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.sources.listing.MAX_PAGES", 5)
    source = servers.liar("s", "t", declared={"data": True}, does={"resources/list": [{"line": ENDLESS}]})
    runner, _ = staged(user(source), call("read_source", source="s"), "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        seen = (await finished(session))["read_source"]
    assert (seen.outcome, seen.text) == (Outcome.OK, "\n".join(["resource a://b: n"] * 5))


async def test_a_server_that_does_not_hear_its_farewell_does_not_hold_up_the_close(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("orchestrator.sources.http.LEAVE_S", 0.05)
    web = Web()
    web.silent = "DELETE"
    async with asyncio.timeout(LIMIT_S), served(web):
        source = MCPSource("s", url=web.url, access=Access.READ, call_s=5.0)
        runner, _ = staged(user(source), call("s__ok"), "end")
        async with runner, runner.start() as session:
            await session.run("go")
            seen = await finished(session)
            async with asyncio.timeout(LEAVE_S / 2):
                await session.close()
    assert seen["s__ok"].outcome is Outcome.OK
    assert web.left.is_set()
