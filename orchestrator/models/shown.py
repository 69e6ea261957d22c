"""What of a reply's text was shown, over several attempts: nothing is shown twice, and nothing void stays unsaid. Pure.

Rules:

- The first attempt's text is shown as it comes.
- A later attempt says nothing new as long as its text is what was shown already, letter for letter; what goes beyond
  that is shown.
- Where it differs, one note says from which letter on the text shown is void, and its own text goes on from there. So
  does a reply that ends before what was shown does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.messages import Note

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["REPLACED_NOTE", "Shown"]

REPLACED_NOTE = "text_replaced"
VOID = "The new answer differs from what was shown: only the first {kept} characters stand."


class Shown:
    """The text that was shown of one reply. ``delta`` takes its pieces, and the notes about them."""

    __slots__ = ("_again", "_delta", "_place", "_text")

    def __init__(self, delta: Callable[[str | Note], None]) -> None:
        self._delta = delta
        self._text: list[str] = []
        self._again = ""
        self._place = 0

    def restart(self) -> None:
        """Another attempt begins."""
        self._again, self._place = "".join(self._text), 0
        self._text = [self._again]

    def show(self, piece: str) -> None:
        """Take the next *piece* of the attempt's text and show what of it is new."""
        place, again = self._place, self._again
        if place < len(again):
            same = _shared(again, place, piece)
            self._place = place + same
            piece = piece[same:]
            if not piece:
                return
            if self._place < len(again):
                self._void()
        if piece:
            self._text.append(piece)
            self._delta(piece)

    def finish(self) -> None:
        """The attempt's text is whole."""
        if self._place < len(self._again):
            self._void()

    def _void(self) -> None:
        """What was shown beyond the present place does not stand."""
        self._delta(Note(REPLACED_NOTE, VOID.format(kept=self._place)))
        self._text, self._again = [self._again[: self._place]], ""
        self._place = 0


def _shared(shown: str, place: int, piece: str) -> int:
    """Return how many letters of *piece* are those of *shown* from *place* on."""
    if shown.startswith(piece, place):
        return len(piece)
    end = min(len(piece), len(shown) - place)
    return next((index for index in range(end) if shown[place + index] != piece[index]), end)
