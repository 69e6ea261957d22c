"""One connection to one server, owned by one task from open to close.

    starting ──listed──> up ──lost──> starting        one new try, earned anew by each answer to a call
        │                │
        └──failed──> down <── lost again, or closed   a later turn tries once more

Rules:

- Whoever calls never waits on the SDK alone: a lost connection answers every call in flight at once.
- A call that was sent and not answered may have happened: it is never sent again by itself. A call that the server
  refused to take because it had forgotten the session has not happened: that one is sent once more.
- The first listing pins the tools; every later one is compared with the pins and changes none of them.
- Nobody's permission for a tool is used for another: a call that waited for a new connection is not sent when its tool
  is not the same there.
- On cancel of a call the server is told; nobody waits for its answer.
"""

from __future__ import annotations

import asyncio
import enum
from functools import partial
from typing import TYPE_CHECKING, Any

from actors.errors import OutcomeUnknown, ToolFault
from actors.text import clip
from orchestrator.sources.calling import Flight, Questions
from orchestrator.sources.client import Client
from orchestrator.sources.diagnosis import Diagnosis
from orchestrator.sources.ending import Gone
from orchestrator.sources.pinned import Pinned
from orchestrator.sources.processes import end, marked, new_mark

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from actors.sources import MCPSource
    from actors.tools import ToolContext
    from orchestrator.journal.source import Pin
    from orchestrator.sources.calling import Answered
    from orchestrator.sources.listing import Listed
    from orchestrator.sources.watch import Watch

__all__ = ["Connection", "Standing"]

MAX_REASON = 400
LEAVE_S = 6.0
LIST_EVERY_S = 0.5
"""However often a server says that its tools have changed."""


class Standing(enum.StrEnum):
    """How a connection stands."""

    STARTING = "starting"
    UP = "up"
    DOWN = "down"


