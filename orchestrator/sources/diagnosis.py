"""What is known of a server that misbehaves: bounded, for people to read, never for a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.text import clip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["Diagnosis"]

MAX_SAMPLES = 5
MAX_SAMPLE = 200
MAX_SAID_BYTES = 8 * 1024
MIN_HIDDEN = 4


class Diagnosis:
    """What one server did besides answering. *tell* hears ``(kind, text)`` of what people should see at once."""

    def __init__(self, tell: Callable[[str, str], None]) -> None:
        self._tell = tell
        self._said = b""
        self._hidden: tuple[str, ...] = ()
        self.dropped = 0
        self.samples: list[str] = []

    def hide(self, values: Iterable[str]) -> None:
        """Never show any of *values*, whatever the server makes of it: it was filled in from the environment."""
        self._hidden = tuple(sorted({value for value in values if len(value) >= MIN_HIDDEN}, key=len, reverse=True))

    def shown(self, text: str) -> str:
        """Return *text* without what is to be hidden."""
        for value in self._hidden:
            text = text.replace(value, "[hidden]")
        return text

    def junk(self, data: bytes, what: str = "") -> None:
        """Count what was no message; the first of it, and then each tenfold, is told with a sample."""
        self.dropped += 1
        sample = clip(what or self.shown(data[:MAX_SAID_BYTES].decode("utf-8", "replace").strip()), MAX_SAMPLE)
        if len(self.samples) < MAX_SAMPLES:
            self.samples.append(sample)
        if str(self.dropped).strip("0") == "1":
            self._tell("source_junk", f"{self.dropped} of what it printed was no message, such as {sample!r}")

    def said(self, data: bytes) -> None:
        """Keep the end of the error output."""
        self._said = (self._said + data)[-MAX_SAID_BYTES:]

    def last_words(self) -> str:
        """Return the last lines of the error output, as one line."""
        lines = [line.strip() for line in self._said.decode("utf-8", "replace").splitlines() if line.strip()]
        return clip(self.shown(" / ".join(lines[-3:])), 400)
