"""What every store promises, asked of each of them."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from orchestrator.journal.memory import MemoryStore
from orchestrator.journal.row import SessionRow
from orchestrator.journal.sqlite import SqliteStore
from orchestrator.journal.store import (
    SessionExists,
    SessionUnknown,
    StoreUnavailable,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from orchestrator.journal.store import Store


class Clock:
    """A wall clock that a test sets."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "sqlite"])
def new_store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Callable[[], Store]:
    if request.param == "memory":
        return lambda: MemoryStore(clock_ms=clock)
    return lambda: SqliteStore(tmp_path / "journal.db", clock_ms=clock)


async def test_records_come_back_in_the_order_of_their_numbers(new_store: Callable[[], Store]) -> None:
    store = new_store()
    async with asyncio.timeout(5):
        log = await store.create("a", title="", labels={})
        for seq in range(1, 301):
            log.append(seq, b"record %d" % seq)
        await log.sync()
        assert await store.read("a") == tuple(b"record %d" % seq for seq in range(1, 301))
        assert log.durable == 300
        await store.close()


async def test_read_gives_what_follows_a_number_up_to_a_limit(new_store: Callable[[], Store]) -> None:
    store = new_store()
    async with asyncio.timeout(5):
        log = await store.create("a", title="", labels={})
        for seq, data in enumerate((b"1", b"2", b"3", b"4"), 1):
            log.append(seq, data)
        await log.sync()
        assert await store.read("a", after=1) == (b"2", b"3", b"4")
        assert await store.read("a", after=1, limit=2) == (b"2", b"3")
        assert await store.read("a", limit=0) == ()
        assert await store.read("a", after=4) == ()
        assert await store.read("a", after=99) == ()
        await store.close()


async def test_any_bytes_are_kept_as_they_are(new_store: Callable[[], Store]) -> None:
    store = new_store()
    kept = (b"", b"\x00\x00", b"\xe2\x82", b"\n", bytes(range(256)) * 5000)
    async with asyncio.timeout(5):
        log = await store.create("a", title="", labels={})
        for seq, data in enumerate(kept, 1):
            log.append(seq, data)
        await log.close("open")
        _, records = await store.resume("a")
        assert records == kept
        await store.close()


async def test_a_number_that_does_not_follow_is_refused_and_nothing_is_accepted(new_store: Callable[[], Store]) -> None:
    store = new_store()
    async with asyncio.timeout(5):
        log = await store.create("a", title="", labels={})
        log.append(1, b"1")
        for wrong in (1, 3, 0, -1):
            with pytest.raises(ValueError, match="does not follow 1"):
                log.append(wrong, b"x")
        log.append(2, b"2")
        await log.sync()
        assert await store.read("a") == (b"1", b"2")
        await store.close()


async def test_waiting_for_a_record_that_was_never_appended_is_refused(new_store: Callable[[], Store]) -> None:
    store = new_store()
    async with asyncio.timeout(5):
        log = await store.create("a", title="", labels={})
        with pytest.raises(ValueError, match="never appended"):
            await log.sync(1)
        await store.close()


async def test_a_second_writer_is_refused_until_the_first_closes(new_store: Callable[[], Store]) -> None:
    store = new_store()
    async with asyncio.timeout(5):
        log = await store.create("a", title="", labels={})
        with pytest.raises(StoreUnavailable, match="session a is open in"):
            await store.resume("a")
        await log.close("open")
        again, _ = await store.resume("a")
        assert again.fence > log.fence
        with pytest.raises(StoreUnavailable, match="closed"):
            log.append(1, b"late")
        again.append(1, b"in time")
        await again.sync()
        assert await store.read("a") == (b"in time",)
        await store.close()


async def test_resume_goes_on_after_the_last_record(new_store: Callable[[], Store]) -> None:
    store = new_store()
    async with asyncio.timeout(5):
        log = await store.create("a", title="", labels={})
        log.append(1, b"1")
        await log.close("closed")
        log, records = await store.resume("a")
        assert (records, log.durable, log.dropped) == ((b"1",), 1, 0)
        with pytest.raises(ValueError, match="does not follow 1"):
            log.append(1, b"x")
        log.append(2, b"2")
        await log.close("open")
        _, records = await store.resume("a")
        assert records == (b"1", b"2")
        await store.close()


