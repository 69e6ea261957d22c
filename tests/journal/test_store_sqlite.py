"""The SQLite store's file: how it is made, recognised and refused, and what its writer leaves behind."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from orchestrator.journal.schema import MIGRATIONS, fault_of, migrate, open_file
from orchestrator.journal.sqlite import SqliteStore
from orchestrator.journal.store import StoreDamaged, StoreError, StoreUnavailable, StoreVersion, open_store

ROOT = Path(__file__).parents[2]

UNREADABLE = """
import asyncio, os, sys
from pathlib import Path
from orchestrator.journal.sqlite import SqliteStore
from orchestrator.journal.store import StoreUnavailable

async def main():
    store = SqliteStore(Path(sys.argv[1]))
    try:
        await store.sessions()
    except StoreUnavailable as error:
        print(error)
    await store.close()

if os.geteuid() == 0:
    os.setresuid(65534, 65534, 65534)
asyncio.run(main())
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture
def diary(path: Path) -> Path:
    path.write_text("dear diary, " * 100, "utf-8")
    return path


@pytest.fixture
def foreign(path: Path) -> Path:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE sessions (id TEXT)")
    db.close()
    return path


def make_directory(path: Path) -> None:
    path.mkdir(parents=True)


def content(path: Path) -> bytes:
    return path.read_bytes()


def files(directory: Path) -> dict[str, int]:
    return {it.name: it.stat().st_mode & 0o777 for it in sorted(directory.iterdir())}


async def refusal(path: Path) -> StoreError:
    store = SqliteStore(path)
    with pytest.raises(StoreError) as caught:
        await store.sessions()
    await store.close()
    assert str(path) in str(caught.value)
    return caught.value


async def test_the_file_is_its_owners_alone_and_nothing_else_is_left(path: Path) -> None:
    async with asyncio.timeout(5):
        store = open_store(str(path))
        assert files(path.parent) == {}
        log = await store.create("a", title="", labels={})
        assert files(path.parent) == {"journal.db": 0o600, "journal.db-shm": 0o600, "journal.db-wal": 0o600}
        await log.close("open")
        await store.close()
        assert files(path.parent) == {"journal.db": 0o600}


async def test_only_the_last_part_of_a_missing_directory_is_made(tmp_path: Path) -> None:
    async with asyncio.timeout(5):
        near = SqliteStore(tmp_path / "runs" / "journal.db")
        assert await near.sessions() == ()
        await near.close()
        error = await refusal(tmp_path / "no" / "such" / "journal.db")
        assert isinstance(error, StoreUnavailable)
        assert f"mkdir -p {tmp_path}/no/such" in error.remedy
        assert list(files(tmp_path)) == ["runs"]


async def test_a_store_that_could_not_be_opened_opens_once_the_fault_is_gone(tmp_path: Path) -> None:
    place = tmp_path / "no" / "such"
    async with asyncio.timeout(5):
        store = SqliteStore(place / "journal.db")
        with pytest.raises(StoreUnavailable, match="does not exist"):
            await store.sessions()
        make_directory(place)
        assert await store.sessions() == ()
        await store.close()


async def test_a_directory_in_the_files_place_is_refused(tmp_path: Path) -> None:
    async with asyncio.timeout(5):
        assert "it is not a file" in str(await refusal(tmp_path))


async def test_a_file_in_the_directorys_place_is_refused(diary: Path) -> None:
    async with asyncio.timeout(5):
        assert isinstance(await refusal(diary / "journal.db"), StoreUnavailable)


def test_a_file_this_user_may_not_read_is_refused() -> None:
    with tempfile.TemporaryDirectory() as place:  # one that another user can enter: root drops its rights for this
        path = Path(place) / "journal.db"
        path.parent.chmod(0o755)
        path.write_bytes(b"")
        path.chmod(0)
        command = [sys.executable, "-c", UNREADABLE, str(path)]
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=True)
        assert f"{path}: this user may not read and write it; change its mode" in ran.stdout


