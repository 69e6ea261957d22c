"""The SDK's client for the time of one connection: how it is reached, and how a request ends when it is lost."""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from actors.errors import OutcomeUnknown, ToolFault
from orchestrator.sources.calling import call_tool
from orchestrator.sources.ending import ended
from orchestrator.sources.http import http
from orchestrator.sources.listing import list_tools, read_data
from orchestrator.sources.sieve import sieved
from orchestrator.sources.stdio import INHERITED, stdio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping

    from actors.sources import MCPSource
    from orchestrator.sources.calling import Answered, Flight, Questions
    from orchestrator.sources.diagnosis import Diagnosis
    from orchestrator.sources.listing import Listed

    Pairs = tuple[tuple[str, str], ...]

__all__ = ["WORKSPACE", "Client"]

WORKSPACE = "${WORKSPACE}"
"""Where, in a server's command, environment and folder, the session's workspace is filled in."""
PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
VERSION = "0.1"
MAX_SPANS = 60
"""How many times as long as it may be silent a call may go on in all."""


class Client:
    """One connection's client, to be used inside ``opened``.

    ``up`` tells that its tools were listed, ``why`` how it was lost; ``on_lost`` hears of that at once, ``on_running``
    of the number of its process.
    """

    def __init__(
        self,
        source: MCPSource,
        mark: str,
        diagnosis: Diagnosis,
        questions: Questions,
    ) -> None:
        self.why = ""
        self.up = False
        self.mark = mark
        self.on_lost: Callable[[], None] = lambda: None
        self.on_running: Callable[[int], None] = lambda _: None
        self._source = source
        self._diagnosis = diagnosis
        self._questions = questions
        self._sdk: Any = None
        self._lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stirred = asyncio.Event()
        self._asking: set[asyncio.Task[Any]] = set()
        self._http = ""

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Connect, for the time of the block; both protocol eras are tried. Raises what the SDK raises, and more."""
        import mcp

        source = self._source
        if any(WORKSPACE in word for word in (*source.command, source.cwd)):
            raise ToolFault("it works on the session's workspace, and the session has none")
        env, headers = filled(source.env), filled(source.headers)
        for name, value in headers.items():
            if not value.isprintable():
                raise ToolFault(f"the value of its header {name} holds control characters")
        self._diagnosis.hide(secrets(source))
        if source.command:
            transport: Any = stdio(source.command, env, source.cwd, self.mark, self._diagnosis, self.on_running)
        else:
            transport = http(source.url, headers, source.call_s, self._noted)
        client = mcp.Client(
            sieved(transport, lambda: self.lost("the connection ended")),
            client_info=mcp.Implementation(name="orchestrator", version=VERSION),
            message_handler=self._message,
            elicitation_callback=self._questions.asked_by_itself,
            cache=None,
        )
        async with client:
            self._sdk = client
            listening = asyncio.get_running_loop().create_task(self._listen(), name=f"changes of {source.name}")
            try:
                yield
            finally:
                listening.cancel()
                await asyncio.wait({listening})

    async def _listen(self) -> None:
        """Hear of changed tools from a server of the modern protocol, which tells only those who ask."""
        from mcp import MCPError
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        if self._sdk.protocol_version in MODERN_PROTOCOL_VERSIONS:
            with suppress(MCPError, RuntimeError):
                async with self._sdk.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        self._stirred.set()

    def _noted(self, text: str) -> None:
        self._http = text
        if text and not text.startswith("HTTP "):
            self.lost(text)

    @property
    def over(self) -> bool:
        """Whether the connection is lost."""
        return self._lost.done()

    def lost(self, why: str) -> None:
        """The connection is over: every request in flight is answered so. The first reason counts."""
        if not self._lost.done():
            self.why = f"{why} ({self._http})" if self._http and self._http != why else why
            self._lost.set_result(None)
            self._stirred.set()
            self.on_lost()

    async def wait(self) -> bool:
        """Return True once the connection is lost, False when the server says that its tools have changed."""
        await self._stirred.wait()
        self._stirred.clear()
        return self.over

    async def lost_within(self, seconds: float) -> None:
        """Return when the connection is lost, after *seconds* at the latest."""
        await asyncio.wait({self._lost}, timeout=seconds)

    async def _message(self, message: Any) -> None:
        from mcp_types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self._stirred.set()

    async def asked(self, request: Coroutine[Any, Any, Any], silent_s: float, flight: Flight | None = None) -> Any:
        """Return the answer to *request*, unless the connection is lost first, or silent for *silent_s* seconds.

        Of the call *flight* progress is no silence, nor the time in which a person is asked; in all it may go on for
        `MAX_SPANS` times as long. Raises `OutcomeUnknown` for each of these, `ToolFault` for an error that the server
        answered, `Gone`. On cancel the server is told, and its answer not waited for.
        """
        asking = asyncio.get_running_loop().create_task(request, name=f"request to {self._source.name}")
        self._asking.add(asking)
        asking.add_done_callback(self._unheard)
        name, spans = self._source.name, 0
        try:
            while not asking.done():
                beats = 0 if flight is None else flight.beats
                await asyncio.wait({asking, self._lost}, timeout=silent_s, return_when=asyncio.FIRST_COMPLETED)
                if asking.done() or (flight is not None and flight.asking and not self.over):
                    continue
                if self.over:
                    raise OutcomeUnknown(f"server_lost: the server {name} was lost before it answered ({self.why}).")
                if flight is None or flight.beats == beats:
                    raise OutcomeUnknown(f"timed_out: the server {name} was silent for {silent_s:g} s.")
                spans += 1
                if spans >= MAX_SPANS:
                    raise OutcomeUnknown(f"timed_out: the server {name} had no end within {spans * silent_s:g} s.")
            return ended(asking, self._source, self.why)
        finally:
            asking.cancel()

    def _unheard(self, asking: asyncio.Task[Any]) -> None:
        """Take note of how a request ended that perhaps nobody waits for any more."""
        self._asking.discard(asking)
        if not asking.cancelled():
            asking.exception()

    async def list_tools(self) -> Listed:
        """Return every tool that the server lists. Raises what `asked` raises."""
        listed: Listed = await self.asked(list_tools(self._sdk), self._source.start_s)
        return listed

    async def call_tool(self, flight: Flight, tool: str, arguments: Mapping[str, Any]) -> Answered:
        """Call *tool*; what the server asks on the way is asked of the person. Raises what the SDK raises."""
        return await call_tool(self._sdk, self._questions, flight, tool, arguments)

    async def read_data(self, uri: str, prompt: str, arguments: Mapping[str, str]) -> str:
        """Return a resource, a prompt, or the list of both, as text. Raises what the SDK raises."""
        return await read_data(self._sdk, uri, prompt, arguments)


def filled(pairs: Pairs) -> dict[str, str]:
    """Return *pairs*, each ``${NAME}`` filled in from the environment. Raises `ToolFault` for one that is not set."""

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in os.environ:
            raise ToolFault(f"it needs the environment variable {name}, which is not set; set it")
        return os.environ[name]

    return {name: PLACEHOLDER.sub(value, text) for name, text in pairs}


def secrets(source: MCPSource) -> Iterator[str]:
    """Yield every value that is filled in from the environment and is not what any process is told."""
    for _, text in (*source.env, *source.headers):
        for name in PLACEHOLDER.findall(text):
            if name not in INHERITED:
                yield os.environ.get(name, "")
