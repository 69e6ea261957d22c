"""Text that every journal, socket and provider can take: valid UTF-8."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["MAX_SHOWN", "clean", "clip", "listed"]

MAX_SHOWN = 256
"""How many characters of a path an error repeats."""
MAX_LISTED = 40


def clean(text: str) -> str:
    """Return *text* with half surrogate pairs replaced, so that it can be encoded; whole pairs become characters."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clip(text: str, limit: int) -> str:
    """Return *text* cut to *limit* characters, the last of which is then a sign of the cut, and cleaned."""
    return clean(text if len(text) <= limit else f"{text[: limit - 1]}…")


def listed(names: Iterable[str]) -> str:
    """Return the first of *names* as one text that also tells how many more there are; ``none`` for none."""
    known = list(names)
    more = f" and {len(known) - MAX_LISTED} more" if len(known) > MAX_LISTED else ""
    return f"{', '.join(known[:MAX_LISTED])}{more}" if known else "none"
