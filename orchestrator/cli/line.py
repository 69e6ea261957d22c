"""Text of others as one line that moves no cursor."""

from __future__ import annotations

__all__ = ["one_line"]


def one_line(text: str) -> str:
    """Return *text* with every character that does not print (line ends, escapes, marks of direction) as a blank."""
    return text if text.isprintable() else "".join(piece if piece.isprintable() else " " for piece in text)
