"""Who waits for whom in a session, so that a cycle of waits is refused before it closes."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from orchestrator.errors import WouldDeadlock

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Waits"]


class Waits:
    """The waits in progress, by the paths of the actors."""

    def __init__(self) -> None:
        self._waits: dict[str, list[str]] = {}

    @contextmanager
    def hold(self, waiter: str | None, target: str) -> Iterator[None]:
        """Keep on record that *waiter* waits for *target*; ``None`` is the host, which waits for free.

        Raises `WouldDeadlock`, naming the cycle, when *target* already waits for *waiter*, directly or through others.
        """
        if waiter is None:
            yield
            return
        way = self._way(target, waiter)
        if way:
            raise WouldDeadlock((waiter, *way))
        targets = self._waits.setdefault(waiter, [])
        targets.append(target)
        try:
            yield
        finally:
            targets.remove(target)
            if not targets:
                self._waits.pop(waiter, None)

    def upon(self, target: str) -> tuple[str, ...]:
        """Return everyone who waits for *target*, directly or through others."""
        found = [target]
        for each in found:
            found.extend(who for who, targets in self._waits.items() if each in targets and who not in found)
        return tuple(found[1:])

    def _way(self, start: str, goal: str) -> tuple[str, ...]:
        """Return the chain of waits from *start* to *goal*, both included; empty when there is none."""
        ways: list[tuple[str, ...]] = [(start,)]
        seen = {start}
        for way in ways:
            if way[-1] == goal:
                return way
            for target in self._waits.get(way[-1], ()):
                if target not in seen:
                    seen.add(target)
                    ways.append((*way, target))
        return ()
