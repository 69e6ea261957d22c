"""One response read to one reply: a stream, a whole reply from a server that cannot stream, or something else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.models.fault import FaultKind, ModelFault
from orchestrator.models.wire.answer import streamed_error
from orchestrator.models.wire.assembly import Assembly
from orchestrator.models.wire.chunk import decode_chunk
from orchestrator.models.wire.sse import EventParser, EventTooLarge

if TYPE_CHECKING:
    from actors.messages import ModelReply
    from orchestrator.models.shown import Shown
    from orchestrator.models.wire.answer import Server
    from orchestrator.models.wire.chunk import Chunk
    from orchestrator.models.wire.client import Endpoint, Incoming, WireLimits

__all__ = ["Reading"]

DONE = b"[DONE]"
BLANK = b"\xef\xbb\xbf \t\r\n"
FIELDS = frozenset({b"d", b"e", b":", b"i", b"r"})
"""With what a stream of events can begin: data, event, a comment, id, retry; a JSON value begins with none of them."""


class Reading:
    """Reads one response of *server*; *shown* hears its text as it comes. Every fault is a `ModelFault`."""

    __slots__ = ("_assembly", "_endpoint", "_largest", "_left", "_most", "_server", "_shown")

    def __init__(self, server: Server, endpoint: Endpoint, limits: WireLimits, shown: Shown) -> None:
        self._server = server
        self._endpoint = endpoint
        self._most = self._left = limits.max_reply_bytes
        self._largest = limits.max_event_bytes
        self._shown = shown
        self._assembly = Assembly()

    @property
    def whole(self) -> bool:
        """Whether the reply is complete, whatever else may come."""
        return self._assembly.whole

    async def read(self, incoming: Incoming) -> None:
        """Read the body up to its end mark, or its end: a stream or one JSON value, as it begins, whatever its name."""
        kind = incoming.headers.get("content-type", "").lower()
        if kind.startswith("text/html"):
            raise self._broken(FaultKind.FOREIGN, "a web page came in place of a reply")
        while (piece := await self._next(incoming)) and not piece.strip(BLANK):
            pass  # nothing has been said yet
        first = piece.strip(BLANK)[:1]
        if first in (b"{", b"[") or (kind.startswith("application/json") and first not in FIELDS):
            await self._read_whole(incoming, piece)
        else:
            await self._read_stream(incoming, piece)

    def reply(self, requests: int) -> ModelReply:
        """Return the reply, which took so many *requests*. Raises `ModelFault` when there is none, or not all of it."""
        assembly = self._assembly
        if assembly.failed:
            raise streamed_error(self._server, "")
        if not assembly.whole:
            raise self._broken(FaultKind.CUT, "the stream ended before the reply did")
        if rest := assembly.flush():
            self._shown.show(rest)
        self._shown.finish()
        return assembly.reply(requests)

    async def _next(self, incoming: Incoming) -> bytes:
        """Return the next piece of the body, nothing at its end."""
        piece = await incoming.read()
        self._left -= len(piece)
        if self._left < 0:
            raise self._broken(FaultKind.FOREIGN, f"the reply has more than {self._most} bytes")
        return piece

    async def _read_stream(self, incoming: Incoming, piece: bytes) -> None:
        parser = EventParser(self._largest)
        take, assembly = self._take, self._assembly
        while piece:
            try:
                events = parser.feed(piece)
            except EventTooLarge as error:
                raise self._broken(FaultKind.FOREIGN, str(error)) from None
            except UnicodeDecodeError as error:
                raise self._broken(FaultKind.DAMAGED, f"the stream is no UTF-8: {error.reason}") from None
            whole = assembly.whole
            for name, data in events:
                if data.startswith(DONE):
                    self._end()
                    await incoming.drain()
                    return
                take(data, wrong=name == b"error")
            if assembly.whole and not whole:
                incoming.hurry()
            piece = await self._next(incoming)

    async def _read_whole(self, incoming: Incoming, piece: bytes) -> None:
        held = bytearray(piece)
        while piece := await self._next(incoming):
            held += piece
        self._take(bytes(held), wrong=False)
        self._end()

    def _end(self) -> None:
        """Take the end mark: a stream that had no reply in it is no answer."""
        if not self._assembly.begun:
            raise self._broken(FaultKind.EMPTY, "the answer holds no reply")
        self._assembly.whole = True

    def _take(self, data: bytes, *, wrong: bool) -> None:
        """Take the data of one event; *wrong* when its name says that it is an error."""
        try:
            chunk: Chunk | None = None if wrong else decode_chunk(data)
        except ValueError as error:
            raise self._broken(FaultKind.DAMAGED, f"a chunk of the stream cannot be read: {error}") from None
        if chunk is None or chunk.error:
            raise streamed_error(self._server, data.decode(errors="replace"), self._endpoint.without_key)
        if chunk.choices is None and not (self._assembly.whole and chunk.usage):
            raise self._broken(FaultKind.DAMAGED, "a chunk of the stream has no choices")
        if added := self._assembly.take(chunk):
            self._shown.show(added)

    def _broken(self, kind: FaultKind, text: str) -> ModelFault:
        return ModelFault(kind, self._server.model, text, remedy=self._server.remedy(kind))
