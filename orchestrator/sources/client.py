"""The SDK's client for the time of one connection: how it is reached, and how a request ends when it is lost."""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from actors.errors import OutcomeUnknown, ToolFault
from actors.text import clip
from orchestrator.sources.calling import call_tool
from orchestrator.sources.listing import list_tools, read_data
from orchestrator.sources.sieve import sieved

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping

    from actors.sources import MCPSource
    from actors.tools import ToolContext
    from orchestrator.sources.calling import Answered, Questions
    from orchestrator.sources.diagnosis import Diagnosis
    from orchestrator.sources.listing import Listed

    Progress = Callable[[float, float | None, str | None], None]

__all__ = ["Client", "Gone"]

PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
VERSION = "0.1"
MAX_SAID = 800


class Gone(Exception):
    """The server does not know the session any more, so it did not take the request."""


class Client:
    """One connection's client, to be used inside ``opened``.

    ``up`` tells that its tools were listed, ``why`` how it was lost; ``on_lost`` hears of that at once.
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
        self._source = source
        self._diagnosis = diagnosis
        self._questions = questions
        self._sdk: Any = None
        self._lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stirred = asyncio.Event()
        self._asking: set[asyncio.Task[Any]] = set()
        self._heard = 0
        self._http = ""

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Connect, for the time of the block; both protocol eras are tried. Raises what the SDK raises, and more."""
        import mcp

        source = self._source
        env, headers = filled(source.env), filled(source.headers)
        if source.command:
            from orchestrator.sources.stdio import stdio

            transport: Any = stdio(source.command, env, source.cwd, self.mark, self._diagnosis)
        else:
            from orchestrator.sources.http import http

            transport = http(source.url, headers, self._noted)
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
        if not text.startswith("HTTP "):
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

    async def _message(self, message: Any) -> None:
        from mcp_types import ToolListChangedNotification

        self._heard += 1
        if isinstance(message, ToolListChangedNotification):
            self._stirred.set()

    async def asked(self, request: Coroutine[Any, Any, Any], silent_s: float) -> Any:
        """Return the answer to *request*, unless the connection is lost first, or silent for *silent_s* seconds.

        The time in which a person is asked is no silence. Raises `OutcomeUnknown` for both, `ToolFault` for an error
        that the server answered, `Gone`. On cancel the server is told, and its answer not waited for.
        """
        asking = asyncio.get_running_loop().create_task(request, name=f"request to {self._source.name}")
        self._asking.add(asking)
        asking.add_done_callback(self._unheard)
        name = self._source.name
        try:
            while not asking.done():
                heard = self._heard
                await asyncio.wait({asking, self._lost}, timeout=silent_s, return_when=asyncio.FIRST_COMPLETED)
                if self._lost.done() and not asking.done():
                    raise OutcomeUnknown(f"server_lost: the server {name} was lost before it answered ({self.why}).")
                if self._heard == heard and not self._questions.open and not asking.done():
                    raise OutcomeUnknown(f"timed_out: the server {name} was silent for {silent_s:g} s.")
            return self._outcome(asking)
        finally:
            asking.cancel()

    def _unheard(self, asking: asyncio.Task[Any]) -> None:
        """Take note of how a request ended that perhaps nobody waits for any more."""
        self._asking.discard(asking)
        if not asking.cancelled():
            asking.exception()

    def _outcome(self, asking: asyncio.Task[Any]) -> Any:
        import anyio
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST, REQUEST_TIMEOUT
        from pydantic import ValidationError

        name, why = self._source.name, ""
        try:
            return asking.result()
        except MCPError as error:
            if error.code == INVALID_REQUEST and error.message == "Session terminated":
                raise Gone from None
            if error.code not in (CONNECTION_CLOSED, REQUEST_TIMEOUT):
                http = f", {self._http}" if self._http else ""
                text = f"The server {name} refused: {clip(error.message, MAX_SAID)} ({error.code}{http})."
                raise ToolFault(text) from None
            why = error.message
        except ValidationError as error:
            text = f"The server {name} answered what the protocol does not allow: {clip(str(error), MAX_SAID)}"
            raise OutcomeUnknown(text) from None
        except asyncio.CancelledError:
            why = "the request was given up"
        except (RuntimeError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            why = f"{type(error).__name__}: {error}"
        text = f"server_lost: the server {name} was lost before it answered ({clip(self.why or why, MAX_SAID)})."
        raise OutcomeUnknown(text)

    async def list_tools(self) -> Listed:
        """Return every tool that the server lists. Raises `ToolFault` and what the SDK raises."""
        return await list_tools(self._sdk)

    async def call_tool(
        self, context: ToolContext, tool: str, arguments: Mapping[str, Any], progress: Progress
    ) -> Answered:
        """Call *tool*; what the server asks on the way is asked of the person. Raises what the SDK raises."""

        async def heard(done: float, total: float | None, message: str | None) -> None:
            self._heard += 1
            progress(done, total, message)

        return await call_tool(self._sdk, self._questions, context, tool, arguments, heard)

    async def read_data(self, uri: str, prompt: str, arguments: Mapping[str, str]) -> str:
        """Return a resource, a prompt, or the list of both, as text. Raises what the SDK raises."""
        return await read_data(self._sdk, uri, prompt, arguments)


def filled(pairs: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return *pairs*, each ``${NAME}`` filled in from the environment. Raises `ToolFault` for one that is not set."""

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in os.environ:
            raise ToolFault(f"it needs the environment variable {name}, which is not set", remedy=f"Set {name}.")
        return os.environ[name]

    return {name: PLACEHOLDER.sub(value, text) for name, text in pairs}
