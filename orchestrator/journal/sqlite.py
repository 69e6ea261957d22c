"""The default store: one SQLite file, written by one thread of its own.

Commits are flushed to the disk before they are acknowledged (``synchronous=full``). With ``normal`` a power cut may
cost the last commits, a killed process still costs none; a session is whole up to its last record either way.
"""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING
from urllib.parse import quote

from orchestrator.journal.clerk import Clerk
from orchestrator.journal.fault import StoreUnavailable
from orchestrator.journal.lease import this_process
from orchestrator.journal.ledger import Ledger
from orchestrator.journal.progress import Progress
from orchestrator.journal.row import wall_ms
from orchestrator.journal.schema import open_file
from orchestrator.journal.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from orchestrator.journal.lease import Holder, Lease
    from orchestrator.journal.row import SessionRow

__all__ = ("SqliteLog", "SqliteStore")


class SqliteLog:
    """A ``Log`` whose records the writer stores."""

    __slots__ = ("is_closed", "progress", "writer")

    def __init__(self, progress: Progress, writer: Writer) -> None:
        self.progress = progress
        self.writer = writer
        self.is_closed = False

    @property
    def session(self) -> str:
        """See ``Log.session``."""
        return self.progress.lease.session

    @property
    def fence(self) -> int:
        """See ``Log.fence``."""
        return self.progress.lease.fence

    @property
    def durable(self) -> int:
        """See ``Log.durable``."""
        return self.progress.durable

    @property
    def dropped(self) -> int:
        """See ``Log.dropped``."""
        return self.progress.lease.dropped

    def append(self, seq: int, data: bytes) -> None:
        """See ``Log.append``."""
        if self.is_closed or self.writer.is_stopped:
            raise StoreUnavailable(f"session {self.session}", "its log was closed", "resume the session")
        self.progress.accept(seq)
        self.writer.put((self.progress, seq, data))

    async def sync(self, seq: int | None = None) -> None:
        """See ``Log.sync``."""
        await self.progress.wait(self.progress.appended if seq is None else seq)

    async def close(self, status: str) -> None:
        """See ``Log.close``."""
        if status not in {"open", "closed"}:
            message = f"a session's status is open or closed, not {status!r}"
            raise ValueError(message)
        if self.is_closed:
            return
        self.is_closed = True
        if self.writer.is_stopped:
            await self.sync()
            return
        await self.writer.ask(lambda ledger: self.writer.clerk.give_back(self.progress, status, ledger))
        if self.progress.failure is not None:
            raise copy.copy(self.progress.failure)


class SqliteStore:
    """A ``Store`` in the file *path*. *holder* and *clock_ms* say who writes and when; tests pass their own."""

    def __init__(
        self,
        path: Path,
        *,
        synchronous: str = "full",
        max_bytes: int = 0,
        holder: Holder | None = None,
        clock_ms: Callable[[], int] = wall_ms,
    ) -> None:
        size = f"&max_bytes={max_bytes}" if max_bytes else ""
        self.url = f"sqlite:///{quote(str(path))}?synchronous={synchronous}{size}"

        def open_ledger() -> Ledger:
            db = open_file(path, synchronous=synchronous, max_bytes=max_bytes)
            return Ledger(db, str(path), holder or this_process(), clock_ms)

        self.clerk = Clerk(str(path), open_ledger)
        self.writer = Writer(self.clerk)

    async def create(self, session: str, *, title: str, labels: Mapping[str, str]) -> SqliteLog:
        """See ``Store.create``."""
        if not session:
            message = "a session needs an id"
            raise ValueError(message)
        kept = dict(labels)
        log, _ = await self.hold(lambda ledger: (ledger.create(session, title, kept), ()))
        return log

    async def resume(self, session: str) -> tuple[SqliteLog, tuple[bytes, ...]]:
        """See ``Store.resume``."""
        return await self.hold(lambda ledger: ledger.take(session))

    async def read(self, session: str, after: int = 0, limit: int | None = None) -> tuple[bytes, ...]:
        """See ``Store.read``."""
        return await self.writer.ask(lambda ledger: ledger.read(session, after, limit))

    async def sessions(self) -> tuple[SessionRow, ...]:
        """See ``Store.sessions``."""
        return await self.writer.ask(lambda ledger: ledger.sessions())

    async def close(self) -> None:
        """See ``Store.close``."""
        await self.writer.stop()

    async def hold(
        self, take: Callable[[Ledger], tuple[Lease, tuple[bytes, ...]]]
    ) -> tuple[SqliteLog, tuple[bytes, ...]]:
        """Take a lease on the writer's thread. Cancel: a lease that was taken all the same is given back there."""
        loop = asyncio.get_running_loop()
        taken: list[Progress] = []

        def work(ledger: Ledger) -> tuple[Progress, tuple[bytes, ...]]:
            lease, records = take(ledger)
            progress = self.clerk.held[lease] = Progress(lease, loop)
            taken.append(progress)
            return progress, records

        def undo(ledger: Ledger) -> None:
            for progress in taken:
                self.clerk.give_back(progress, None, ledger)

        try:
            progress, records = await self.writer.ask(work)
        except asyncio.CancelledError:
            self.writer.leave(undo)
            raise
        return SqliteLog(progress, self.writer), records
