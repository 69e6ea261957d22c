"""The one line a store keeps about each session, apart from its records."""

from __future__ import annotations

import difflib
import time
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("SessionRow", "close_names", "wall_ms")

MAX_CLOSE_NAMES = 3


class SessionRow(msgspec.Struct, frozen=True):
    """What a list of sessions shows. Times are wall-clock milliseconds: to be read by people, never to order by."""

    id: str
    title: str
    labels: tuple[tuple[str, str], ...]
    status: str
    created_ms: int
    updated_ms: int
    records: int


def close_names(wanted: str, known: Iterable[str]) -> tuple[str, ...]:
    """At most three of *known* that look like *wanted*, the closest first."""
    return tuple(difflib.get_close_matches(wanted, list(known), n=MAX_CLOSE_NAMES))


def wall_ms() -> int:
    """Wall-clock milliseconds: for dates that people read, and for lease expiry, which other hosts compare."""
    return time.time_ns() // 1_000_000
