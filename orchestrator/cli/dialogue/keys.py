"""A terminal that hands over each key as it is pressed and echoes none; Ctrl-C and Ctrl-Z stay signals."""

from __future__ import annotations

import termios
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Keys"]

LOCAL = 3
CONTROL = 6


class Keys:
    """The terminal *descriptor*; ``with`` it. Nothing that was typed before is lost, going in or out."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._before: list[Any] = []

    def __enter__(self) -> Self:
        with suppress(termios.error):
            self._before = termios.tcgetattr(self._descriptor)
        self.take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._set(self._before)
        self._before = []

    def take(self) -> None:
        """Have keys one by one (again)."""
        if self._before:
            wanted = [*self._before[:CONTROL], list(self._before[CONTROL])]
            wanted[LOCAL] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
            wanted[CONTROL][termios.VMIN], wanted[CONTROL][termios.VTIME] = 1, 0
            self._set(wanted)

    def _set(self, attributes: list[Any]) -> None:
        if attributes:
            with suppress(termios.error):  # the terminal is gone
                termios.tcsetattr(self._descriptor, termios.TCSANOW, attributes)
