"""Sessions with sources that are stopped while they start, in every moment of it."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from orchestrator import Agent, ResolutionFailed, RuntimeConfig, SessionClosed
from orchestrator.journal.fault import StoreDamaged, StoreError, StoreUnavailable
from orchestrator.journal.memory import MemoryStore
from orchestrator.testing import ScriptedModel, call
from tests.core.stage import staged
from tests.sources.stage import LIMIT_S, Servers, finished, marked_processes, servers, user

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

__all__ = ["servers"]


def others() -> set[asyncio.Task[Any]]:
    """Every task that is not this one."""
    return asyncio.all_tasks() - {asyncio.current_task()}


def mine(servers: Servers, name: str = "s") -> list[int]:
    """What still runs of a scripted server."""
    pids = [int(line.split()[1]) for line in servers.lines(name) if line.startswith("start")]
    return [pid for pid in pids if pid in marked_processes()]


@pytest.mark.requirement("B40", "I11")
async def test_closing_the_agent_ends_a_session_that_is_starting(servers: Servers) -> None:
    runner, _ = staged(user(servers.source("s", "t", mute=True)), "never")

    async def start() -> None:
        async with runner.start():
            pytest.fail("it was closed before it had started")

    async with asyncio.timeout(LIMIT_S):
        before = others()
        starting = asyncio.create_task(start())
        while not servers.lines("s"):
            await asyncio.sleep(0.01)
        await runner.close()
        assert starting.done()
        with pytest.raises(SessionClosed, match="closed agent 'boss'"):
            await starting
        assert mine(servers) == []
        assert others() == before


class Stepped:
    """A coroutine that is cancelled at its *number*-th wait."""

    def __init__(self, inner: Coroutine[Any, Any, Any], number: int) -> None:
        self._inner = inner
        self._left = number

    def __await__(self) -> Any:
        step = partial(self._inner.send, None)
        while True:
            try:
                waited = step()
            except StopIteration as end:
                return end.value
            self._left -= 1
            task = asyncio.current_task()
            assert task is not None
            if self._left == 0:
                task.cancel()
            try:
                value = yield waited
            except asyncio.CancelledError as error:
                step = partial(self._inner.throw, error)
            else:
                step = partial(self._inner.send, value)


@pytest.mark.requirement("B40", "I11")
@pytest.mark.parametrize("when", range(1, 7))
async def test_a_start_that_is_cancelled_in_any_of_its_waits_leaves_nothing(servers: Servers, when: int) -> None:
    store = MemoryStore()
    definition = user(servers.source("s", "t"), servers.source("u", "t", delay_s=0.2))
    async with asyncio.timeout(LIMIT_S), Agent(definition, RuntimeConfig(ScriptedModel(boss=["x"]), store=store)) as a:
        before, start = others(), a.start()

        async def enter() -> None:
            await Stepped(start.__aenter__(), when)

        entering = asyncio.create_task(enter())
        await asyncio.wait({entering})
        if not entering.cancelled():
            assert entering.exception() is None
        await start.close()
        assert mine(servers) == []
        assert mine(servers, "u") == []
        for _ in range(5):
            await asyncio.sleep(0)
        assert others() == before


async def test_two_sessions_of_one_agent_have_a_server_each_and_close_apart(servers: Servers) -> None:
    source = servers.source("s", "t")
    model = ScriptedModel(boss=[call("s__t"), "done", call("s__t"), "done"])
    agent = Agent(user(source), RuntimeConfig(model))
    async with asyncio.timeout(LIMIT_S), agent, agent.start() as one:
        async with agent.start() as two:
            assert len(mine(servers)) == 2
            assert (await two.run("go")).output == "done"
        assert len(mine(servers)) == 1
        assert (await one.run("go")).output == "done"
    assert mine(servers) == []


async def lived(runner: Agent) -> None:
    """One whole session."""
    async with runner, runner.start() as session:
        await session.run("go")
        await finished(session)


@pytest.mark.parametrize("after", range(1, 9))
@pytest.mark.parametrize("stubborn", [{}, {"stay": True, "fork": True}])
async def test_a_journal_that_takes_nothing_more_leaves_no_server_behind(
    servers: Servers, monkeypatch: pytest.MonkeyPatch, after: int, stubborn: dict[str, bool]
) -> None:
    store = MemoryStore()
    definition = user(servers.source("s", "t", **stubborn))
    runner = Agent(definition, RuntimeConfig(ScriptedModel(boss=[call("s__t"), "done"]), store=store))
    create, left = store.create, [after]

    async def failing(*args: Any, **more: Any) -> Any:
        log = await create(*args, **more)
        append = log.append

        def counted(*each: Any) -> None:
            left[0] -= 1
            if left[0] <= 0:
                raise StoreUnavailable("s", "the disk is full", "Make room.")
            append(*each)

        monkeypatch.setattr(log, "append", counted)
        return log

    monkeypatch.setattr(store, "create", failing)
    async with asyncio.timeout(LIMIT_S):
        before = others()
        with pytest.raises((StoreError, ResolutionFailed), match="the disk is full"):
            await lived(runner)
        assert mine(servers) == []
        for _ in range(5):
            await asyncio.sleep(0)
        assert others() == before


async def test_a_session_with_a_record_of_a_newer_release_is_left_alone_and_told(servers: Servers) -> None:
    store, source = MemoryStore(), servers.source("s", "t")
    runner = Agent(user(source), RuntimeConfig(ScriptedModel(boss=["x"]), store=store))
    async with asyncio.timeout(LIMIT_S), runner:
        async with runner.start() as session:
            await session.run("go")
            handle = session.snapshot()
        log, records = await store.resume(handle.session)
        number = len(records) + 1
        log.append(number, b'{"seq":%d,"at_ms":1,"actor":"","record":{"type":"of_tomorrow"}}' % number)
        await log.sync(number)
        await log.close("open")
        with pytest.raises(StoreDamaged, match=f"record {number}: it is no record that this release knows"):
            await runner.start(handle).__aenter__()
        assert len(servers.lines("s")) == 1


async def test_a_server_is_told_the_folder_that_the_session_works_on(servers: Servers, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    (folder / "in").mkdir(parents=True)
    told = {"env": {"SCRIPT": "${SCRIPT_OF_s}", "PLACE": "${WORKSPACE}/in"}, "cwd": "${WORKSPACE}/in"}
    source = attrs.evolve(servers.source("s", "look", acts={"look": "env"}), **told)
    runner, _ = staged(user(source), call("s__look"), "done", workspace=folder)
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        seen = json.loads((await finished(session))["s__look"].text)
    assert seen["PLACE"] == f"{folder}/in"


@pytest.mark.parametrize("field", ["cwd", "command", "env"])
async def test_a_server_that_needs_a_folder_is_refused_where_the_session_has_none(servers: Servers, field: str) -> None:
    value = {"cwd": "${WORKSPACE}", "command": ("x", "${WORKSPACE}"), "env": {"A": "${WORKSPACE}"}}[field]
    source = attrs.evolve(servers.source("s", "look"), **{field: value})
    runner, _ = staged(user(source), "never")
    async with asyncio.timeout(LIMIT_S), runner:
        with pytest.raises(ResolutionFailed, match=r"WORKSPACE|session has none"):
            await runner.run("go")