async def test_reading_needs_no_lease_and_takes_none(new_store: Callable[[], Store]) -> None:
    store = new_store()
    async with asyncio.timeout(5):
        log = await store.create("a", title="", labels={})
        log.append(1, b"1")
        await log.sync()
        assert await store.read("a") == (b"1",)
        log.append(2, b"2")
        await log.sync()
        assert await store.read("a", after=1) == (b"2",)
        await store.close()


async def test_an_unknown_session_is_answered_with_names_that_are_close(new_store: Callable[[], Store]) -> None:
    store = new_store()
    async with asyncio.timeout(5):
        await store.create("invoices-7", title="", labels={})
        for ask in (store.resume, store.read):
            with pytest.raises(SessionUnknown, match=r"no session 'invoice-7'.*invoices-7") as caught:
                await ask("invoice-7")
            assert caught.value.close == ("invoices-7",)
        with pytest.raises(SessionUnknown, match="list the sessions"):
            await store.read("zzz")
        await store.close()


async def test_an_id_is_given_once(new_store: Callable[[], Store]) -> None:
    store = new_store()
    async with asyncio.timeout(5):
        await store.create("a", title="first", labels={})
        with pytest.raises(SessionExists, match="'a' exists"):
            await store.create("a", title="second", labels={})
        with pytest.raises(ValueError, match="needs an id"):
            await store.create("", title="", labels={})
        assert [row.title for row in await store.sessions()] == ["first"]
        await store.close()


async def test_the_list_shows_each_session_in_the_order_of_creation(
    new_store: Callable[[], Store], clock: Clock
) -> None:
    store = new_store()
    async with asyncio.timeout(5):
        assert await store.sessions() == ()
        b = await store.create("b", title="Bee", labels={"z": "1", "a": "2"})
        clock.now_ms -= 500
        await store.create("a", title="", labels={})
        clock.now_ms += 1500
        b.append(1, b"x")
        await b.close("closed")
        assert await store.sessions() == (
            SessionRow("b", "Bee", (("a", "2"), ("z", "1")), "closed", 1_000_000, 1_001_000, 1),
            SessionRow("a", "", (), "open", 999_500, 999_500, 0),
        )
        log, _ = await store.resume("b")
        assert (await store.sessions())[0].status == "open"
        with pytest.raises(ValueError, match="open or closed"):
            await log.close("done")
        await store.close()


async def test_waits_for_different_records_each_end_when_theirs_is_durable(new_store: Callable[[], Store]) -> None:
    store = new_store()
    async with asyncio.timeout(5):
        log = await store.create("a", title="", labels={})
        for seq in (1, 2, 3):
            log.append(seq, b"x")
        for wanted in (3, 1, 2):
            await log.sync(wanted)
            assert log.durable >= wanted
        await store.close()


async def test_a_cancelled_wait_leaves_the_append_and_the_other_waits_alone(new_store: Callable[[], Store]) -> None:
    store = new_store()
    async with asyncio.timeout(5):
        log = await store.create("a", title="", labels={})
        log.append(1, b"1")
        hasty, patient = asyncio.create_task(log.sync()), asyncio.create_task(log.sync())
        hasty.cancel()
        await patient
        assert (await asyncio.gather(hasty, return_exceptions=True))[0] is not None
        assert await store.read("a") == (b"1",)
        await store.close()


async def test_closing_the_store_keeps_what_was_appended_and_refuses_what_follows(
    new_store: Callable[[], Store],
) -> None:
    store = new_store()
    async with asyncio.timeout(5):
        log = await store.create("a", title="", labels={})
        log.append(1, b"1")
        await store.close()
        await log.sync()
        assert log.durable == 1
        with pytest.raises(StoreUnavailable, match="closed"):
            log.append(2, b"2")
        for ask in (store.sessions(), store.read("a"), store.resume("a"), store.create("b", title="", labels={})):
            with pytest.raises(StoreUnavailable, match="was closed"):
                await ask
        await log.close("open")
        await store.close()


async def test_closing_twice_or_unused_leaves_no_thread(new_store: Callable[[], Store]) -> None:
    before = threading.active_count()
    async with asyncio.timeout(5):
        await new_store().close()
        store = new_store()
        log = await store.create("a", title="", labels={})
        await log.close("open")
        await log.close("open")
        await store.close()
        await store.close()
    assert threading.active_count() == before
