"""The half of the writer that lives on its thread: does the jobs, commits the groups, minds the leases."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from orchestrator.journal.fault import LeaseLost, StoreDamaged, StoreError, StoreUnavailable
from orchestrator.journal.schema import fault_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from orchestrator.journal.lease import Lease
    from orchestrator.journal.ledger import Ledger
    from orchestrator.journal.progress import Progress

__all__ = ("Clerk", "Entry", "Job", "gone", "tell")

T = TypeVar("T")
Entry = tuple["Progress", int, bytes]


class Job(Generic[T]):
    """A question to the ledger, and where its answer goes. An answer that nobody waits for any more is dropped."""

    __slots__ = ("future", "loop", "work")

    def __init__(self, work: Callable[[Ledger], T]) -> None:
        self.work = work
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[T] = self.loop.create_future()

    def answer(self, value: T) -> None:
        """Settle with *value*. On the loop."""
        if not self.future.done():
            self.future.set_result(value)

    def refuse(self, error: StoreError) -> None:
        """Settle with *error*. On the loop."""
        if not self.future.done():
            self.future.set_exception(error)


class Clerk:
    """Keeps the ledger, which *open_ledger* opens for the first job, and the logs that are held. On one thread."""

    def __init__(self, place: str, open_ledger: Callable[[], Ledger]) -> None:
        self.place = place
        self.open_ledger = open_ledger
        self.ledger: Ledger | None = None
        self.held: dict[Lease, Progress] = {}

    def do(self, job: Job[Any]) -> None:
        """Run one job and send its answer home. A fault of the job is its answer; a bug also ends the thread."""
        settle: Callable[[], None] = partial(job.refuse, gone(self.place, "its writer failed"))
        try:
            if self.ledger is None:
                self.ledger = self.open_ledger()
            settle = partial(job.answer, job.work(self.ledger))
        except StoreError as error:
            settle = partial(job.refuse, error)
        except (sqlite3.Error, OSError) as error:
            settle = partial(job.refuse, fault_of(error, self.place))
        except msgspec.MsgspecError as error:
            settle = partial(job.refuse, StoreDamaged(self.place, 0, f"a session's labels cannot be read ({error})"))
        finally:
            tell(job.loop, settle)

    def commit(self, group: Iterable[Entry]) -> None:
        """Store *group* in one transaction and tell every log in it."""
        groups: dict[Progress, list[tuple[int, bytes]]] = {}
        for progress, seq, data in group:
            if not progress.broken:
                groups.setdefault(progress, []).append((seq, data))
        if not groups or self.ledger is None:
            return
        try:
            lost = self.ledger.write([(progress.lease, entries) for progress, entries in groups.items()])
        except (sqlite3.Error, OSError) as error:
            fault = fault_of(error, self.place)
            for progress in groups:
                break_off(progress, fault)
            return
        for progress, entries in groups.items():
            if progress.lease in lost:
                break_off(progress, LeaseLost(progress.lease.session, progress.lease.fence))
            else:
                tell(progress.loop, partial(progress.reach, entries[-1][0]))

    def has_leases(self) -> bool:
        """Whether there is a lease to renew, or one whose giving back is not recorded yet."""
        return self.ledger is not None and bool(self.held or self.ledger.given_back)

    def renew(self) -> None:
        """Move the expiry of every held lease on, and record the givings back that failed at the time."""
        if self.ledger is None:
            return
        with suppress(
            sqlite3.Error
        ):  # a disk that is full or busy now is met by the next commit, which tells who waits
            for lease in self.ledger.renew(self.held):
                break_off(self.held.pop(lease), LeaseLost(lease.session, lease.fence))

    def give_back(self, progress: Progress, status: str | None, ledger: Ledger) -> None:
        """End one log's lease; *status* is recorded only if all of its records were."""
        self.held.pop(progress.lease, None)
        if not progress.broken:
            ledger.give_back(progress.lease, status)
            return
        with suppress(sqlite3.Error, LeaseLost):  # the log has a failure of its own to report
            ledger.give_back(progress.lease, None)

    def leave(self) -> None:
        """Give back what is still held and close the file."""
        for progress in tuple(self.held.values()):
            break_off(progress, gone(self.place, "the store was closed"))
            if self.ledger is not None:
                self.give_back(progress, None, self.ledger)
        if self.ledger is not None:
            self.ledger.close()


def break_off(progress: Progress, fault: StoreError) -> None:
    """Write nothing more of this log, and tell it why."""
    progress.broken = True
    tell(progress.loop, partial(progress.fail, fault))


def gone(place: str, fault: str) -> StoreUnavailable:
    """What is answered when there is no thread any more."""
    return StoreUnavailable(place, fault, "open it again")


def tell(loop: asyncio.AbstractEventLoop, news: Callable[[], None]) -> None:
    """Run *news* on *loop*. A loop that was closed has nobody left who waits."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(news)
