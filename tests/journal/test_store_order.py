"""Whatever the clock does and however many write: one order, by number, in every store."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from orchestrator.journal.memory import MemoryStore
from orchestrator.journal.sqlite import SqliteStore

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


@pytest.mark.requirement("B46")
async def test_order_is_by_number_though_the_wall_clock_jumps(new_store: Callable[[], Store], clock: Clock) -> None:
    store = new_store()
    hour_ms = 3_600_000
    async with asyncio.timeout(5):
        log = await store.create("a", title="", labels={})
        for seq, jump_ms in enumerate((0, 2 * hour_ms, -4 * hour_ms, 24 * hour_ms, -24 * hour_ms), 1):
            clock.now_ms += jump_ms
            log.append(seq, b"%d" % seq)
            await log.sync()
        await log.close("open")
        clock.now_ms -= 24 * hour_ms  # it was saved "tomorrow"
        log, records = await store.resume("a")
        assert records == (b"1", b"2", b"3", b"4", b"5")
        log.append(6, b"6")
        await log.sync()
        assert await store.read("a", after=4) == (b"5", b"6")
        await store.close()


@pytest.mark.requirement("B69")
async def test_fifty_senders_at_once_are_all_kept_once_in_accepted_order(new_store: Callable[[], Store]) -> None:
    store = new_store()
    accepted: list[bytes] = []
    async with asyncio.timeout(5):
        log = await store.create("a", title="", labels={})

        async def send(sender: int) -> None:
            for part in (b"call", b"result"):
                data = b"%d %s" % (sender, part)
                accepted.append(data)
                log.append(len(accepted), data)
                await log.sync(len(accepted))

        async with asyncio.TaskGroup() as group:
            for sender in range(50):
                group.create_task(send(sender))
        stored = await store.read("a")
        assert stored == tuple(accepted)
        assert len(set(stored)) == 100
        await store.close()


@pytest.mark.requirement("B69")
async def test_sessions_written_side_by_side_keep_their_own_records_and_counts(
    new_store: Callable[[], Store],
) -> None:
    store = new_store()
    async with asyncio.timeout(5):
        logs = [await store.create(name, title="", labels={}) for name in "abc"]

        async def fill(place: int) -> None:
            for seq in range(1, 20 * (place + 1) + 1):
                logs[place].append(seq, logs[place].session.encode() + b"%d" % seq)
                await logs[place].sync(seq)

        async with asyncio.TaskGroup() as group:
            for place in range(3):
                group.create_task(fill(place))
        assert {row.id: row.records for row in await store.sessions()} == {"a": 20, "b": 40, "c": 60}
        for place, log in enumerate(logs):
            expected = tuple(log.session.encode() + b"%d" % seq for seq in range(1, 20 * (place + 1) + 1))
            assert await store.read(log.session) == expected
        await store.close()
