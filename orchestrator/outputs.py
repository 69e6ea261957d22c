"""A tool's answer as text that a model, a journal and a socket can take: valid UTF-8, bounded, never empty."""

from __future__ import annotations

from typing import Any

import msgspec

from actors.text import clean

__all__ = ["as_text", "preview"]

ENCODER = msgspec.json.Encoder(order="deterministic")


def as_text(tool: str, value: Any) -> str:
    """Return the answer *value* of *tool* as text; an empty one is said to be empty.

    Raises TypeError for a value that is neither text nor JSON.
    """
    if type(value) is str:
        text = clean(value)
    elif value is None:
        text = ""
    else:
        try:
            text = ENCODER.encode(value).decode()
        except UnicodeEncodeError:
            text = clean(repr(value))
    return text or f"Tool {tool!r} executed successfully but returned no output."


def preview(text: str, limit: int, handle: str) -> str:
    """Return the beginning and the end of *text* within *limit* bytes, and how to read the rest."""
    size = len(text.encode())
    half = max(0, limit - 300) // 2
    head = text.encode()[:half].decode("utf-8", "ignore")
    tail = text.encode()[-half:].decode("utf-8", "ignore") if half else ""
    note = f"\n… shortened: {size} bytes in all; read_output(handle={handle!r}, offset=…) reads the rest …\n"
    return f"{head}{note}{tail}"
