"""A real terminal to chat at: keys go in, and what a person sees comes out, without the traces of redrawing."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["ROOT", "Sheet", "Terminal"]

ROOT = Path(__file__).parents[2]
OWN_TERMINAL = """\
import fcntl, runpy, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""
PROGRAM = "orchestrator.cli.main"
SECONDS = 10


class Sheet:
    """What stands on a terminal that nothing scrolls off: it knows line ends, carriage returns and backspaces."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = [[]]
        self.column = 0
        self.odd: list[str] = []

    def write(self, text: str) -> None:
        """Show *text*; a control character of any other kind is kept in ``odd``."""
        for character in text:
            if character == "\n":
                self.rows.append([])
            elif character == "\r":
                self.column = 0
            elif character == "\b":
                self.column -= 1
            elif not character.isprintable():
                self.odd.append(character)
            else:
                row = self.rows[-1]
                row.extend(" " * (self.column + 1 - len(row)))
                row[self.column] = character
                self.column += 1

    @property
    def lines(self) -> list[str]:
        """The rows, blanks at their ends gone."""
        return ["".join(row).rstrip() for row in self.rows]

    def __str__(self) -> str:
        return "\n".join(self.lines)


class Terminal:
    """A command at a terminal of its own; ``with`` it. The process is killed at the end if it is still there."""

    def __init__(self, folder: Path, *words: str, columns: int = 200, program: str = PROGRAM) -> None:
        self.sheet = Sheet()
        self.raw = b""
        self._folder = folder
        self._words = (program, *words)
        self._columns = columns
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def __enter__(self) -> Self:
        self._head, tail = pty.openpty()
        fcntl.ioctl(tail, termios.TIOCSWINSZ, struct.pack("HHHH", 24, self._columns, 0, 0))
        self.process = subprocess.Popen(
            (sys.executable, "-c", OWN_TERMINAL, *self._words),
            cwd=self._folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "dumb", "LANG": "C.UTF-8"},
            stdin=tail,
            stdout=tail,
            stderr=tail,
            start_new_session=True,
        )
        self._tail = tail
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        if self._head >= 0:
            os.close(self._head)
            os.close(self._tail)

    def type(self, *texts: str | bytes) -> None:
        """Press keys."""
        for text in texts:
            os.write(self._head, text.encode() if isinstance(text, str) else text)

    def paste(self, text: str) -> None:
        """Press many keys, reading meanwhile, as neither side takes any amount at once."""
        for begin in range(0, len(text), 1000):
            self.type(text[begin : begin + 1000])
            while self._more(0):
                pass

    def signal(self, number: int = signal.SIGINT) -> None:
        """Send the process a signal."""
        self.process.send_signal(number)

    def see(self, text: str, times: int = 1) -> str:
        """Wait until *text* stands there that many times, and return the sheet."""
        while str(self.sheet).count(text) < times:
            assert self._more(), f"{text!r} does not come:\n{self.sheet}"
        return str(self.sheet)

    def prompt(self, typed: str = "> ") -> str:
        """Wait until the prompt stands there with what is *typed*, and nothing else in its row; return the sheet."""
        while "".join(self.sheet.rows[-1]).rstrip() != typed.rstrip():
            assert self._more(), f"no {typed!r} comes:\n{self.sheet}"
        return str(self.sheet)

    def end(self) -> int:
        """Read on until the command has ended; return its exit code."""
        while self.process.poll() is None:
            self._more(0.05)
        while self._more(0):
            pass
        return self.process.wait(SECONDS)

    def hang_up(self) -> None:
        """Let the terminal go away, as a closed window does."""
        os.close(self._tail)
        os.close(self._head)
        self._head = self._tail = -1

    def cooked(self) -> bool:
        """Tell whether the terminal hands over whole lines and echoes, as it did before."""
        flags: int = termios.tcgetattr(self._tail)[3]
        return bool(flags & termios.ICANON and flags & termios.ECHO)

    def _more(self, seconds: float = SECONDS) -> bool:
        ready, _, _ = select.select([self._head], [], [], seconds)
        if not ready:
            return False
        try:
            piece = os.read(self._head, 65_536)
        except OSError:
            return False
        self.raw += piece
        self.sheet.write(self._decoder.decode(piece))
        return bool(piece)
