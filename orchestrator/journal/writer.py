"""The one thread that touches a store's file, and the queue to it.

It takes whatever has gathered while it was busy, and commits all of it at once: under load the groups grow by
themselves, and alone a record is written at once. No timer delays anything; the only timed wait is for the next
renewal of held leases. The thread starts with the first use and is joined by ``stop``.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from orchestrator.journal.clerk import Clerk, Entry, Job, gone, tell
from orchestrator.journal.lease import RENEW_EVERY_S
from orchestrator.journal.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("Writer",)

T = TypeVar("T")


class Writer:
    """The thread and its queue; ``put``, ``ask``, ``leave`` and ``stop`` are for event loops, the rest is its own."""

    def __init__(self, clerk: Clerk) -> None:
        self.clerk = clerk
        self.queue: deque[Entry | Job[Any] | None] = deque()
        self.bell = threading.Event()
        self.is_asleep = False
        self.is_stopped = False
        self.thread: threading.Thread | None = None
        self.end: Job[None] | None = None

    def put(self, item: Entry | Job[Any] | None) -> None:
        """Hand *item* over. Never waits: an append to a queue, and a bell only if the thread sleeps."""
        self.queue.append(item)
        if self.is_asleep:
            self.bell.set()

    async def ask(self, work: Callable[[Ledger], T]) -> T:
        """What *work* returns, done after all that was handed over before. Cancel: the wait ends, the work goes on.

        :raises StoreError: what *work* raised, or what SQLite reported.
        """
        if self.is_stopped:
            raise gone(self.clerk.place, "the store was closed")
        if self.thread is None:
            self.thread = threading.Thread(target=self.run, name=f"journal {self.clerk.place}", daemon=True)
            self.thread.start()
        job = Job(work)
        self.put(job)
        return await job.future

    def leave(self, work: Callable[[Ledger], T]) -> None:
        """Have *work* done like ``ask``, without anybody who waits for it or hears of its failure."""
        if not self.is_stopped:
            job = Job(work)
            job.future.cancel()
            self.put(job)

    async def stop(self) -> None:
        """Write all that was handed over, give every lease back, close the file, join the thread. Twice is fine.

        Cancel: the wait ends; the thread finishes by itself.
        """
        if self.is_stopped:
            return
        self.is_stopped = True
        if self.thread is not None:
            self.end = Job(Ledger.close)
            self.put(None)
            await self.end.future
            self.thread.join()

    def run(self) -> None:
        """The thread: until the end mark comes."""
        renew_at = time.monotonic() + RENEW_EVERY_S
        try:
            while True:
                self.rest(max(renew_at - time.monotonic(), 0) if self.clerk.has_leases() else None)
                if time.monotonic() >= renew_at:
                    self.clerk.renew()
                    renew_at = time.monotonic() + RENEW_EVERY_S
                if not self.work_off():
                    return
        finally:
            self.abandon()

    def rest(self, limit_s: float | None) -> None:
        """Sleep until something is handed over, or for *limit_s*."""
        if self.queue:
            return
        self.is_asleep = True
        if not self.queue:  # asked again: who appended before the flag went up rang no bell
            self.bell.wait(limit_s)
        self.is_asleep = False
        self.bell.clear()

    def work_off(self) -> bool:
        """Do what is in the queue now, appends in groups; False at the end mark."""
        group: list[Entry] = []
        for _ in range(len(self.queue)):
            item = self.queue.popleft()
            if isinstance(item, tuple):
                group.append(item)
                continue
            self.clerk.commit(group)
            group = []
            if item is None:
                return False
            self.clerk.do(item)
        self.clerk.commit(group)
        return True

    def abandon(self) -> None:
        """The thread's last act: let go of everything, and leave nobody waiting."""
        self.is_stopped = True
        self.clerk.leave()
        while self.queue:
            item = self.queue.popleft()
            if isinstance(item, Job):
                tell(item.loop, partial(item.refuse, gone(self.clerk.place, "the store was closed")))
        if self.end is not None:
            tell(self.end.loop, partial(self.end.answer, None))
