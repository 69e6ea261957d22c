"""The time limits of turns: armed when a turn opens, held still while a person is waited for, gone when it ends."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from orchestrator.clock import Clock, Deadlines

__all__ = ["TurnLimits"]


class Limit:
    """The limit of one turn: due *at* a monotonic second under the deadline *key*, or held with *left* seconds."""

    __slots__ = ("at", "call", "holds", "key", "left")

    def __init__(self, at: float, key: int, call: Callable[[], None]) -> None:
        self.at = at
        self.key = key
        self.call = call
        self.holds = 0
        self.left = 0.0


class TurnLimits:
    """The limits of one session's open turns."""

    def __init__(self, clock: Clock, deadlines: Deadlines) -> None:
        self._clock = clock
        self._deadlines = deadlines
        self._limits: dict[str, Limit] = {}
        self._left: dict[str, float] = {}

    def arm(self, turn: str, seconds: float, call: Callable[[], None]) -> None:
        """Make *call* when *turn* has been open for *seconds*, waits for people not counted."""
        if self._left:
            seconds = self._left.pop(turn, seconds)
        self._limits[turn] = Limit(self._clock.now() + seconds, self._deadlines.add(seconds, call), call)

    def rest(self, turn: str) -> None:
        """Disarm the limit of a *turn* that is parked; armed again, it goes on with the seconds it has left."""
        limit = self._limits.get(turn)
        self.drop(turn)
        if limit is not None:
            self._left[turn] = limit.left if limit.holds else max(0.0, limit.at - self._clock.now())

    def drop(self, turn: str) -> None:
        """Forget the limit of *turn*."""
        if self._left:
            self._left.pop(turn, None)
        limit = self._limits.pop(turn, None)
        if limit is not None and not limit.holds:
            self._deadlines.remove(limit.key)

    @contextmanager
    def held(self, turns: tuple[str, ...]) -> Iterator[None]:
        """Hold the limits of *turns* still; several holds of one turn end with the last."""
        limits = [(turn, self._limits[turn]) for turn in turns if turn in self._limits]
        for _, limit in limits:
            limit.holds += 1
            if limit.holds == 1:
                limit.left = max(0.0, limit.at - self._clock.now())
                self._deadlines.remove(limit.key)
        try:
            yield
        finally:
            for turn, limit in limits:
                limit.holds -= 1
                if not limit.holds and self._limits.get(turn) is limit:
                    limit.at = self._clock.now() + limit.left
                    limit.key = self._deadlines.add(limit.left, limit.call)