async def test_a_file_that_is_no_database_is_refused_and_kept(diary: Path) -> None:
    async with asyncio.timeout(5):
        assert "not a SQLite database" in str(await refusal(diary))
        assert content(diary) == b"dear diary, " * 100


async def test_a_database_of_another_program_is_refused_and_kept(foreign: Path) -> None:
    before = content(foreign)
    async with asyncio.timeout(5):
        assert "database of another program" in str(await refusal(foreign))
        assert content(foreign) == before


async def test_a_newer_layout_is_refused_with_both_versions(path: Path) -> None:
    async with asyncio.timeout(5):
        store = SqliteStore(path)
        await store.sessions()
        await store.close()
        db = sqlite3.connect(path)
        db.execute("PRAGMA user_version = 99")
        db.close()
        error = await refusal(path)
        assert isinstance(error, StoreVersion)
        assert (error.found, error.known) == (99, len(MIGRATIONS))


async def test_an_empty_file_becomes_a_store() -> None:
    with tempfile.NamedTemporaryFile(suffix=".db") as empty:
        async with asyncio.timeout(5):
            store = open_store(empty.name)
            assert await store.sessions() == ()
            await store.close()


def test_an_older_layout_is_brought_up_to_date_and_keeps_what_it_holds(path: Path) -> None:
    db = open_file(path, synchronous="full", max_bytes=0)
    db.execute("INSERT INTO records VALUES (1, 1, 7, x'00')")
    migrate(db, (*MIGRATIONS, ("ALTER TABLE sessions ADD COLUMN colour TEXT",)), "here")
    version = len(MIGRATIONS) + 1
    assert db.execute("PRAGMA user_version").fetchone() == (version,)
    assert [row[0] for row in db.execute("SELECT version FROM schema_history")] == list(range(1, version + 1))
    assert db.execute("SELECT crc FROM records").fetchall() == [(7,)]
    assert db.execute("SELECT colour FROM sessions").fetchall() == []
    db.close()


def test_a_migration_that_fails_leaves_the_layout_as_it_was(path: Path) -> None:
    db = open_file(path, synchronous="full", max_bytes=0)
    before = db.execute("SELECT sql FROM sqlite_master").fetchall()
    broken = (*MIGRATIONS, ("CREATE TABLE fresh (x)",), ("CREATE TABLE fresh (x)",))
    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        migrate(db, broken, "here")
    assert db.execute("SELECT sql FROM sqlite_master").fetchall() == before
    assert db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    db.close()


@pytest.mark.parametrize("synchronous, level", [("full", 2), ("normal", 1)])
def test_the_url_chooses_how_hard_a_commit_is_flushed(path: Path, synchronous: str, level: int) -> None:
    db = open_file(path, synchronous=synchronous, max_bytes=0)
    assert db.execute("PRAGMA synchronous").fetchone() == (level,)
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()


async def test_many_stores_that_make_one_file_at_once_all_find_it(path: Path) -> None:
    stores = [SqliteStore(path) for _ in range(8)]
    async with asyncio.timeout(10):
        await asyncio.gather(*(it.create(f"s{n}", title="", labels={}) for n, it in enumerate(stores)))
        assert len(await stores[0].sessions()) == 8
        await asyncio.gather(*(it.close() for it in stores))
        assert files(path.parent) == {"journal.db": 0o600}


@pytest.mark.parametrize(
    "error, kind, told",
    [
        (PermissionError(13, "Permission denied"), StoreUnavailable, "Permission denied"),
        (sqlite3.OperationalError("disk I/O error"), StoreUnavailable, "disk I/O error"),
        (sqlite3.OperationalError("Could not decode to UTF-8 column 'title'"), StoreDamaged, "cannot be read"),
    ],
)
def test_what_the_system_reports_becomes_the_stores_own_fault(
    error: Exception, kind: type[StoreError], told: str
) -> None:
    found = fault_of(error, "here")
    assert type(found) is kind
    assert "here" in str(found)
    assert told in str(found)
