"""One line of the result: a figure of the library beside the floor's, measured in alternating rounds."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["Row", "alternate", "compared", "table"]

Pair = tuple[float, float]
HEAD = ("figure", "floor", "ours", "", "ratio", "(least-most)", "target", "")


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """A figure. ``ratio`` is the medians' quotient, ``least`` and ``most`` those of single rounds.

    Where there is no floor, ``target`` is a limit for ``ours`` itself. ``None`` as target: none is set.
    """

    name: str
    what: str
    unit: str
    ours: float
    floor: float | None = None
    ratio: float | None = None
    least: float | None = None
    most: float | None = None
    target: float | None = None

    @property
    def verdict(self) -> str:
        """``ok``, ``over``, or nothing without a target."""
        if self.target is None:
            return ""
        return "ok" if (self.ours if self.ratio is None else self.ratio) <= self.target else "over"


def alternate(rounds: int, floor: Callable[[], float], ours: Callable[[], float]) -> list[Pair]:
    """Measure both in turn, *rounds* times, so that a slow moment of the machine meets both."""
    return [(floor(), ours()) for _ in range(rounds)]


def compared(name: str, what: str, unit: str, pairs: Sequence[Pair], target: float | None) -> Row:
    """Return the row of the measured *pairs* of (floor, ours)."""
    ratios = [ours / floor for floor, ours in pairs]
    floor, ours = (statistics.median(side) for side in zip(*pairs, strict=True))
    return Row(name, what, unit, ours, floor, ours / floor, min(ratios), max(ratios), target)


def cells(row: Row) -> tuple[str, ...]:
    """Return the columns of *row* as text."""
    floor = "" if row.floor is None else f"{row.floor:.4g}"
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    spread = "" if row.least is None or row.most is None else f"({row.least:.2f}-{row.most:.2f})"
    target = "" if row.target is None else f"≤ {row.target:g}"
    return row.what, floor, f"{row.ours:.4g}", row.unit, ratio, spread, target, row.verdict


def table(rows: Iterable[Row]) -> str:
    """Return *rows* as aligned text, one a line, under a head."""
    lines = [HEAD, *map(cells, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    text_columns = {0, 3, 7}
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in text_columns else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
