"""The price of durability: records appended by 64 workers at once to one SQLite file, flushed before they count.

The floor is the least that keeps the same promise: one thread, one table, one transaction for whatever has gathered
while the last one ran. Each worker waits for its record before it appends the next: an intent, then an outcome.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import threading
from collections import deque
from pathlib import Path

from actors.grants import Access, Grants
from actors.messages import CallFinished, ToolResult
from orchestrator.clock import LoopClock
from orchestrator.events import Events
from orchestrator.journal.journal import Journal
from orchestrator.journal.records import ActorSpawned, CallIntended, Entry, encode
from orchestrator.journal.sqlite import SqliteStore
from orchestrator.journal.state import SessionState
from tests.bench.samples import Stopwatch

__all__ = ["append", "floor_append"]

IN_FLIGHT = 64
ACTOR = "parent/child-0001"


def intent(number: int) -> CallIntended:
    """Return the intent of one call."""
    text = f'{{"line":{number},"path":"src/file.py"}}'
    return CallIntended("t0001", f"c{number}", "write_0", "1", Access.WRITE, f"write_0:{text}", text)


def outcome(number: int) -> CallFinished:
    """Return the outcome of one call."""
    return CallFinished("t0001", ToolResult(f"c{number}", "write_0", f"src/file.py:{number}"))


class FloorWriter:
    """A thread that inserts and commits what has gathered, then settles the futures of the group."""

    def __init__(self, path: Path) -> None:
        self.loop = asyncio.get_running_loop()
        self.queue: deque[tuple[int, bytes, asyncio.Future[None]]] = deque()
        self.bell = threading.Event()
        self.stopped = False
        self.seq = 0
        self.thread = threading.Thread(target=self.live, args=(path,))
        self.thread.start()

    def append(self, data: bytes) -> asyncio.Future[None]:
        """Hand one record over; the future is done when it is on the disk."""
        future: asyncio.Future[None] = self.loop.create_future()
        self.seq += 1
        self.queue.append((self.seq, data, future))
        self.bell.set()
        return future

    def live(self, path: Path) -> None:
        """Write group after group until stopped."""
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("CREATE TABLE records (seq INTEGER PRIMARY KEY, data BLOB NOT NULL)")
        while not self.stopped:
            self.bell.wait()
            self.bell.clear()
            group = [self.queue.popleft() for _ in range(len(self.queue))]
            if group:
                db.execute("BEGIN IMMEDIATE")
                db.executemany("INSERT INTO records VALUES (?, ?)", [(seq, data) for seq, data, _ in group])
                db.execute("COMMIT")
                self.loop.call_soon_threadsafe(self.settle, group)
        db.close()

    def settle(self, group: list[tuple[int, bytes, asyncio.Future[None]]]) -> None:
        """Tell who waits for *group*."""
        for _, _, future in group:
            future.set_result(None)

    async def stop(self) -> None:
        """End the thread."""
        self.stopped = True
        self.bell.set()
        await self.loop.run_in_executor(None, self.thread.join)


async def floor_append(count: int) -> float:
    """Append *count* records in all by the floor's writer, 64 at a time."""
    with tempfile.TemporaryDirectory() as folder:
        writer = FloorWriter(Path(folder, "floor.db"))
        await writer.append(b"{}")

        async def worker(first: int) -> None:
            for number in range(first, count // 2, IN_FLIGHT):
                await writer.append(encode(Entry(writer.seq + 1, 0, ACTOR, intent(number))))
                await writer.append(encode(Entry(writer.seq + 1, 0, ACTOR, outcome(number))))

        watch = Stopwatch()
        await asyncio.gather(*(worker(first) for first in range(IN_FLIGHT)))
        spent = watch.each(count)
        await writer.stop()
    return spent


async def append(count: int) -> float:
    """Append *count* records in all to one session's journal in a SQLite store, 64 at a time."""
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder, "journal.db"))
        log = await store.create("bench", title="bench", labels={})
        journal = Journal(store, log, SessionState(), LoopClock(), Events(1))
        journal.append(ACTOR, ActorSpawned("child", "f", "", Grants(), 1))
        await journal.sync()

        async def worker(first: int) -> None:
            for number in range(first, count // 2, IN_FLIGHT):
                journal.append(ACTOR, intent(number))
                await journal.sync()
                journal.append(ACTOR, outcome(number))
                await journal.sync()

        watch = Stopwatch()
        await asyncio.gather(*(worker(first) for first in range(IN_FLIGHT)))
        spent = watch.each(count)
        await journal.close("closed")
        await store.close()
    return spent
