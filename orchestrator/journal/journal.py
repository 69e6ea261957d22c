"""The journal of a live session: numbers each record, stores it, folds it, and shows it to subscribers.

A record is *accepted* when `append` returns and *durable* when `sync` does. What the outside may rely on waits for
`sync`: the intent of an effect before the effect starts, the end of a turn before its caller hears of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.journal.fold import apply
from orchestrator.journal.records import Entry, decode, encode

if TYPE_CHECKING:
    from orchestrator.clock import Clock
    from orchestrator.events import Events
    from orchestrator.journal.records import Record
    from orchestrator.journal.state import SessionState
    from orchestrator.journal.store import Log, Store

__all__ = ["Journal"]


class Journal:
    """One session's journal, held for writing. ``state`` is the fold of all that was appended, without loop states."""

    __slots__ = ("_clock", "_events", "_log", "_seq", "state", "store")

    def __init__(self, store: Store, log: Log, state: SessionState, clock: Clock, events: Events) -> None:
        self.store = store
        self.state = state
        self._log = log
        self._seq = state.seq
        self._clock = clock
        self._events = events

    @property
    def seq(self) -> int:
        """The number of the last entry."""
        return self._seq

    @property
    def fence(self) -> int:
        """The token of the lease under which this process writes."""
        return self._log.fence

    def append(self, actor: str, record: Record) -> None:
        """Accept *record* about *actor*. Never waits. Raises `StoreError` when an earlier append failed."""
        entry = Entry(self._seq + 1, self._clock.wall_ms(), actor, record)
        self._log.append(entry.seq, encode(entry))
        self._seq = entry.seq
        apply(self.state, entry, loops=False)
        self._events.publish(entry)

    async def sync(self) -> None:
        """Return when everything appended is durable. Raises `StoreError`. On cancel the records stay accepted."""
        if self._log.durable < self._seq:
            await self._log.sync(self._seq)

    async def read(self, after: int) -> tuple[Entry, ...]:
        """Return the durable entries after number *after*."""
        await self.sync()
        return tuple(decode(data) for data in await self.store.read(self._log.session, after))

    async def close(self, status: str) -> None:
        """Write what is accepted and give the lease back."""
        await self._log.close(status)
