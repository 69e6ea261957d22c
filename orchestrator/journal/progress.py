"""How far one log has come: what was appended, what is durable, who waits, and what went wrong.

It lives on the event loop that opened the log; the writer's thread reaches it through ``call_soon_threadsafe`` only,
but for ``broken``, which that thread alone sets and reads.
"""

from __future__ import annotations

import copy
import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

    from orchestrator.journal.fault import StoreError
    from orchestrator.journal.lease import Lease

__all__ = ("Progress",)


class Progress:
    """The state of one open log. All seqs are inclusive."""

    __slots__ = ("appended", "broken", "durable", "failure", "lease", "loop", "waits", "waits_made")

    def __init__(self, lease: Lease, loop: AbstractEventLoop) -> None:
        self.lease = lease
        self.loop = loop
        self.appended = lease.last
        self.durable = lease.last
        self.failure: StoreError | None = None
        self.broken = False
        self.waits: list[tuple[int, int, Future[None]]] = []
        self.waits_made = 0

    def accept(self, seq: int) -> None:
        """Note that *seq* is on its way.

        :raises ValueError: it does not follow the last one.
        :raises StoreError: the log failed before.
        """
        if self.failure is not None:
            raise copy.copy(self.failure)
        if seq != self.appended + 1:
            message = f"session {self.lease.session}: record {seq} does not follow {self.appended}"
            raise ValueError(message)
        self.appended = seq

    async def wait(self, seq: int) -> None:
        """Return once *seq* is durable. Cancel: only this wait ends.

        :raises ValueError: it was never appended.
        :raises StoreError: it will never be durable.
        """
        if seq <= self.durable:
            return
        if self.failure is not None:
            raise copy.copy(self.failure)
        if seq > self.appended:
            message = f"session {self.lease.session}: record {seq} was never appended"
            raise ValueError(message)
        future: Future[None] = self.loop.create_future()
        self.waits_made += 1
        heapq.heappush(self.waits, (seq, self.waits_made, future))
        await future

    def reach(self, seq: int) -> None:
        """Note that everything up to *seq* is durable, and tell who waits for that."""
        self.durable = seq
        while self.waits and self.waits[0][0] <= seq:
            future = heapq.heappop(self.waits)[2]
            if not future.done():
                future.set_result(None)

    def fail(self, failure: StoreError) -> None:
        """Note that nothing more will become durable, and why. The first failure stays."""
        if self.failure is not None:
            return
        self.failure = failure
        waits, self.waits = self.waits, []
        for _, _, future in waits:
            if not future.done():
                future.set_exception(copy.copy(failure))
