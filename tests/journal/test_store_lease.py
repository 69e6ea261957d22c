"""One writer per session: across processes, through crashes, against writers that come back too late."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from orchestrator.journal.lease import LEASE_MS, Holder, is_alive, is_held, this_process
from orchestrator.journal.sqlite import SqliteStore
from orchestrator.journal.store import LeaseLost, StoreUnavailable

ROOT = Path(__file__).parents[2]

ELSEWHERE = Holder("another host", 4711, "1")

WRITER = """
import asyncio, sys
from orchestrator.journal.store import open_store

async def main():
    store = open_store(sys.argv[1])
    log = await store.create("a", title="", labels={})
    seq = 0

    async def send():
        nonlocal seq
        while True:
            seq += 1
            mine = seq
            log.append(mine, b"%d " % mine + b"x" * 500)
            await log.sync(mine)
            print(mine, flush=True)

    await asyncio.gather(*(send() for _ in range(8)))

asyncio.run(main())
"""


class Clock:
    """A wall clock that a test sets."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def start_writer(path: Path) -> tuple[subprocess.Popen[str], IO[str]]:
    command = [sys.executable, "-c", WRITER, f"sqlite:///{path}"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout


@pytest.mark.requirement("B67")
@pytest.mark.parametrize("enough", [1, 40, 400])
async def test_a_killed_writer_loses_nothing_it_had_acknowledged_and_frees_its_session(path: Path, enough: int) -> None:
    process, acknowledged = start_writer(path)
    seen = [int(acknowledged.readline()) for _ in range(enough)]
    process.kill()
    async with asyncio.timeout(20):
        store = SqliteStore(path)
        with acknowledged:  # the dead child is not waited for yet: a zombie does not hold a session
            seen += [int(line) for line in acknowledged if line.endswith("\n")]
        log, records = await store.resume("a")
        process.wait()
        assert [int(record.split()[0]) for record in records] == list(range(1, len(records) + 1))
        assert set(seen) <= set(range(1, len(records) + 1))
        assert log.fence == 2
        log.append(len(records) + 1, b"after the crash")
        await log.close("closed")
        assert (await store.read("a", after=len(records))) == (b"after the crash",)
        await store.close()


async def test_a_session_of_a_living_process_is_refused_and_the_process_named(path: Path) -> None:
    process, acknowledged = start_writer(path)
    acknowledged.readline()
    try:
        async with asyncio.timeout(20):
            store = SqliteStore(path)
            with pytest.raises(StoreUnavailable, match=f"session a is open in process {process.pid}; stop it or wait"):
                await store.resume("a")
            assert len(await store.read("a")) >= 1
            other = await store.create("b", title="", labels={})
            other.append(1, b"beside it")
            await other.sync()
            assert [row.id for row in await store.sessions()] == ["a", "b"]
            await store.close()
    finally:
        process.kill()
        process.wait()
        acknowledged.close()


async def test_a_lease_of_another_host_stands_until_it_expires(path: Path) -> None:
    clock = Clock()
    async with asyncio.timeout(5):
        far = SqliteStore(path, holder=ELSEWHERE, clock_ms=clock)
        near = SqliteStore(path, clock_ms=clock)
        await far.create("a", title="", labels={})
        clock.now_ms += LEASE_MS - 1000
        with pytest.raises(StoreUnavailable, match=r"process 4711 of another host.* ends in 1 s"):
            await near.resume("a")
        clock.now_ms += 1000
        log, _ = await near.resume("a")
        assert log.fence == 2
        await near.close()
        await far.close()


async def test_a_renewed_lease_stands_longer(path: Path) -> None:
    clock = Clock()
    async with asyncio.timeout(5):
        far = SqliteStore(path, holder=ELSEWHERE, clock_ms=clock)
        near = SqliteStore(path, clock_ms=clock)
        await far.create("a", title="", labels={})
        clock.now_ms += LEASE_MS - 1
        await far.writer.ask(lambda _: far.clerk.renew())
        clock.now_ms += LEASE_MS - 1
        with pytest.raises(StoreUnavailable, match="another host"):
            await near.resume("a")
        await near.close()
        await far.close()


async def test_the_writer_renews_by_itself_while_it_has_nothing_to_write(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.journal.writer.RENEW_EVERY_S", 0.001)
    renewed = asyncio.Event()
    loop = asyncio.get_running_loop()
    clock = Clock()
    async with asyncio.timeout(5):
        store = SqliteStore(path, clock_ms=clock)
        await store.create("a", title="", labels={})
        assert store.clerk.ledger is not None
        renew = store.clerk.ledger.renew

        def watched(*leases: object) -> object:
            loop.call_soon_threadsafe(renewed.set)
            return renew(*leases)  # type: ignore[arg-type] # whatever the writer passes

        monkeypatch.setattr(store.clerk.ledger, "renew", watched)
        await renewed.wait()
        await store.close()


async def test_a_writer_that_comes_back_too_late_stores_nothing(path: Path) -> None:
    clock = Clock()
    async with asyncio.timeout(5):
        far = SqliteStore(path, holder=ELSEWHERE, clock_ms=clock)
        near = SqliteStore(path, clock_ms=clock)
        stale = await far.create("a", title="", labels={})
        other = await far.create("b", title="", labels={})
        stale.append(1, b"in time")
        await stale.sync()
        clock.now_ms += LEASE_MS
        log, _ = await near.resume("a")
        log.append(2, b"the new writer")
        await log.sync()
        stale.append(2, b"late")
        other.append(1, b"not concerned")
        await other.sync()
        with pytest.raises(LeaseLost, match=r"session a was taken over.*fence 1"):
            await stale.sync()
        with pytest.raises(LeaseLost):
            stale.append(3, b"later still")
        with pytest.raises(LeaseLost):
            await stale.close("closed")
        assert await near.read("a") == (b"in time", b"the new writer")
        assert [row.status for row in await near.sessions()] == ["open", "open"]
        log.append(3, b"still mine")
        await log.close("open")
        await near.close()
        await far.close()


async def test_a_writer_learns_at_its_next_renewal_that_it_was_replaced(path: Path) -> None:
    clock = Clock()
    async with asyncio.timeout(5):
        far = SqliteStore(path, holder=ELSEWHERE, clock_ms=clock)
        near = SqliteStore(path, clock_ms=clock)
        stale = await far.create("a", title="", labels={})
        clock.now_ms += LEASE_MS
        await near.resume("a")
        await far.writer.ask(lambda _: far.clerk.renew())
        with pytest.raises(LeaseLost):
            stale.append(1, b"late")
        await near.close()
        await far.close()


async def test_closing_a_store_frees_its_sessions_for_another(path: Path) -> None:
    async with asyncio.timeout(5):
        first, second = SqliteStore(path), SqliteStore(path)
        log = await first.create("a", title="", labels={})
        log.append(1, b"1")
        with pytest.raises(StoreUnavailable, match=f"process {os.getpid()}"):
            await second.resume("a")
        await first.close()
        log, records = await second.resume("a")
        assert records == (b"1",)
        await second.close()


async def test_a_lease_that_could_not_be_given_back_is_given_back_at_the_next_renewal(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.journal.schema.BUSY_MS", 10)
    async with asyncio.timeout(5):
        first, second = SqliteStore(path), SqliteStore(path)
        log = await first.create("a", title="", labels={})
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked"):
            await log.close("closed")
        db.execute("ROLLBACK")
        db.close()
        with pytest.raises(StoreUnavailable, match="is open in process"):
            await second.resume("a")
        await first.writer.ask(lambda _: first.clerk.renew())
        log, _ = await second.resume("a")
        assert log.fence == 2
        await second.close()
        await first.close()


async def test_a_lease_that_could_not_be_given_back_does_not_keep_its_own_store_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.journal.schema.BUSY_MS", 10)
    async with asyncio.timeout(5):
        store = SqliteStore(path)
        log = await store.create("a", title="", labels={})
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked"):
            await log.close("open")
        db.execute("ROLLBACK")
        db.close()
        log, _ = await store.resume("a")
        await store.writer.ask(lambda _: store.clerk.renew())
        log.append(1, b"mine")
        await log.close("open")
        assert await store.read("a") == (b"mine",)
        await store.close()


async def test_a_jump_of_the_wall_clock_takes_no_session_from_a_living_process(path: Path) -> None:
    clock = Clock()
    async with asyncio.timeout(5):
        first, second = SqliteStore(path, clock_ms=clock), SqliteStore(path, clock_ms=clock)
        await first.create("a", title="", labels={})
        clock.now_ms += 1000 * LEASE_MS
        with pytest.raises(StoreUnavailable, match="stop it or wait"):
            await second.resume("a")
        await first.close()
        await second.close()


def test_a_process_id_that_was_used_again_is_not_taken_for_the_holder() -> None:
    here = this_process()
    assert is_alive(here, here) is True
    assert is_alive(Holder(here.host, here.pid, "another start"), here) is not True
    assert is_alive(Holder("another host", here.pid, here.started), here) is None


def test_a_process_that_ended_is_known_to_be_dead() -> None:
    here = this_process()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert is_alive(Holder(here.host, ended.pid, "1"), here) is False
    assert is_alive(Holder(here.host, ended.pid, ""), Holder(here.host, here.pid, "")) is False


@pytest.mark.parametrize(
    "alive, now_ms, held",
    [(True, 0, True), (True, 99, True), (False, 0, False), (None, 9, True), (None, 10, False), (None, 11, False)],
)
def test_life_decides_where_it_is_known_and_the_expiry_where_it_is_not(
    alive: bool | None,  # noqa: FBT001 - the table is the argument
    now_ms: int,
    held: bool,  # noqa: FBT001 - the table is the argument
) -> None:
    assert is_held(alive=alive, expires_ms=10, now_ms=now_ms) is held
