"""The store that lives and dies with its process: the rules of the others, without a file.

Every record is "durable" when appended, and there is nobody else's lease to outlive: a session is held or it is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.journal.fault import SessionExists, SessionUnknown, StoreError, StoreUnavailable
from orchestrator.journal.row import SessionRow, close_names, wall_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ("MemoryLog", "MemoryStore")


class Shelf:
    """One session's records and who holds them."""

    __slots__ = ("created_ms", "fence", "holder", "labels", "records", "status", "title", "updated_ms")

    def __init__(self, title: str, labels: tuple[tuple[str, str], ...], now_ms: int) -> None:
        self.title = title
        self.labels = labels
        self.status = "open"
        self.created_ms = now_ms
        self.updated_ms = now_ms
        self.fence = 0
        self.holder: MemoryLog | None = None
        self.records: list[bytes] = []


class MemoryLog:
    """A ``Log`` over one shelf."""

    dropped = 0

    def __init__(self, session: str, shelf: Shelf, clock_ms: Callable[[], int]) -> None:
        shelf.fence += 1
        shelf.holder = self
        shelf.status = "open"
        self.session = session
        self.fence = shelf.fence
        self.clock_ms = clock_ms
        self.shelf = shelf

    @property
    def durable(self) -> int:
        """The last appended seq."""
        return len(self.shelf.records)

    def append(self, seq: int, data: bytes) -> None:
        """See ``Log.append``."""
        if self.shelf.holder is not self:
            raise closed(f"session {self.session}")
        if seq != len(self.shelf.records) + 1:
            message = f"session {self.session}: record {seq} does not follow {len(self.shelf.records)}"
            raise ValueError(message)
        self.shelf.records.append(data)

    async def sync(self, seq: int | None = None) -> None:
        """See ``Log.sync``: there is nothing to wait for."""
        if seq is not None and seq > len(self.shelf.records):
            message = f"session {self.session}: record {seq} was never appended"
            raise ValueError(message)

    async def close(self, status: str) -> None:
        """See ``Log.close``."""
        if status not in {"open", "closed"}:
            message = f"a session's status is open or closed, not {status!r}"
            raise ValueError(message)
        if self.shelf.holder is self:
            self.shelf.holder = None
            self.shelf.status = status
            self.shelf.updated_ms = self.clock_ms()


class MemoryStore:
    """A ``Store`` in lists. *clock_ms* dates the rows."""

    url = "memory:"

    def __init__(self, *, clock_ms: Callable[[], int] = wall_ms) -> None:
        self.clock_ms = clock_ms
        self.shelves: dict[str, Shelf] = {}
        self.is_closed = False

    async def create(self, session: str, *, title: str, labels: Mapping[str, str]) -> MemoryLog:
        """See ``Store.create``."""
        self.refuse_if_closed()
        if not session:
            message = "a session needs an id"
            raise ValueError(message)
        if session in self.shelves:
            raise SessionExists(session)
        shelf = self.shelves[session] = Shelf(title, tuple(sorted(labels.items())), self.clock_ms())
        return MemoryLog(session, shelf, self.clock_ms)

    async def resume(self, session: str) -> tuple[MemoryLog, tuple[bytes, ...]]:
        """See ``Store.resume``."""
        shelf = self.shelf(session)
        if shelf.holder is not None:
            fault = f"session {session} is open in this process"
            raise StoreUnavailable(self.url, fault, "close it there first")
        return MemoryLog(session, shelf, self.clock_ms), tuple(shelf.records)

    async def read(self, session: str, after: int = 0, limit: int | None = None) -> tuple[bytes, ...]:
        """See ``Store.read``."""
        end = None if limit is None else max(after, 0) + max(limit, 0)
        return tuple(self.shelf(session).records[max(after, 0) : end])

    async def sessions(self) -> tuple[SessionRow, ...]:
        """See ``Store.sessions``."""
        self.refuse_if_closed()
        return tuple(
            SessionRow(name, it.title, it.labels, it.status, it.created_ms, it.updated_ms, len(it.records))
            for name, it in self.shelves.items()
        )

    async def close(self) -> None:
        """See ``Store.close``: the records are gone with it."""
        self.is_closed = True
        for shelf in self.shelves.values():
            shelf.holder = None

    def shelf(self, session: str) -> Shelf:
        """The session's shelf.

        :raises SessionUnknown: there is none.
        """
        self.refuse_if_closed()
        found = self.shelves.get(session)
        if found is None:
            raise SessionUnknown(session, close_names(session, self.shelves))
        return found

    def refuse_if_closed(self) -> None:
        """Raise if the store was closed.

        :raises StoreUnavailable: it was.
        """
        if self.is_closed:
            raise closed(self.url)


def closed(place: str) -> StoreError:
    """What the use of something closed is answered with."""
    return StoreUnavailable(place, "it was closed", "open it again")
