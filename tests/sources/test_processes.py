"""Nothing that a session started outlives it: not the server, not what the server started, not after kill -9."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator import Agent, RuntimeConfig
from orchestrator.journal.memory import MemoryStore
from orchestrator.journal.source import SourceRunning
from orchestrator.sources.processes import MARK, end, group_of, marked, new_mark
from orchestrator.sources.stdio import environment
from orchestrator.testing import ScriptedModel, call
from tests.core.stage import staged
from tests.sources.stage import LIMIT_S, Servers, alive, servers, user

__all__ = ["servers"]

ROOT = Path(__file__).parents[2]
ROUNDS = 100
STUBBORN = "import signal,time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(1,flush=True)\ntime.sleep(60)"


@pytest.mark.requirement("B42", "I11")
async def test_closing_ends_a_server_that_forked_and_ignores_sigterm_and_its_input(servers: Servers) -> None:
    source = servers.source("s", "ok", fork=True, stay=True)
    runner, _ = staged(user(source), call("s__ok"), "done")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        assert len(alive(servers.lines("s"))) == 2
        began = asyncio.get_running_loop().time()
        await session.close()
        took = asyncio.get_running_loop().time() - began
    assert alive(servers.lines("s")) == []
    assert took < 5


@pytest.mark.requirement("B42")
async def test_a_hundred_sessions_one_after_the_other_leave_no_process_and_no_zombie(servers: Servers) -> None:
    source, other = servers.source("s", "ok"), servers.source("other", "ok", fork=True, stay=True)
    bystander, _ = staged(user(other), call("other__ok"), "done")
    async with asyncio.timeout(3 * LIMIT_S):
        async with bystander, bystander.start() as session:
            before = alive(servers.lines("other"))
            for _ in range(ROUNDS):
                runner, _model = staged(user(source), "done")
                async with runner:
                    await runner.run("go")
            assert alive(servers.lines("other")) == before
            assert len(before) == 2
            assert (await session.run("go")).output == "done"
    assert len([line for line in servers.lines("s") if line.startswith("start")]) == ROUNDS
    assert alive([*servers.lines("s"), *servers.lines("other")]) == []
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


async def test_a_session_that_cannot_start_leaves_no_process_of_its_other_sources(servers: Servers) -> None:
    from orchestrator import ResolutionFailed

    well, broken = servers.source("s", "ok", fork=True, stay=True), servers.source("t", exit="no")
    runner, _ = staged(user(well, broken), "never")
    async with asyncio.timeout(LIMIT_S), runner:
        with pytest.raises(ResolutionFailed):
            await runner.run("go")
    assert servers.lines("s")
    assert alive(servers.lines("s")) == []


async def test_a_start_that_is_cancelled_leaves_no_process(servers: Servers) -> None:
    source = servers.source("s", "ok", delay_s=30, fork=True)
    runner, _ = staged(user(source), "never")
    async with asyncio.timeout(LIMIT_S), runner:
        starting = asyncio.ensure_future(runner.run("go"))
        while len(servers.lines("s")) < 2:
            await asyncio.sleep(0.01)
        starting.cancel()
        await asyncio.wait({starting})
        assert alive(servers.lines("s")) == []


class Program:
    """One session over several processes, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.ledger = folder / "ledger"
        self._command = [sys.executable, "-m", "tests.sources.program"]
        self._command += [f"sqlite:///{folder}/runs.db", str(folder / "handle"), str(self.ledger)]

    def start(self, mode: str) -> subprocess.Popen[str]:
        """Start a process and wait until its turn is over."""
        process = subprocess.Popen([*self._command, mode], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    def end(self, process: subprocess.Popen[str], number: int) -> None:
        """Send a signal and wait for the end."""
        process.send_signal(number)
        process.communicate(timeout=15)

    def alive(self) -> list[int]:
        """What still runs of its server."""
        return alive(self.ledger.read_text().splitlines())


@pytest.mark.requirement("B42")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_after_a_signal_nothing_is_left_at_the_next_start_at_the_latest(tmp_path: Path, number: int) -> None:
    program, other = Program(tmp_path / "one"), Program(tmp_path / "two")
    running, bystander = program.start("hold"), other.start("hold")
    assert len(program.alive()) == 2
    program.end(running, number)
    if number == signal.SIGTERM:
        assert program.alive() == []
    left = program.alive()
    assert len(left) == (0 if number == signal.SIGTERM else 2)
    again = program.start("go")
    again.communicate(timeout=15)
    assert program.alive() == []
    assert len(other.alive()) == 2
    other.end(bystander, signal.SIGTERM)
    assert other.alive() == []


@pytest.mark.requirement("B42")
async def test_a_server_with_another_environment_is_ended_by_whoever_takes_its_session_up(servers: Servers) -> None:
    bare = subprocess.Popen([sys.executable, "-c", STUBBORN], env={}, stdout=subprocess.PIPE, start_new_session=True)
    assert bare.stdout is not None
    bare.stdout.readline()
    well, store = servers.source("s", "ok"), MemoryStore()
    config = RuntimeConfig(ScriptedModel(boss=["one", "two"]), store=store)
    async with asyncio.timeout(LIMIT_S), Agent(user(well), config) as runner:
        async with runner.start() as session:
            await session.run("go")
            watch, handle = session._supervisor.registry.sources, session.snapshot()
            assert watch is not None
            for mark, leader, born in (
                ("a", bare.pid, "another boot/1"),
                ("b", os.getpid(), "x"),
                ("c", 2**22 + 1, "x"),
            ):
                await watch.started(mark, "s")
                session._supervisor.journal.append("", SourceRunning(mark, leader, born))
        async with runner.start(handle) as session:
            assert bare.poll() is None
            watch = session._supervisor.registry.sources
            assert watch is not None
            await watch.started("d", "s")
            watch.running("d", bare.pid)
        async with runner.start(handle) as session:
            assert bare.wait(timeout=5) == -signal.SIGKILL
            assert len(session._supervisor.journal.state.processes) == 1
            assert (await session.run("go")).output == "two"
    bare.stdout.close()


async def test_ending_asks_first_and_then_does_not_ask() -> None:
    mark = new_mark()
    process = subprocess.Popen(
        [sys.executable, "-c", STUBBORN], env=environment({}, mark), stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    assert marked(mark) == (process.pid,)
    assert group_of(process.pid) == (process.pid,)
    assert marked(mark[:-1]) == ()
    assert await end(lambda: marked(mark), grace_s=0.2)
    assert process.wait(timeout=5) == -signal.SIGKILL
    process.stdout.close()
    assert await end(lambda: marked(mark))


def test_a_server_gets_a_few_names_of_ours_what_is_declared_and_its_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-for-servers")
    given = environment({"OWN": "1", "PATH": "/declared"}, "m")
    assert given["OWN"] == "1"
    assert given["PATH"] == "/declared"
    assert given[MARK] == "m"
    assert "OPENAI_API_KEY" not in given


@pytest.mark.parametrize("stay", [False, True])
async def test_where_processes_cannot_be_found_the_group_of_a_live_server_is_ended(
    servers: Servers,
    monkeypatch: pytest.MonkeyPatch,
    stay: bool,  # noqa: FBT001
) -> None:
    source = servers.source("s", "ok", fork="group", stay=stay)
    runner, _ = staged(user(source), call("s__ok"), "done")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        left = alive(servers.lines("s"))
        with monkeypatch.context() as patch:
            patch.setattr("orchestrator.sources.processes.PROC", servers.folder / "no-such-place")
            await session.close()
    assert len(left) == 2
    assert alive(servers.lines("s")) == []
