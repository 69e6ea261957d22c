"""OpenAI-compatible Chat Completions, streamed: a model of the port `actors.ports.Model`.

What the server says comes from others: everything in it is taken as data, every size has a bound, and nothing of it
runs before the whole reply is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from orchestrator.models.fault import FaultKind, ModelFault
from orchestrator.models.retry import RetryPolicy, Waiting, asked_wait, retried
from orchestrator.models.shown import Shown
from orchestrator.models.wire.answer import Server, refused
from orchestrator.models.wire.client import Endpoint, HttpClient, WireLimits
from orchestrator.models.wire.reading import Reading
from orchestrator.models.wire.request import Form, Names, body
from orchestrator.models.wire.schema import UnfitSchema, fit_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.messages import ModelReply, Note, ToolCall
    from actors.ports import ModelRequest

__all__ = ["ChatModel"]

OK = 200
KEPT_SCHEMAS = 4096
BROKEN_OFF = frozenset({FaultKind.CONNECTION, FaultKind.SILENT})


class ChatModel:
    """Asks one model of one server. Safe to use from many sessions of one event loop at once; `close` when done.

    *server* is how errors speak of it, *form* how it wants its requests. ``waiting`` is where the waits between
    attempts come from; tests give their own.
    """

    def __init__(
        self,
        server: Server,
        endpoint: Endpoint,
        form: Form,
        *,
        limits: WireLimits = WireLimits(),  # noqa: B008  # a frozen value
        retry: RetryPolicy = RetryPolicy(),  # noqa: B008  # a frozen value
        waiting: Waiting = Waiting(),  # noqa: B008  # a frozen value
    ) -> None:
        self._server = server
        self._endpoint = endpoint
        self._form = form
        self._limits = limits
        self._retry = retry
        self._waiting = waiting
        self._http = HttpClient(endpoint, server.model, limits)
        self._fitted: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"ChatModel({self._server.model!r} at {self._server.base_url})"

    async def reply(self, request: ModelRequest, delta: Callable[[str | Note], None]) -> ModelReply:
        """Return the whole reply; *delta* hears its text as it comes, and a note before each further attempt.

        Raises `ModelFault`. On cancel the connection is closed at once, and nothing is asked again.
        """
        names = Names(request, self._form.call_ids)
        try:
            data = body(request, names, self._form, self.tool_schema)
        except UnfitSchema as error:
            raise ModelFault(FaultKind.BAD_REQUEST, self._server.model, str(error)) from error
        shown = Shown(delta)
        reply = await retried(lambda attempt: self._ask(data, shown, attempt), delta, self._retry, self._waiting)
        return replace(reply, calls=tuple(_renamed(call, names) for call in reply.calls)) if reply.calls else reply

    def tool_schema(self, schema: str) -> str:
        """Return the JSON Schema text *schema* as this provider takes it. Raises `UnfitSchema` with its reason."""
        fitted = self._fitted.get(schema)
        if fitted is None:
            fitted = fit_schema(schema)
            if len(self._fitted) >= KEPT_SCHEMAS:
                self._fitted.clear()
            self._fitted[schema] = fitted
        return fitted

    async def close(self) -> None:
        """Close every connection; nothing is left open. Closing twice is fine."""
        await self._http.close()

    async def _ask(self, data: bytes, shown: Shown, attempt: int) -> ModelReply:
        """Ask once. Raises `ModelFault`; an answer that was whole when its connection broke is an answer."""
        if attempt > 1:
            shown.restart()
        reading = Reading(self._server, self._endpoint, self._limits, shown)
        try:
            async with self._http.post(data) as incoming:
                if incoming.status != OK:
                    after = asked_wait(incoming.headers, self._waiting.wall())
                    text, hide = await incoming.text(), self._endpoint.without_key
                    raise refused(self._server, incoming.status, text, after, hide)
                await reading.read(incoming)
        except ModelFault as fault:
            if not (reading.whole and fault.kind in BROKEN_OFF):
                raise
        return reading.reply(attempt)


def _renamed(call: ToolCall, names: Names) -> ToolCall:
    name = names.canonical(call.name)
    return call if name == call.name else replace(call, name=name)
