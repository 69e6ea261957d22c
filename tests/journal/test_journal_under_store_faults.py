"""A store that takes no more, in mid-turn: the caller is told, nothing hangs, nothing is left."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from actors.grants import Access
from actors.tools import tool
from orchestrator.journal.fold import fold
from orchestrator.journal.memory import MemoryLog, MemoryStore
from orchestrator.journal.records import decode
from orchestrator.journal.store import StoreError, StoreFull
from orchestrator.models.function import FunctionModel, call
from tests.supervision.scene import agent, scene, script
from tests.supervision.test_closing import others

if TYPE_CHECKING:
    from collections.abc import Mapping


class FullLog(MemoryLog):
    """A log with room for some records; once it is full it stays so."""

    left: list[int]
    at_append = True
    failed = False

    def append(self, seq: int, data: bytes) -> None:
        """Take the record, or raise when there is no room and the log says so at once."""
        self.left[0] -= 1
        if self.left[0] < 0:
            if self.at_append or self.failed:
                self.failed = True
                raise StoreFull("the double")
            self.failed = True
            return
        super().append(seq, data)

    @property
    def durable(self) -> int:
        """What was stored."""
        return len(self.shelf.records)

    async def sync(self, seq: int | None = None) -> None:  # noqa: ARG002  # the port's signature
        """Raise once a record was not stored."""
        if self.failed:
            raise StoreFull("the double")


class FullStore(MemoryStore):
    """A store whose logs have room for *room* records; full at the append, or only at the next sync."""

    def __init__(self, room: int, *, at_append: bool) -> None:
        super().__init__()
        self.room, self.at_append = room, at_append

    async def create(self, session: str, *, title: str, labels: Mapping[str, str]) -> MemoryLog:
        """Hand out a log that fills up."""
        held = await super().create(session, title=title, labels=labels)
        log = FullLog.__new__(FullLog)
        vars(log).update(vars(held))
        log.left, log.at_append = [self.room], self.at_append
        log.shelf.holder = log
        return log


def workload(ledger: list[str]) -> tuple[Any, FunctionModel]:
    """A turn with a batch, a write, a child awaited and one behind."""

    @tool
    async def look(n: int) -> str:
        """Look."""
        return str(n)

    @tool(access=Access.WRITE)
    async def write(line: str) -> str:
        """Write."""
        ledger.append(line)
        return line

    boss = agent("boss", look, write, children=[agent("worker", look)])
    children = [call("delegate", child="worker", task=str(n), background=n == 2) for n in (1, 2)]
    batch = [call("look", n=1), call("look", n=2)]
    return boss, FunctionModel(
        {
            "boss": script(batch, call("write", line="x"), children, "done"),
            "worker": script(call("look", n=3), "did it"),
        }
    )


async def played(store: MemoryStore, ledger: list[str]) -> str:
    """Run the workload; return how it came out: ``done``, or the name of the error of run."""
    came = "never"
    boss, model = workload(ledger)
    try:
        async with scene(boss, model, store=store) as it:
            try:
                came = (await it.session.run("go")).output
                await it.quiet()
                await it.session.run("next")
            except StoreError as error:
                came = type(error).__name__
    except StoreError:
        came = came if came != "never" else "StoreFull"
    return came


async def size() -> int:
    store = MemoryStore()
    assert await played(store, []) == "done"
    return len(next(iter(store.shelves.values())).records)


@pytest.mark.requirement("I11", "I9")
@pytest.mark.parametrize("at_append", [True, False])
async def test_a_store_that_is_full_at_any_record_makes_run_raise_and_leaves_nothing(*, at_append: bool) -> None:
    async with asyncio.timeout(30):
        found = {}
        before = others()
        for room in range(1, await size() - 1):
            store = FullStore(room, at_append=at_append)
            ledger: list[str] = []
            try:
                async with asyncio.timeout(2):
                    came = await played(store, ledger)
            except TimeoutError:
                came = "a hang"
            records = [decode(data) for data in next(iter(store.shelves.values())).records]
            state = fold(records)
            intended = bool(state.in_doubt) or any(type(e.record).__name__ == "CallIntended" for e in records)
            wrong = [] if came == "StoreFull" else [f"run came out as {came}"]
            wrong += ["the write ran without a durable intent"] if ledger and not intended else []
            wrong += ["a task is left"] if others() != before else []
            if wrong:
                found[room] = wrong
    assert found == {}


async def test_closing_after_a_store_fault_gives_the_lease_back() -> None:
    store = FullStore(9, at_append=True)
    async with asyncio.timeout(5):
        assert await played(store, []) == "StoreFull"
        session = next(iter(store.shelves))
        log, records = await store.resume(session)
        assert len(records) == 9
        await log.close("open")
