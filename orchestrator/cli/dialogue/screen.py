"""What a conversation shows: lines of activity, flowing text, and below them the line that is being typed.

Rules:

- Whatever is written first takes the typed line away and puts it back below. It uses no escape sequence for that:
  the line has one row, which is overwritten with blanks.
- Flowing text is written as it comes. While it flows and nothing is typed, no prompt stands in it.
- Nobody reads any more (a closed pipe, a terminal that is gone): nothing is written from then on, and ``gone`` is set.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO

from orchestrator.cli.line import lines_of, one_line, width

if TYPE_CHECKING:
    from orchestrator.cli.dialogue.editor import Editor

__all__ = ["Screen"]

COLUMNS = 80


class Screen:
    """Two streams, *out* for what the agent says and *err* for all else; on a terminal both are one, *interactive*."""

    def __init__(self, out: TextIO, err: TextIO, *, interactive: bool) -> None:
        self.interactive = interactive
        self.gone = False
        self._out = out
        self._err = err
        self._breaks = out.isatty()
        self._typed: tuple[str, Editor] | None = None
        self._always = False
        self._drawn = 0
        self._flowing = False

    def say(self, text: str) -> None:
        """Show *text*, each line of it on a line of its own."""
        self._erase()
        if self._breaks:
            self._break()
        for line in lines_of(text).split("\n"):
            self._write(self._err, f"{line}\n")
        self._draw()

    def flow(self, text: str) -> None:
        """Show a piece of flowing text where the last one ended."""
        if not text:
            return
        self._erase()
        self._write(self._out, lines_of(text))
        self._flowing = not text.endswith("\n")
        self._draw()

    def still(self) -> None:
        """End the line in which text flows, if one does."""
        if self._flowing:
            self._erase()
            self._break()
            self._draw()

    def typing(self, mark: str, editor: Editor | None, *, always: bool) -> None:
        """From now on *editor*'s line stands at the bottom behind *mark*, or only while it is not empty; or nothing."""
        self._erase()
        self._typed, self._always = None if editor is None else (mark, editor), always
        self._draw()

    def refresh(self) -> None:
        """Draw the typed line as it is now."""
        self._erase()
        self._draw()

    def keep(self, line: str) -> None:
        """Leave *line* where it was typed, and go below it."""
        if self._typed is None or not self.interactive:
            return
        self._erase()
        self._break()
        self._write(self._err, f"{self._typed[0]}{one_line(line)}\n")

    def _draw(self) -> None:
        if self._typed is None or not self.interactive:
            return
        mark, editor = self._typed
        if not editor.text and (not self._always or self._flowing):
            return
        self._break()
        shown, behind = editor.shown(columns_of(self._err) - width(mark) - 1)
        self._drawn = width(mark) + width(shown)
        self._write(self._err, f"{mark}{shown}" + "\b" * behind)

    def _break(self) -> None:
        if self._flowing:
            self._write(self._out, "\n")
            self._flowing = False

    def _erase(self) -> None:
        if self._drawn:
            self._write(self._err, "\r" + " " * self._drawn + "\r")
            self._drawn = 0

    def _write(self, stream: TextIO, text: str) -> None:
        """Write *text* as far as the stream's encoding goes."""
        if self.gone:
            return
        encoding = stream.encoding or "utf-8"
        try:
            stream.write(text.encode(encoding, "replace").decode(encoding))
            stream.flush()
        except (OSError, ValueError):
            self.gone = True


def columns_of(stream: TextIO) -> int:
    """Return how many cells a row of *stream*'s terminal has."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or COLUMNS
    except (OSError, ValueError):
        return COLUMNS
