"""One line as it is typed at a terminal that echoes nothing: keys in, lines out. Pure: it reads and draws nothing.

Rules:

- What a key means is the custom of every shell: arrows, Home, End, Ctrl-A E B F K U W P N, Backspace, Delete. Keys
  that mean nothing here, and all other control characters, change nothing.
- Keys come in pieces of any size: an arrow whose three bytes come one by one is an arrow.
- A line is shown on one row, as much of it as fits, with the cursor in it. It never wraps, so it can be taken away.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from orchestrator.cli.line import one_line, width

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Editor", "Pressed"]

MAX_HISTORY = 500
ESCAPE = "\x1b"
FINAL = range(0x40, 0x7F)
MAX_SEQUENCE = 16
NAMED = {
    "[A": "\x10", "[B": "\x0e", "[C": "\x06", "[D": "\x02", "[H": "\x01", "[F": "\x05", "[1~": "\x01", "[7~": "\x01",
    "[4~": "\x05", "[8~": "\x05", "OA": "\x10", "OB": "\x0e", "OC": "\x06", "OD": "\x02", "OH": "\x01", "OF": "\x05",
}  # fmt: skip
DELETE = "[3~"


class Pressed(enum.Enum):
    """What came of a key that completed no line: the line goes on, or Ctrl-D on an empty one ended the input."""

    GOES_ON = "goes on"
    END = "end"


class Editor:
    """A line, its cursor, and the lines before it.

    ``text`` is the line so far. A ``secret`` one is shown as nothing and remembered nowhere.
    """

    def __init__(self, *, secret: bool = False) -> None:
        self._before: list[str] = []
        self._behind: list[str] = []
        self.secret = secret
        self._sequence = ""
        self._past: list[str] = []
        self._back = 0
        self._aside = ""
        self._keys: dict[str, Callable[[], None]] = {
            "\x01": lambda: self._go(0),
            "\x05": lambda: self._go(len(self.text)),
            "\x02": lambda: self._go(len(self._before) - 1),
            "\x06": lambda: self._go(len(self._before) + 1),
            "\x0b": lambda: self._cut(len(self._before), len(self.text)),
            "\x15": lambda: self._cut(0, len(self._before)),
            "\x17": lambda: self._cut(word_begin("".join(self._before)), len(self._before)),
            "\x08": lambda: self._cut(len(self._before) - 1, len(self._before)),
            "\x7f": lambda: self._cut(len(self._before) - 1, len(self._before)),
            "\x10": lambda: self._recall(1),
            "\x0e": lambda: self._recall(-1),
            DELETE: lambda: self._cut(len(self._before), len(self._before) + 1),
        }

    @property
    def text(self) -> str:
        """The line so far."""
        return "".join((*self._before, *reversed(self._behind)))

    def press(self, character: str) -> str | Pressed:
        """Take one *character* and return the line that it completes, or what else came of it."""
        if self._sequence or character == ESCAPE:
            self._escape(character)
        elif character in "\r\n":
            return self._submit()
        elif character == "\x04" and not self.text:
            return Pressed.END
        elif character == "\x04":
            self._keys[DELETE]()
        elif character in self._keys:
            self._keys[character]()
        elif character == "\t" or character >= " ":
            self._before.append(character)
        return Pressed.GOES_ON

    def clear(self) -> None:
        """Drop the line so far."""
        self._set("", 0)
        self._back = 0

    def shown(self, columns: int) -> tuple[str, int]:
        """Return the part of the line that fits into *columns* cells, and the cells behind the cursor in it."""
        if self.secret:
            return "", 0
        room = max(0, columns)
        most = 2 * room + 2  # of longer text, which is typed or pasted, nothing else could fit
        before, behind = one_line("".join(self._before[-most:])), one_line("".join(self._behind[-most:][::-1]))
        while width(before) > room:
            before = before[1:]
        room -= width(before)
        while width(behind) > room:
            behind = behind[:-1]
        return before + behind, width(behind)

    def _submit(self) -> str:
        line = self.text
        self.clear()
        if line.strip() and not self.secret and (not self._past or self._past[-1] != line):
            self._past = [*self._past, line][-MAX_HISTORY:]
        return line

    def _escape(self, character: str) -> None:
        """Take one character of a key that comes as several; the last one says which key it is."""
        if self._sequence == "" or character == ESCAPE:
            self._sequence = ESCAPE
            return
        self._sequence += character
        key = self._sequence[1:]
        if key in ("[", "O") or (key[0] == "[" and ord(character) not in FINAL and len(key) < MAX_SEQUENCE):
            return
        self._sequence = ""
        action = self._keys.get(NAMED.get(key, key if key == DELETE else ""))
        if action is not None:
            action()

    def _go(self, place: int) -> None:
        self._set(self.text, min(max(0, place), len(self._before) + len(self._behind)))

    def _cut(self, begin: int, end: int) -> None:
        begin, text = max(0, begin), self.text
        self._set(text[:begin] + text[end:], begin)

    def _set(self, text: str, at: int) -> None:
        """Have the line be *text*, with the cursor behind so many of its characters."""
        self._before, self._behind = list(text[:at]), list(text[: at - 1 : -1] if at else text[::-1])

    def _recall(self, step: int) -> None:
        """Go *step* lines back in what was typed before; the line that was begun waits behind the last."""
        place = self._back + step
        if not 0 <= place <= len(self._past):
            return
        if not self._back:
            self._aside = self.text
        self._back = place
        text = self._past[-place] if place else self._aside
        self._set(text, len(text))


def word_begin(text: str) -> int:
    """Return where the last word of *text* begins."""
    words = text.rstrip()
    return max(words.rfind(" "), words.rfind("\t")) + 1
