"""What subscribers see: every journal entry, and the pieces of text a model sends meanwhile.

Rules:

- A subscriber has a bounded buffer; one that is slow loses nothing silently: it gets a `Gap` with the numbers it missed
  and can read them from the journal. It never slows the session.
- A cursor is the number of the last entry seen. Pieces of text, and progress, have no number and are not kept.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

import msgspec

from orchestrator.journal.records import Entry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

__all__ = ["Delta", "Event", "Events", "Gap", "Progressed"]


class Delta(msgspec.Struct, frozen=True, tag="delta"):
    """A piece of the text that *actor*'s model is sending."""

    actor: str
    text: str


class Gap(msgspec.Struct, frozen=True, tag="gap"):
    """The subscriber was too slow for the entries *first* to *last*; the journal has them."""

    first: int
    last: int


class Progressed(msgspec.Struct, frozen=True, tag="progressed"):
    """The call *call* of *actor* is *done* of *total* (``None``: nobody knows) on its way, as its tool says."""

    actor: str
    call: str
    done: float
    total: float | None
    text: str


Event = Entry | Delta | Progressed | Gap


class Subscriber:
    """One reader's buffer."""

    __slots__ = ("_waiter", "buffer", "capacity", "closed", "missed")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.buffer: deque[Entry | Delta | Progressed] = deque()
        self.missed: tuple[int, int] | None = None
        self.closed = False
        self._waiter: asyncio.Future[None] | None = None

    def put(self, event: Entry | Delta | Progressed) -> None:
        """Take *event*, or note that it was missed. Never waits."""
        if len(self.buffer) >= self.capacity or self.missed is not None:
            if isinstance(event, Entry):
                self.missed = (self.missed[0] if self.missed else event.seq, event.seq)
        else:
            self.buffer.append(event)
        if self._waiter is not None:
            self.wake()

    def wake(self) -> None:
        """Let the reader look again."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def wait(self) -> None:
        """Return when there is something to read, or the stream is closed."""
        if not self.buffer and self.missed is None and not self.closed:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None


class Events:
    """The fan-out of one session."""

    __slots__ = ("_capacity", "_subscribers", "closed")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._subscribers: list[Subscriber] = []
        self.closed = False

    @property
    def watched(self) -> bool:
        """Whether anybody reads."""
        return bool(self._subscribers)

    def publish(self, event: Entry | Delta | Progressed) -> None:
        """Hand *event* to every subscriber. Never waits."""
        for subscriber in self._subscribers:
            subscriber.put(event)

    def close(self) -> None:
        """End every stream once its buffer is read."""
        self.closed = True
        for subscriber in self._subscribers:
            subscriber.closed = True
            subscriber.wake()

    def subscribe(
        self, after: int | None, seq: int, read: Callable[[int], Awaitable[tuple[Entry, ...]]]
    ) -> AsyncIterator[Event]:
        """Return the stream of entries after the cursor *after* (``None``: from *seq*, the present, on).

        The subscription begins now, not at the first read. Closing the iterator ends it.
        """
        subscriber = Subscriber(self._capacity)
        subscriber.closed = self.closed
        self._subscribers.append(subscriber)
        return self._stream(subscriber, seq if after is None else after, seq, read)

    async def _stream(
        self, subscriber: Subscriber, cursor: int, seq: int, read: Callable[[int], Awaitable[tuple[Entry, ...]]]
    ) -> AsyncIterator[Event]:
        try:
            if cursor < seq:
                for entry in await read(cursor):
                    if entry.seq <= seq:
                        cursor = entry.seq
                        yield entry
            while True:
                if not subscriber.buffer:
                    await subscriber.wait()
                while subscriber.buffer:
                    yield subscriber.buffer.popleft()
                if subscriber.missed is not None:
                    (first, last), subscriber.missed = subscriber.missed, None
                    yield Gap(first, last)
                elif subscriber.closed:
                    return
        finally:
            self._subscribers.remove(subscriber)
