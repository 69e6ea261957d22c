"""What every journal store promises, and how one is named.

A store keeps, for each session, one append-only log of opaque records numbered 1, 2, 3 … That number is the only
order there is: no clock takes part in it. At most one writer holds a session at a time (its *lease*); each taking of
the lease raises the session's *fence*, and a write under an older fence is refused and leaves no trace.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import parse_qsl, unquote

from orchestrator.journal.fault import (
    LeaseLost,
    SessionExists,
    SessionUnknown,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreUnavailable,
    StoreVersion,
)
from orchestrator.journal.row import SessionRow

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = (
    "LeaseLost",
    "Log",
    "SessionExists",
    "SessionRow",
    "SessionUnknown",
    "Store",
    "StoreDamaged",
    "StoreError",
    "StoreFull",
    "StoreUnavailable",
    "StoreVersion",
    "open_store",
)

SCHEMES = "memory:, sqlite:///relative.db, sqlite:////absolute.db, or a path that ends in .db"
SYNCHRONOUS = ("full", "normal")


class Log(Protocol):
    """One session's log, held for writing under a lease. To be used on the event loop that opened it."""

    @property
    def session(self) -> str:
        """The session's id."""

    @property
    def fence(self) -> int:
        """The token of this lease; every later lease of the session has a higher one."""

    @property
    def durable(self) -> int:
        """The highest seq known to survive a crash (memory: the last appended)."""

    @property
    def dropped(self) -> int:
        """The seq of the torn last record that ``resume`` removed; 0 when there was none."""

    def append(self, seq: int, data: bytes) -> None:
        """Accept record *seq*; never waits. It is stored by itself, in order; ``sync`` tells when.

        :raises ValueError: *seq* is not the previous one + 1; nothing was accepted.
        :raises StoreError: an earlier append failed; every later one fails with the same until the log is closed.
        """

    async def sync(self, seq: int | None = None) -> None:
        """Return once *seq* (default: everything appended) is durable. Cancel: the wait ends, the append stays.

        :raises ValueError: *seq* was never appended.
        :raises StoreError: what made the write fail; nothing from that record on was stored.
        """

    async def close(self, status: str) -> None:
        """Wait for durability, record *status* (``open`` or ``closed``), give the lease back. Closing twice is fine.

        Cancel: the wait ends, the log closes all the same.

        :raises StoreError: a write had failed. The lease is given back and the status left as it was.
        """


class Store(Protocol):
    """Many sessions' logs. The first use opens it; nothing is read or written before."""

    @property
    def url(self) -> str:
        """What ``open_store`` needs to open the same store from any directory."""

    async def create(self, session: str, *, title: str, labels: Mapping[str, str]) -> Log:
        """Add an empty session and hold it. Cancel: the session may exist, held by nobody.

        :raises SessionExists: the id is taken.
        """

    async def resume(self, session: str) -> tuple[Log, tuple[bytes, ...]]:
        """Hold an existing session and return all its records. Cancel: the lease is given back.

        A torn or missing last record is removed first: at most that one, see ``Log.dropped``.

        :raises SessionUnknown: there is no such session.
        :raises StoreUnavailable: another writer holds it; the error names the process.
        :raises StoreDamaged: a record before the last is damaged or missing. The session was not taken.
        """

    async def read(self, session: str, after: int = 0, limit: int | None = None) -> tuple[bytes, ...]:
        """At most *limit* records that follow *after*, in order. Needs no lease and changes nothing.

        :raises SessionUnknown: there is no such session.
        :raises StoreDamaged: a wanted record before the last is damaged or missing.
        """

    async def sessions(self) -> tuple[SessionRow, ...]:
        """Every session, in the order of creation."""

    async def close(self) -> None:
        """Write what was appended, give every lease back, let go of the file and the thread. Twice is fine."""


def open_store(url: str) -> Store:
    """The store *url* names. No I/O: a file is opened or made by the first use.

    :raises StoreUnavailable: the scheme, or one of its parameters, is not known; the error lists those that are.
    """
    scheme, colon, rest = url.partition(":")
    if url == "memory:":
        from orchestrator.journal.memory import MemoryStore

        return MemoryStore()
    if colon and scheme == "sqlite":
        return open_sqlite(url, rest)
    if colon and scheme.startswith("postgres"):
        fault = "PostgreSQL is not supported by this release"
        raise StoreUnavailable(
            scheme + "://…", fault, "it comes with the extra [postgres] in a later release; use sqlite:"
        )
    if url.endswith(".db") and "://" not in url:
        return sqlite_at(url, {})
    raise StoreUnavailable(f"store {url!r}", "the scheme is not known", f"known are {SCHEMES}")


def open_sqlite(url: str, rest: str) -> Store:
    """The SQLite store of ``sqlite:`` + *rest*."""
    path, _, query = rest.removeprefix("///").partition("?")
    if not rest.startswith("///") or not path or path == ":memory:":
        raise StoreUnavailable(f"store {url!r}", "it names no file", f"known are {SCHEMES}")
    return sqlite_at(unquote(path), dict(parse_qsl(query, keep_blank_values=True)), url)


def sqlite_at(path: str, options: Mapping[str, str], url: str = "") -> Store:
    """The SQLite store in the file *path*."""
    from orchestrator.journal.sqlite import SqliteStore

    place = f"store {url!r}"
    unknown = sorted(set(options) - {"synchronous", "max_bytes"})
    if unknown:
        fault = f"parameter {unknown[0]!r} is not known"
        raise StoreUnavailable(place, fault, "known are synchronous=full|normal and max_bytes=N")
    synchronous = options.get("synchronous", "full").lower()
    if synchronous not in SYNCHRONOUS:
        raise StoreUnavailable(
            place, f"synchronous={synchronous} is not known", "use synchronous=full or synchronous=normal"
        )
    size = options.get("max_bytes", "0")
    if not (size.isascii() and size.isdigit()):
        raise StoreUnavailable(place, f"max_bytes={size} is not a number of bytes", "use max_bytes=N, or leave it out")
    return SqliteStore(Path(path).absolute(), synchronous=synchronous, max_bytes=int(size))
