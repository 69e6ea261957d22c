"""Text of others as one line that moves no cursor, and how wide it is."""

from __future__ import annotations

import json
import unicodedata

__all__ = ["exact", "lines_of", "one_line", "width"]

JOINERS = "\u200c\u200d"
NO_CELL = frozenset({"Mn", "Me", "Cf"})
TAB = "    "


def one_line(text: str) -> str:
    """Return *text* with every character that does not print (line ends, escapes, marks of direction) as a blank."""
    return text if text.isprintable() else "".join(piece if piece.isprintable() else " " for piece in text)


def exact(text: str) -> str:
    """Return *text* with every character that does not print as its JSON escape, so that nothing hides in it."""
    return "".join(piece if piece.isprintable() else json.dumps(piece)[1:-1] for piece in text)


def lines_of(text: str) -> str:
    """Return *text* with its line ends, tabs as blanks, and every other character that does not print as a blank.

    The two characters that join letters and pictures stay: they move nothing.
    """
    if text.isprintable():
        return text
    return "".join(
        piece if piece.isprintable() or piece == "\n" or piece in JOINERS else TAB if piece == "\t" else " "
        for piece in text
    )


def width(text: str) -> int:
    """Return how many cells of a terminal *text* takes."""
    if text.isascii():
        return len(text)
    return sum(map(_cells, text))


def _cells(character: str) -> int:
    if unicodedata.category(character) in NO_CELL:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
