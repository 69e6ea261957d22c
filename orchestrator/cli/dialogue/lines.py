"""From lines to texts: a backslash at the end takes the next line in, three quotes begin and end a block. Pure."""

from __future__ import annotations

__all__ = ["Lines"]

QUOTES = '"""'


class Lines:
    """The lines of a text that is not whole yet."""

    def __init__(self) -> None:
        self._held: list[str] = []
        self._block = False
        self._plain = False

    @property
    def begun(self) -> bool:
        """Whether a text was begun that is not whole."""
        return bool(self._held) or self._block

    def add(self, line: str) -> str | None:
        """Take the next *line*; return the text that it makes whole, or ``None`` when there is more to come."""
        if not self.begun:
            self._plain = not line.lstrip().startswith(QUOTES)
        if not self._plain:
            return self._in_block(line)
        if line.endswith("\\"):
            self._held.append(line[:-1])
            return None
        return self._whole(line)

    def command(self, text: str) -> bool:
        """Tell whether *text*, which was just made whole, is a command: one plain line that begins with one ``/``."""
        return self._plain and text.startswith("/") and not text.startswith("//")

    def drop(self) -> bool:
        """Forget what was begun; return whether anything was."""
        was = self.begun
        self._held, self._block = [], False
        return was

    def _in_block(self, line: str) -> str | None:
        if not self._block:
            self._block, line = True, line.lstrip().removeprefix(QUOTES)
        if not line.rstrip().endswith(QUOTES):
            self._held.append(line)
            return None
        self._block = False
        return self._whole(line.rstrip().removesuffix(QUOTES))

    def _whole(self, line: str) -> str:
        text = "\n".join((*self._held, line))
        self._held = []
        return text.strip("\n")
