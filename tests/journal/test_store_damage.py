"""A file that is not as it was written: torn at the end, damaged before it, or full."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import TYPE_CHECKING

import pytest

from orchestrator.journal.sqlite import SqliteStore
from orchestrator.journal.store import StoreDamaged, StoreFull
from orchestrator.journal.tail import sound

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = tuple(f'{{"id":{seq},"text":"é"}}'.encode() for seq in range(1, 6))

TAILS = {
    "cut in the middle": b'{"id":5,"te',
    "cut to nothing": b"",
    "without its newline": b'{"id":5}',
    "half of a character": RECORDS[-1][:-3],
    "a blank line after it": RECORDS[-1] + b"\n\n",
    "NUL padding": RECORDS[-1] + b"\x00" * 64,
    "two records glued": RECORDS[-1] * 2,
    "text instead of bytes": RECORDS[-1].decode(),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


async def write_five(path: Path) -> None:
    store = SqliteStore(path)
    log = await store.create("a", title="", labels={})
    for seq, data in enumerate(RECORDS, 1):
        log.append(seq, data)
    await log.close("open")
    await store.close()


def tamper(path: Path, statement: str, *values: object) -> None:
    db = sqlite3.connect(path)
    with db:
        assert db.execute(statement, values).rowcount > 0
    db.close()


def overwrite(path: Path, start: int) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:start] + b"\xff" * (len(whole) - start))


@pytest.mark.requirement("B67")
@pytest.mark.parametrize("tail", TAILS.values(), ids=TAILS.keys())
async def test_a_torn_last_record_costs_itself_and_nothing_else(path: Path, tail: bytes | str) -> None:
    async with asyncio.timeout(5):
        await write_five(path)
        tamper(path, "UPDATE records SET data = ? WHERE seq = 5", tail)
        store = SqliteStore(path)
        assert await store.read("a") == RECORDS[:4]
        log, records = await store.resume("a")
        assert (records, log.dropped, log.durable) == (RECORDS[:4], 5, 4)
        log.append(5, b"after the repair")
        await log.close("open")
        log, records = await store.resume("a")
        assert (records, log.dropped) == ((*RECORDS[:4], b"after the repair"), 0)
        await store.close()


@pytest.mark.requirement("B67")
async def test_a_missing_last_record_costs_itself_and_nothing_else(path: Path) -> None:
    async with asyncio.timeout(5):
        await write_five(path)
        tamper(path, "DELETE FROM records WHERE seq = 5")
        store = SqliteStore(path)
        log, records = await store.resume("a")
        assert (records, log.dropped) == (RECORDS[:4], 5)
        log.append(5, b"again")
        await log.sync()
        assert await store.read("a", after=3) == (RECORDS[3], b"again")
        await store.close()


@pytest.mark.requirement("B67")
async def test_the_only_record_may_be_torn(path: Path) -> None:
    async with asyncio.timeout(5):
        store = SqliteStore(path)
        log = await store.create("a", title="", labels={})
        log.append(1, b"1")
        await store.close()
        tamper(path, "UPDATE records SET data = x'00'")
        store = SqliteStore(path)
        log, records = await store.resume("a")
        assert (records, log.dropped, log.durable) == ((), 1, 0)
        await store.close()


@pytest.mark.requirement("B67")
@pytest.mark.parametrize(
    "statement, seq, fault",
    [
        ("UPDATE records SET data = x'00' WHERE seq = 3", 3, "checksum"),
        ("UPDATE records SET data = (SELECT data FROM records WHERE seq = 2) WHERE seq = 3", 3, "checksum"),
        ("UPDATE records SET crc = crc + 1 WHERE seq = 1", 1, "checksum"),
        ("DELETE FROM records WHERE seq = 3", 3, "missing"),
        ("DELETE FROM records WHERE seq = 1", 1, "missing"),
        ("DELETE FROM records WHERE seq >= 4", 4, "missing"),
        ("UPDATE records SET data = x'00' WHERE seq >= 4", 4, "checksum"),
    ],
)
async def test_damage_before_the_last_record_is_reported_with_its_place(
    path: Path, statement: str, seq: int, fault: str
) -> None:
    async with asyncio.timeout(5):
        await write_five(path)
        tamper(path, statement)
        store = SqliteStore(path)
        for ask in (store.resume, store.read):
            with pytest.raises(StoreDamaged, match=rf"session a, record {seq}: .*{fault}") as caught:
                await ask("a")
            assert caught.value.seq == seq
        assert await store.read("a", limit=seq - 1) == RECORDS[: seq - 1]
        other = await store.create("b", title="", labels={})
        other.append(1, b"x")
        await other.sync()
        await store.close()


@pytest.mark.requirement("B67")
async def test_a_refused_session_was_not_taken_and_not_changed(path: Path) -> None:
    async with asyncio.timeout(5):
        await write_five(path)
        tamper(path, "UPDATE records SET data = x'00' WHERE seq = 3")
        store = SqliteStore(path)
        with pytest.raises(StoreDamaged):
            await store.resume("a")
        tamper(path, "UPDATE records SET data = ? WHERE seq = 3", RECORDS[2])
        log, records = await store.resume("a")
        assert (records, log.fence) == (RECORDS, 2)
        await store.close()


def test_rows_of_another_session_do_not_pass_for_this_ones() -> None:
    with pytest.raises(StoreDamaged, match="session a, record 1"):
        sound([(1, 0, b"1"), (2, 0, b"2")], place="p", session="a", after=0, reach=2, last=2)


async def test_labels_that_cannot_be_read_are_reported(path: Path) -> None:
    async with asyncio.timeout(5):
        await write_five(path)
        tamper(path, "UPDATE sessions SET labels = '{'")
        store = SqliteStore(path)
        with pytest.raises(StoreDamaged, match=r"journal\.db: a session's labels cannot be read"):
            await store.sessions()
        await store.close()


async def test_a_file_that_sqlite_finds_broken_is_reported(path: Path) -> None:
    async with asyncio.timeout(5):
        store = SqliteStore(path)
        log = await store.create("a", title="", labels={})
        for seq in range(1, 200):
            log.append(seq, b"x" * 1000)
        await store.close()
        overwrite(path, 6 * 4096)
        store = SqliteStore(path)
        with pytest.raises(StoreDamaged, match=r"journal\.db"):
            await store.resume("a")
        await store.close()


@pytest.mark.requirement("B67")
async def test_a_full_disk_fails_whoever_waits_and_keeps_the_past(path: Path) -> None:
    async with asyncio.timeout(5):
        store = SqliteStore(path, max_bytes=200_000)
        log = await store.create("a", title="", labels={})
        log.append(1, b"kept")
        await log.sync()
        for seq in range(2, 6):
            log.append(seq, b"x" * 100_000)
        ends = await asyncio.gather(*(log.sync(5) for _ in range(3)), return_exceptions=True)
        assert [type(end) for end in ends] == [StoreFull] * 3
        with pytest.raises(StoreFull, match=r"journal\.db: no room left"):
            log.append(6, b"small")
        with pytest.raises(StoreFull):
            await log.sync()
        stored = await store.read("a")
        assert stored[0] == b"kept"
        assert log.durable == len(stored) < 5
        await log.sync(log.durable)
        with pytest.raises(StoreFull):
            await log.close("closed")
        assert [row.status for row in await store.sessions()] == ["open"]
        await store.close()


@pytest.mark.requirement("B67")
async def test_a_session_that_met_a_full_disk_goes_on_when_there_is_room(path: Path) -> None:
    async with asyncio.timeout(5):
        store = SqliteStore(path, max_bytes=200_000)
        log = await store.create("a", title="", labels={})
        log.append(1, b"kept")
        await log.sync()
        log.append(2, b"x" * 400_000)
        with pytest.raises(StoreFull):
            await log.close("open")
        log, records = await store.resume("a")
        assert records == (b"kept",)
        log.append(2, b"small enough")
        await log.close("open")
        await store.close()
        assert await roomier(path) == (b"kept", b"small enough", b"x" * 400_000)


async def roomier(path: Path) -> tuple[bytes, ...]:
    store = SqliteStore(path)
    log, _ = await store.resume("a")
    log.append(3, b"x" * 400_000)
    await log.close("closed")
    records = await store.read("a")
    await store.close()
    return records


async def test_a_store_that_never_had_room_for_records_says_so(path: Path) -> None:
    async with asyncio.timeout(5):
        store = SqliteStore(path, max_bytes=1)
        log = await store.create("a", title="", labels={})
        log.append(1, b"x" * 10_000)
        with pytest.raises(StoreFull):
            await log.sync()
        await store.close()
