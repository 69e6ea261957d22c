"""The connections of one session: opened side by side, kept, closed together; what they do is on the session's record.

Rules:

- One connection for each way to reach a server, whichever definitions name it. Definitions share connections, never
  registries: what one may call of a server says nothing about another.
- The tools of a server are pinned when it is first listed, on record, so a session that is taken up again has those.
- Definitions that differ in time limits alone share a connection: it has the longest start, each call its own silence.
- The start waits for the slowest source, at most its ``start_s``, and for nothing else.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from actors.schema import canonical, digest
from actors.text import clip
from orchestrator.events import Progressed
from orchestrator.journal.fault import StoreError
from orchestrator.journal.records import Noted
from orchestrator.journal.source import SourceEnded, SourceRunning, SourceStarted, ToolsPinned
from orchestrator.sources.client import WORKSPACE
from orchestrator.sources.connection import Connection, Standing
from orchestrator.sources.processes import birth, end, led, marked

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

    from actors.definition import AgentDefinition
    from actors.sources import MCPSource
    from actors.tools import ToolContext
    from orchestrator.events import Events
    from orchestrator.journal.journal import Journal

    Ask = Callable[[ToolContext, str, str, Mapping[str, Any] | None], Awaitable[Any]]

__all__ = ["Sources", "sources_of"]

MAX_TEXT = 4000
MAX_TOLD = 50
"""Notes of one kind about one source before they become rare."""
AT_ONCE = 64
PROGRESS_EVERY_S = 0.1


def sources_of(definitions: Iterable[AgentDefinition]) -> tuple[MCPSource, ...]:
    """Return every source of *definitions* and of all that they may start, each once."""
    found: dict[MCPSource, None] = {}
    waiting = list(definitions)
    for definition in waiting:
        found.update(dict.fromkeys(definition.tools.mcp))
        waiting.extend(definition.children)
    return tuple(found)


def key_of(source: MCPSource) -> str:
    """Return what tells one way to reach a server from another."""
    way = [source.name, source.command, source.url, source.env, source.headers, source.cwd]
    return digest(canonical(way))[:16]


def left_of(mark: str, running: SourceRunning | None) -> tuple[int, ...]:
    """Return what still runs of the server that was started with *mark*."""
    group = () if running is None else led(running.leader, running.born)
    return tuple({*marked(mark), *group})


def placed(source: MCPSource, workspace: str) -> MCPSource:
    """Return *source* with the folder that the session works on filled in; without one the place stays as it is."""
    if not workspace:
        return source
    command = tuple(word.replace(WORKSPACE, workspace) for word in source.command)
    env = tuple((name, value.replace(WORKSPACE, workspace)) for name, value in source.env)
    return attrs.evolve(source, command=command, env=env, cwd=source.cwd.replace(WORKSPACE, workspace))


class Sources:
    """The connections of the session that *journal* records. ``asks`` asks the person; without it nobody is asked."""

    def __init__(self, journal: Journal, events: Events, workspace: str = "") -> None:
        self._journal = journal
        self._workspace = workspace
        self._events = events
        self._connections: dict[str, Connection] = {}
        self._told: dict[tuple[str, str], int] = {}
        self.asks: Ask | None = None

    def __iter__(self) -> Iterator[Connection]:
        """Every connection."""
        return iter(self._connections.values())

    def connection(self, source: MCPSource) -> Connection:
        """Return the connection by which *source* is reached."""
        return self._connections[key_of(source)]

    async def open(self, wanted: Iterable[MCPSource]) -> None:
        """End what an earlier process left running, then connect to every source side by side, and pin its tools.

        A source that cannot be reached is down, with its reason; whoever resolves definitions decides what that means.
        """
        left = self._journal.state.processes.items()
        cleared = await asyncio.gather(*(end(partial(left_of, mark, running)) for mark, running in left))
        for mark, gone in zip(tuple(self._journal.state.processes), cleared, strict=True):
            self.ended(mark, gone=gone)
        ways: dict[str, MCPSource] = {}
        for source in wanted:
            longest = ways.setdefault(key_of(source), source)
            if longest.start_s < source.start_s:
                ways[key_of(source)] = source
        for key, source in ways.items():
            self._connections[key] = Connection(
                placed(source, self._workspace), self, self._journal.state.pins.get(key)
            )
        slots = asyncio.Semaphore(AT_ONCE)

        async def start(connection: Connection) -> None:
            async with slots:
                await connection.start()

        await asyncio.gather(*map(start, self))
        for key, connection in self._connections.items():
            if connection.tools.pins is not None and key not in self._journal.state.pins:
                self._journal.append("", ToolsPinned(key, connection.source.name, connection.tools.pins))
            for fault in connection.tools.bad:
                self.tell("tool_left_out", connection.source.name, fault)
            if connection.standing is Standing.DOWN:
                self.tell("source_unavailable", connection.source.name, connection.reason)

    def try_again(self) -> None:
        """Let every connection that is down be tried once more, in the background. Never waits."""
        for connection in self:
            if connection.standing is Standing.DOWN:
                connection.try_again()

    async def close(self) -> None:
        """Close every connection, side by side; return when nothing of any is left. Closing twice is fine."""
        await asyncio.gather(*(connection.close() for connection in self))

    async def started(self, mark: str, source: str) -> None:
        """Put on record, for good, that a process with *mark* is about to be started."""
        self._journal.append("", SourceStarted(source, mark))
        await self._journal.sync()

    def running(self, mark: str, leader: int) -> None:
        """Put on record which process it is. Raises `StoreError`."""
        self._journal.append("", SourceRunning(mark, leader, birth(leader)))

    def ended(self, mark: str, *, gone: bool) -> None:
        """Put on record that nothing with *mark* runs any more, or that something of it could not be ended."""
        with suppress(StoreError):
            self._journal.append("", SourceEnded(mark, gone))

    def tell(self, kind: str, source: str, text: str) -> None:
        """Show people watching what a source does; what it does without end is shown each tenfold only."""
        number = self._told[source, kind] = self._told.get((source, kind), 0) + 1
        if number > MAX_TOLD and str(number).strip("0") != "1":
            return
        often = f" (told for the {number}th time; each tenfold from here on)" if number >= MAX_TOLD else ""
        with suppress(StoreError):
            self._journal.append("", Noted("", kind, clip(f"{source}: {text}", MAX_TEXT) + often))

    def progress(self, context: ToolContext) -> Callable[[float, float | None, str | None], None]:
        """Return what shows the progress of the call *context* to subscribers, at most ten times a second."""
        last = float("-inf")

        def show(done: float, total: float | None, text: str | None) -> None:
            nonlocal last
            now = asyncio.get_running_loop().time()
            if self._events.watched and (now - last >= PROGRESS_EVERY_S or done == total):
                last = now
                shown = clip(text or "", MAX_TEXT)
                self._events.publish(Progressed(context.actor, context.call_id, done, total, shown))

        return show

    async def ask(self, context: ToolContext, source: str, message: str, schema: Mapping[str, Any] | None) -> Any:
        """Ask the person what a server asks: its content, ``False`` for a no, ``None`` for no answer."""
        return None if self.asks is None else await self.asks(context, source, message, schema)
