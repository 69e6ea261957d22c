"""An actor's own account: what it may spend, what it spent, what it has set aside for its children.

A child's budget is reserved from its parent's account at spawn and the rest comes back at exit. A child that asks for
no figure of its own gets half of what its parent has left in that figure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.grants import UNLIMITED, Budget

if TYPE_CHECKING:
    from actors.messages import Usage
    from orchestrator.clock import Clock

__all__ = ["Account"]

FIGURES = ("calls", "tokens", "money", "seconds")


class Account:
    """What one actor may still spend. An account without limits costs nothing to ask."""

    __slots__ = ("_clock", "_opened_at", "_reserved", "_spent", "limit")

    def __init__(self, limit: Budget, clock: Clock) -> None:
        self.limit = limit
        self._clock = clock
        self._opened_at = clock.now() if limit.seconds is not None else 0.0
        self._spent: dict[str, float] | None = None
        self._reserved: dict[str, float] | None = None

    def spend(self, usage: Usage, calls: int = 0) -> None:
        """Book what was used: tokens and money of *usage*, and tool *calls*."""
        if self.limit is UNLIMITED or self.limit == UNLIMITED:
            return
        spent = self._spent = self._spent or dict.fromkeys(FIGURES, 0.0)
        spent["tokens"] += usage.tokens
        spent["money"] += usage.money or 0.0
        spent["calls"] += calls

    def left(self, figure: str) -> float | None:
        """Return what is left of *figure*, ``None`` for no limit."""
        limit: float | None = getattr(self.limit, figure)
        if limit is None:
            return None
        used = self._clock.now() - self._opened_at if figure == "seconds" else (self._spent or {}).get(figure, 0.0)
        return max(0.0, limit - used - (self._reserved or {}).get(figure, 0.0))

    def exhausted(self) -> str:
        """Return the first figure of which nothing is left, or an empty text."""
        if self.limit is UNLIMITED:
            return ""
        return next((figure for figure in FIGURES if self.left(figure) == 0.0), "")

    def reserve(self, asked: Budget) -> Budget:
        """Set a child's budget aside and return it: never more than what is left."""
        if self.limit is UNLIMITED or self.limit == UNLIMITED:
            return asked
        reserved = self._reserved = self._reserved or dict.fromkeys(FIGURES, 0.0)
        given: dict[str, float | None] = {}
        for figure in FIGURES:
            left, wanted = self.left(figure), getattr(asked, figure)
            if left is None:
                given[figure] = wanted
            else:
                share = left / 2 if wanted is None else min(wanted, left)
                given[figure] = share if figure in ("money", "seconds") else int(share)
                if figure != "seconds":
                    reserved[figure] += given[figure] or 0.0
        return Budget(**given)  # type: ignore[arg-type]  # each figure keeps the type of its field

    def hold(self, given: Budget) -> None:
        """Set aside again what a child was given before a resume."""
        if self.limit == UNLIMITED:
            return
        reserved = self._reserved = self._reserved or dict.fromkeys(FIGURES, 0.0)
        for figure in ("calls", "tokens", "money"):
            if getattr(self.limit, figure) is not None:
                reserved[figure] += getattr(given, figure) or 0.0

    def settle(self, child: Account) -> None:
        """Take back what *child*, now gone, did not spend, and book what it did."""
        if self._reserved is None:
            return
        spent = self._spent = self._spent or dict.fromkeys(FIGURES, 0.0)
        for figure in ("calls", "tokens", "money"):
            given = getattr(child.limit, figure)
            if given is not None and getattr(self.limit, figure) is not None:
                self._reserved[figure] -= given
                spent[figure] += given - (child.left(figure) or 0.0)
