"""The file: how it is made, recognised, brought up to date, and what its faults are called.

A new file is built whole under a temporary name and then linked into place, so a half-made store never exists and two
processes that make the same one cannot meet. A file of another program, or of a newer release, is not touched.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import quote

from orchestrator.journal.fault import StoreDamaged, StoreError, StoreFull, StoreUnavailable, StoreVersion
from orchestrator.journal.row import wall_ms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ("APPLICATION_ID", "MIGRATIONS", "fault_of", "migrate", "open_file", "transaction")

APPLICATION_ID = 0x4F524A4C
"""Marks the file as a journal of this library ("ORJL")."""

BUSY_MS = 5_000
"""How long a write waits for another process's commit, in milliseconds."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        f"PRAGMA application_id = {APPLICATION_ID}",
        "CREATE TABLE schema_history (version INTEGER PRIMARY KEY, applied_ms INTEGER NOT NULL)",
        """CREATE TABLE sessions (
            key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, labels TEXT NOT NULL,
            status TEXT NOT NULL CHECK (status IN ('open', 'closed')),
            created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL, records INTEGER NOT NULL, fence INTEGER NOT NULL,
            token TEXT, host TEXT, pid INTEGER, started TEXT, expires_ms INTEGER)""",
        """CREATE TABLE records (
            session INTEGER NOT NULL REFERENCES sessions (key), seq INTEGER NOT NULL CHECK (seq > 0),
            crc INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (session, seq))""",
    ),
)
"""Entry *n* turns layout *n* into layout *n* + 1. Published entries never change; new ones are added at the end."""


def open_file(path: Path, *, synchronous: str, max_bytes: int) -> sqlite3.Connection:
    """Connect to the journal at *path*, made (mode 0600) or brought up to date if need be. Blocks.

    *max_bytes* bounds the main file; 0 leaves it to the disk. The connection belongs to the thread that calls.

    :raises StoreError: it cannot be opened, is not a journal, or is of a newer release.
    :raises sqlite3.Error: see ``fault_of``.
    """
    place = str(path)
    if not path.exists():
        make(path)
    elif not path.is_file():
        raise StoreUnavailable(place, "it is not a file", "name a file for the store")
    elif not os.access(path, os.R_OK | os.W_OK):
        raise StoreUnavailable(
            place, "this user may not read and write it", "change its mode or owner, or choose another"
        )
    db = connect(path)
    try:
        recognise(db, place)
        set_up(db, place, synchronous=synchronous, max_bytes=max_bytes)
        migrate(db, MIGRATIONS, place)
    except BaseException:
        db.close()
        raise
    return db


def make(path: Path) -> None:
    """Build an empty journal and link it to *path*; if another process was faster, keep its file.

    The directory is made if only the last part of it is missing.
    """
    directory = path.parent
    if not directory.parent.is_dir():
        fault = f"the directory {directory} does not exist"
        raise StoreUnavailable(str(path), fault, f"make it (mkdir -p {directory}), or choose another place")
    directory.mkdir(mode=0o700, exist_ok=True)
    draft = directory / f".{path.name}.{secrets.token_hex(8)}"
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        db = connect(draft)
        try:
            set_up(db, str(path), synchronous="full", max_bytes=0)
            migrate(db, MIGRATIONS, str(path))
        finally:
            db.close()
        with suppress(FileExistsError):
            os.link(draft, path)
            flush(directory)
    finally:
        for end in ("", "-wal", "-shm", "-journal"):
            draft.with_name(draft.name + end).unlink(missing_ok=True)


def flush(directory: Path) -> None:
    """Make the names in *directory* survive a power cut."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def connect(path: Path) -> sqlite3.Connection:
    """A connection to an existing file, without any of Python's own transaction handling."""
    address = f"file:{quote(str(path))}?mode=rw"
    return sqlite3.connect(address, uri=True, isolation_level=None, timeout=BUSY_MS / 1000)


def recognise(db: sqlite3.Connection, place: str) -> None:
    """Refuse a database of another program, before anything of it is changed.

    :raises StoreUnavailable: it is one.
    """
    mark = pragma(db, "application_id")
    if mark == APPLICATION_ID or (not mark and not pragma(db, "schema_version")):
        return
    raise StoreUnavailable(place, "it is a database of another program", "choose another file for the store")


def set_up(db: sqlite3.Connection, place: str, *, synchronous: str, max_bytes: int) -> None:
    """Set what holds for this connection, and the write-ahead log, which holds for the file."""
    db.execute(f"PRAGMA synchronous = {synchronous}")
    if max_bytes:
        db.execute(f"PRAGMA max_page_count = {max(max_bytes // pragma(db, 'page_size'), 1)}")
    (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreUnavailable(place, "its file system cannot hold a write-ahead log", "use a local disk")


def migrate(db: sqlite3.Connection, steps: Sequence[tuple[str, ...]], place: str) -> None:
    """Bring the file to layout ``len(steps)`` in one transaction: all of it, or nothing.

    :raises StoreVersion: the file's layout is newer than that.
    """
    known = len(steps)
    if pragma(db, "user_version") == known:
        return
    with transaction(db):
        found = pragma(db, "user_version")
        if found > known:
            raise StoreVersion(found, known, place)
        for version, statements in enumerate(steps[found:], found + 1):
            for statement in statements:
                db.execute(statement)
            db.execute("INSERT INTO schema_history VALUES (?, ?)", (version, wall_ms()))
            db.execute(f"PRAGMA user_version = {version}")


def pragma(db: sqlite3.Connection, name: str) -> int:
    """The number that ``PRAGMA`` *name* reports."""
    (value,) = db.execute(f"PRAGMA {name}").fetchone()
    return int(value)


@contextmanager
def transaction(db: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """Everything inside is committed together, or, when anything is raised, undone together."""
    db.execute(f"BEGIN {kind}")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            with suppress(sqlite3.Error):
                db.execute("ROLLBACK")
        raise


def fault_of(error: Exception, place: str) -> StoreError:
    """The store's own name for what SQLite or the system reported about *place*."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(place)
    if code == sqlite3.SQLITE_CORRUPT:
        return StoreDamaged(place, 0, f"SQLite found it damaged ({error})")
    if code == sqlite3.SQLITE_NOTADB:
        return StoreUnavailable(place, "it is not a SQLite database", "choose another file for the store")
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        fault = f"another process kept it locked for {BUSY_MS / 1000:g} s"
        return StoreUnavailable(place, fault, "end that process, or try again later")
    if isinstance(error, sqlite3.DataError | UnicodeError) or "decode to UTF-8" in str(error):
        return StoreDamaged(place, 0, f"it holds text that cannot be read ({error})")
    return StoreUnavailable(place, str(error), "check the disk, and the mode of the file and its directory")
