"""The SQLite store's thread: groups what gathers, survives what happens around it, leaves nobody waiting."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from typing import TYPE_CHECKING

import pytest

from orchestrator.journal.sqlite import SqliteStore
from orchestrator.journal.store import StoreFull, StoreUnavailable

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.journal.ledger import Ledger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


async def test_a_lock_that_another_process_keeps_is_reported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.journal.schema.BUSY_MS", 10)
    async with asyncio.timeout(5):
        store = SqliteStore(path)
        log = await store.create("a", title="", labels={})
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("BEGIN IMMEDIATE")
        log.append(1, b"x")
        with pytest.raises(StoreUnavailable, match="another process kept it locked"):
            await log.sync()
        assert await store.read("a") == ()
        db.execute("ROLLBACK")
        db.close()
        await store.close()


async def test_records_that_gather_during_a_commit_are_committed_together(path: Path) -> None:
    statements: list[str] = []
    async with asyncio.timeout(5):
        store = SqliteStore(path)
        log = await store.create("a", title="", labels={})
        entered, go_on = threading.Event(), threading.Event()

        def hold(ledger: Ledger) -> None:
            ledger.db.set_trace_callback(statements.append)
            entered.set()
            go_on.wait(5)

        busy = asyncio.create_task(store.writer.ask(hold))
        await asyncio.to_thread(entered.wait, 5)
        for seq in range(1, 1001):
            log.append(seq, b"x")
        go_on.set()
        await busy
        await log.sync()
        assert statements.count("COMMIT") == 1
        assert len(await store.read("a")) == 1000
        await store.close()


async def test_a_wait_ends_with_its_own_record_not_with_an_earlier_one(path: Path) -> None:
    async with asyncio.timeout(5):
        store = SqliteStore(path)
        log = await store.create("a", title="", labels={})
        go_on = threading.Event()
        log.append(1, b"1")
        store.writer.leave(lambda _: go_on.wait(5))
        log.append(2, b"2")
        second = asyncio.create_task(log.sync(2))
        await log.sync(1)
        assert (log.durable, second.done()) == (1, False)
        go_on.set()
        await second
        assert log.durable == 2
        await store.close()


@pytest.mark.requirement("B67")
async def test_what_was_appended_behind_a_record_that_failed_is_not_stored_either(path: Path) -> None:
    async with asyncio.timeout(5):
        store = SqliteStore(path, max_bytes=100_000)
        log = await store.create("a", title="", labels={})
        log.append(1, b"kept")
        log.append(2, b"small")
        store.writer.leave(lambda _: None)  # ends the group
        log.append(3, b"x" * 200_000)
        store.writer.leave(lambda _: None)
        log.append(4, b"small again")
        with pytest.raises(StoreFull):
            await log.sync()
        assert await store.read("a") == (b"kept", b"small")
        await store.close()


async def test_a_cancelled_resume_gives_the_lease_back(path: Path) -> None:
    async with asyncio.timeout(5):
        store = SqliteStore(path)
        await (await store.create("a", title="", labels={})).close("open")
        entered, go_on = threading.Event(), threading.Event()

        def hold(_: object) -> None:
            entered.set()
            go_on.wait(5)

        busy = asyncio.create_task(store.writer.ask(hold))
        await asyncio.to_thread(entered.wait, 5)
        asked = asyncio.Event()

        async def resume() -> None:
            asked.set()
            await store.resume("a")

        hasty = asyncio.create_task(resume())
        await asked.wait()
        hasty.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hasty
        go_on.set()
        await busy
        log, _ = await store.resume("a")
        assert log.fence == 3
        await store.close()


async def test_a_bug_on_the_writers_thread_leaves_nobody_waiting(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", seen.append)
    async with asyncio.timeout(5):
        store = SqliteStore(path)
        log = await store.create("a", title="", labels={})

        def bug(_: object) -> None:
            log.append(1, b"behind it")
            raise ZeroDivisionError

        with pytest.raises(StoreUnavailable, match="its writer failed"):
            await store.writer.ask(bug)
        with pytest.raises(StoreUnavailable, match="was closed"):
            await log.sync()
        with pytest.raises(StoreUnavailable, match="was closed"):
            await store.sessions()
        assert store.writer.thread is not None
        store.writer.thread.join(5)
        assert [it.exc_type for it in seen] == [ZeroDivisionError]
        await store.close()


async def test_a_log_whose_loop_has_ended_does_not_stop_the_writer(path: Path) -> None:
    store = SqliteStore(path)

    async def elsewhere() -> None:
        log = await store.create("a", title="", labels={})
        log.append(1, b"1")

    await asyncio.to_thread(asyncio.run, elsewhere())
    async with asyncio.timeout(5):
        log = await store.create("b", title="", labels={})
        log.append(1, b"1")
        await log.sync()
        assert await store.read("a") == (b"1",)
        await store.close()
