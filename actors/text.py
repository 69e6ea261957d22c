"""Text that every journal, socket and provider can take: valid UTF-8."""

from __future__ import annotations

__all__ = ["MAX_SHOWN", "clean", "clip"]

MAX_SHOWN = 256
"""How many characters of a path an error repeats."""


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
