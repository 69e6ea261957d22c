"""Time, as the session sees it: a monotonic clock for every duration, the wall clock for people only."""

from __future__ import annotations

import asyncio
import heapq
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Clock", "Deadlines", "LoopClock", "Timer"]

MANY = 64


class Timer(Protocol):
    """A call that will be made unless it is cancelled."""

    def cancel(self) -> None:
        """Do not make the call."""


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> float:
        """Return monotonic seconds."""

    def wall_ms(self) -> int:
        """Return milliseconds since 1970, for display; nothing is ordered or limited by it."""

    def call_at(self, when: float, call: Callable[[], None]) -> Timer:
        """Make *call* at the monotonic second *when*."""


class LoopClock:
    """The running event loop's clock."""

    def now(self) -> float:
        """Return monotonic seconds."""
        return asyncio.get_running_loop().time()

    def wall_ms(self) -> int:
        """Return milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def call_at(self, when: float, call: Callable[[], None]) -> Timer:
        """Make *call* at the monotonic second *when*."""
        return asyncio.get_running_loop().call_at(when, call)


class Deadlines:
    """Many deadlines on one timer, which is armed only while something is due."""

    __slots__ = ("_armed_at", "_clock", "_due", "_heap", "_next", "_timer")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int]] = []
        self._due: dict[int, Callable[[], None]] = {}
        self._next = 0
        self._timer: Timer | None = None
        self._armed_at = 0.0

    def add(self, seconds: float, call: Callable[[], None]) -> int:
        """Make *call* in *seconds* from now; return a key for `remove`."""
        at = self._clock.now() + seconds
        self._next = key = self._next + 1
        self._due[key] = call
        heapq.heappush(self._heap, (at, key))
        if self._timer is None or at < self._armed_at:
            self._arm(at)
        return key

    def remove(self, key: int) -> None:
        """Forget the deadline *key*; nothing happens if it has passed."""
        self._due.pop(key, None)
        if not self._due:
            self._heap.clear()
        elif len(self._heap) > MANY and len(self._heap) > 4 * len(self._due):
            self._heap = [item for item in self._heap if item[1] in self._due]
            heapq.heapify(self._heap)

    def close(self) -> None:
        """Forget every deadline and disarm the timer."""
        self._due.clear()
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._armed_at = at
        self._timer = self._clock.call_at(at, self._fire)

    def _fire(self) -> None:
        self._timer = None
        now = self._clock.now()
        while self._heap and (self._heap[0][0] <= now or self._heap[0][1] not in self._due):
            _, key = heapq.heappop(self._heap)
            call = self._due.pop(key, None)
            if call is not None:
                call()
        if self._heap and self._timer is None:
            self._arm(self._heap[0][0])