class Connection:
    """The connection to *source*: ``tools`` are its tools, ``flights`` its calls, ``reason`` tells why it is down.

    ``revision`` counts what could change a decision about its tools.
    """

    def __init__(self, source: MCPSource, watch: Watch, pins: tuple[Pin, ...] | None = None) -> None:
        self.source = source
        self.tools = Pinned(pins, self._tell)
        self.standing = Standing.STARTING
        self.reason = ""
        self.revision = 0
        self.diagnosis = Diagnosis(self._tell)
        self._watch = watch
        self.flights: set[Flight] = set()
        self._questions = Questions(source.name, watch, self.flights)
        self._client: Client | None = None
        self._owner: asyncio.Task[None] | None = None
        self._holding: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._wake = asyncio.Event()
        self._closing = False
        self._tries = 1

    async def start(self) -> None:
        """Connect and list; return when the tools are pinned, or the connection is down. Called once."""
        self._owner = asyncio.get_running_loop().create_task(self._own(), name=f"keeper of {self.source.name}")
        await self._settled.wait()

    def try_again(self) -> None:
        """Let a connection that is down be tried once more, in the background; calls wait for it. Never waits."""
        if self.standing is Standing.DOWN and not self._closing:
            self._tries = 1
            self._stand(Standing.STARTING)
            self._settled.clear()
            self._wake.set()

    async def close(self) -> None:
        """End the connection and everything it started; return when nothing is left of it. Closing twice is fine."""
        self._closing = True
        if self._client is not None:
            self._client.lost("the session is closed")
        elif self._holding is not None:
            self._holding.cancel()
        self._wake.set()
        if self._owner is not None:
            _, late = await asyncio.wait({self._owner}, timeout=LEAVE_S)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=LEAVE_S)

    async def call(
        self, context: ToolContext, pin: Pin, arguments: Mapping[str, Any], silent_s: float | None = None
    ) -> Answered:
        """Call the tool *pin* as it is now and return what it answered; it may be silent for *silent_s* seconds.

        Raises `ToolFault` when it was not sent or was refused, `OutcomeUnknown` when it was sent and not answered.
        """
        flight, permitted = Flight(context, self._watch.progress(context)), self.tools.now(pin)

        async def ask(client: Client) -> Answered:
            if self.tools.now(pin) != permitted:
                text = f"tool_changed: {pin.name} is not the same any more at the server {self.source.name}."
                raise ToolFault(text, remedy="It was not called; ask for it anew.")
            return await client.call_tool(flight, pin.name, arguments)

        self.flights.add(flight)
        try:
            answered: Answered = await self._asked(ask, silent_s, flight)
        finally:
            self.flights.discard(flight)
            flight.land()
        return answered

    async def read(self, ask: Callable[[Client], Coroutine[Any, Any, Any]], silent_s: float | None = None) -> Any:
        """Return what *ask* gets of the server: something that has no effect. Raises `ToolFault`."""
        try:
            return await self._asked(ask, silent_s)
        except OutcomeUnknown as unknown:
            raise ToolFault(unknown.message) from None

    async def _asked(
        self, ask: Callable[[Client], Coroutine[Any, Any, Any]], silent_s: float | None, flight: Flight | None = None
    ) -> Any:
        for _ in range(2):
            client = await self._up()
            try:
                answer = await client.asked(ask(client), silent_s or self.source.call_s, flight)
            except Gone as gone:
                client.lost(str(gone))
            else:
                self._tries = 1
                return answer
        raise ToolFault(f"source_unavailable: the server {self.source.name} forgot the session twice.")

    async def _up(self) -> Client:
        """Return the live client; a connection that is being made is waited for."""
        if self._client is None:
            await self._settled.wait()
        if self._client is None:
            text = f"source_unavailable: the server {self.source.name} does not answer ({self.reason})."
            raise ToolFault(text, remedy="Go on without it, or try again in a later turn.")
        return self._client

    def _forget(self) -> None:
        """Nothing goes to this client any more; whoever calls waits for the next one."""
        self._client = None
        self._settled.clear()

    async def _own(self) -> None:
        """See to it that the connection is held, again and again, until it is closed. What holding raises ends it."""
        try:
            while not self._closing:
                client = Client(self.source, new_mark() if self.source.command else "", self.diagnosis, self._questions)
                client.on_lost = partial(self._lost, client)
                client.on_running = partial(self._watch.running, client.mark)
                await self._held(client)
                self.reason = self._reason(client)
                if client.up and self._tries and not self._closing:
                    self._tries -= 1
                    self._stand(Standing.STARTING)
                    continue
                self._stand(Standing.DOWN)
                self._settled.set()
                await self._wake.wait()
                self._wake.clear()
        finally:
            self._stand(Standing.DOWN)
            self._settled.set()

    async def _held(self, client: Client) -> None:
        """Hold the connection in a task of its own, so that it can be ended from outside; return when it is over."""
        holding = asyncio.get_running_loop().create_task(self._hold(client), name=f"source {self.source.name}")
        self._holding = holding
        try:
            await asyncio.wait({holding})
        finally:
            if not holding.done():
                holding.cancel()
                await asyncio.wait({holding}, timeout=LEAVE_S)
        if not holding.cancelled() and holding.exception() is not None:
            client.lost(_why(holding.exception(), self.source))

    async def _hold(self, client: Client) -> None:
        """Connect, list, and stay until the connection is lost or closed: one task from open to close."""
        try:
            if client.mark:
                await self._watch.started(client.mark, self.source.name)
            async with asyncio.timeout(self.source.start_s) as limit, client.opened():
                listed = await client.list_tools()
                limit.reschedule(None)
                self._take(client, listed)
                await self._stay(client)
        finally:
            if client.mark:
                gone = await end(lambda: marked(client.mark))
                self._watch.ended(client.mark, gone=gone)

    async def _stay(self, client: Client) -> None:
        """Return once the connection is lost; list again whenever the server says that its tools have changed."""
        while not (self._closing or await client.wait()):
            async with asyncio.timeout(self.source.start_s):
                listed = await client.list_tools()
            self.tools.listed(*listed)
            self.revision += 1
            await client.lost_within(LIST_EVERY_S)

    def _take(self, client: Client, listed: Listed) -> None:
        """The connection is up, with these tools."""
        again = self.tools.pins is not None and self.reason != ""
        self._client = client
        client.up = True
        self.tools.listed(*listed)
        self.revision += 1
        self._stand(Standing.UP)
        self._settled.set()
        if again:
            self._tell("server_back", "it answers again")
        self.reason = ""

    def _lost(self, client: Client) -> None:
        """A client that was up is lost: nothing goes to it any more, and people are told at once."""
        if self._client is client:
            self._forget()
            if not self._closing:
                self._tell("server_lost", self._reason(client))

    def _reason(self, client: Client) -> str:
        words = self.diagnosis.last_words()
        said = f"; it said: {words}" if words else ""
        return clip(self.diagnosis.shown(f"{client.why or 'the connection ended'}{said}"), MAX_REASON)

    def _tell(self, kind: str, text: str) -> None:
        self._watch.tell(kind, self.source.name, self.diagnosis.shown(text))

    def _stand(self, standing: Standing) -> None:
        if self.standing is not standing:
            self.standing = standing
            self.revision += 1


def _why(error: BaseException | None, source: MCPSource) -> str:
    """Return in words why foreign code ended: the first real reason in a group of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return f"its tools were not listed within {source.start_s:g} s"
    text = str(error) or type(error).__name__
    return clip(text.replace("\n", " "), MAX_REASON)
