"""Server-sent events out of bytes, whatever pieces they come in. Pure.

Rules:

- A line ends with LF, CR or CRLF; an empty line ends an event. How the bytes were split changes nothing.
- Several ``data`` lines are one text with LF between them. Comments, ids and unknown fields say nothing.
- An event without data is none, and what the stream breaks off in the middle of is none either.
- A line that is no UTF-8 is damage, wherever it stands: what it was is not known. No event is larger than the limit.
"""

from __future__ import annotations

__all__ = ["EventParser", "EventTooLarge"]

MAX_EVENT_BYTES = 8 * 1024 * 1024
MARK = b"\xef\xbb\xbf"
ENDS = b"\r\n"


class EventTooLarge(ValueError):
    """An event has more than ``limit`` bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(f"one event of the stream has more than {limit} bytes")


class EventParser:
    """Takes bytes, gives the events that they complete, each as its name (empty for most) and its data."""

    __slots__ = ("_begun", "_data", "_held", "_limit", "_name", "_pieces", "_size", "_skip")

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._limit = max_event_bytes
        self._pieces: list[bytes] = []
        self._data: list[bytes] = []
        self._name = b""
        self._size = self._held = 0
        self._skip = False
        self._begun = False

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """Return the events that *data* completes, in order. Raises `EventTooLarge`, and UnicodeDecodeError."""
        if self._skip and data:
            data, self._skip = data.removeprefix(b"\n"), False
        if not data:
            return []
        self._skip = data.endswith(b"\r")
        lines = data.splitlines()
        open_end = data[-1] not in ENDS
        if self._pieces and (len(lines) > 1 or not open_end):
            lines[0] = b"".join((*self._pieces, lines[0]))
            self._pieces.clear()
            self._held = 0
        rest = lines.pop() if open_end else b""
        events = self._take(lines)
        if open_end:
            self._pieces.append(rest)
            self._held += len(rest)
            self._bound()
        return events

    def _take(self, lines: list[bytes]) -> list[tuple[bytes, bytes]]:
        events: list[tuple[bytes, bytes]] = []
        if lines and not self._begun:
            self._begun = True
            lines[0] = lines[0].removeprefix(MARK)
        for line in lines:
            if not line.isascii():
                line.decode()
            if line.startswith(b"data:"):
                value = line[6:] if line.startswith(b"data: ") else line[5:]
                self._add(value)
            elif not line:
                if self._data:
                    events.append((self._name, self._data[0] if len(self._data) == 1 else b"\n".join(self._data)))
                    self._data = []
                self._name, self._size = b"", 0
            elif line.startswith(b"event:"):
                self._name = line[6:].removeprefix(b" ")
            elif line == b"data":
                self._add(b"")
        return events

    def _add(self, value: bytes) -> None:
        """Add a line of the event's text, which the line end before it belongs to."""
        self._size += len(value) + bool(self._data)
        self._data.append(value)
        self._bound()

    def _bound(self) -> None:
        """Raise `EventTooLarge` when the event, or the line that is not whole yet, is."""
        if self._size + self._held > self._limit:
            raise EventTooLarge(self._limit)
