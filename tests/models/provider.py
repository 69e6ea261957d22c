"""A provider on this machine: an OpenAI-compatible server, strict, hostile by script, with a playbook for a brain.

It runs in a thread of its own, on raw sockets, so that it can do what no server library lets it do. Each request takes
the next *move* of the script; when the script is over, it is answered well. What was seen is kept.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from typing import TYPE_CHECKING, Any, Self

import msgspec
from msgspec.structs import replace

from actors.messages import ReplyStop
from orchestrator.models.function import FunctionModel
from tests.models.heard import asked
from tests.models.strict import refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from types import TracebackType

    from actors.messages import ModelReply
    from actors.ports import Model

    Move = Callable[["Exchange"], Awaitable[None]]

SSE = "text/event-stream; charset=utf-8"
FINISH = {ReplyStop.END: "stop", ReplyStop.TOOL_CALLS: "tool_calls", ReplyStop.LENGTH: "length"}
COUNTS = {"prompt_tokens": 40, "completion_tokens": 8, "prompt_tokens_details": {"cached_tokens": 16}}


class Exchange:
    """One request, the answer that the playbook gives to it, and the socket to do well or badly on."""

    def __init__(self, body: dict[str, Any], reply: ModelReply, writer: asyncio.StreamWriter) -> None:
        self.body = body
        self.reply = reply
        self.writer = writer

    async def head(self, status: int = 200, kind: str = SSE, **headers: object) -> None:
        """Send the head of a chunked response."""
        lines = [f"HTTP/1.1 {status} So", f"content-type: {kind}", "transfer-encoding: chunked"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.writer.write("\r\n".join((*lines, "", "")).encode())
        await self.writer.drain()

    async def send(self, data: bytes) -> None:
        """Send a piece of the body."""
        self.writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        await self.writer.drain()

    async def end(self) -> None:
        """End the body as it should end."""
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    async def whole(self, status: int, text: str | bytes, kind: str = "application/json", **headers: object) -> None:
        """Send a whole response."""
        await self.head(status, kind, **headers)
        if text:
            await self.send(text.encode() if isinstance(text, str) else text)
        await self.end()

    async def error(self, status: int, message: str, code: str = "", **headers: object) -> None:
        """Send an error as OpenAI forms it."""
        error = {"message": message, "type": "an_error", "param": None, "code": code or None}
        await self.whole(status, json.dumps({"error": error}), **headers)

    async def well(self) -> None:
        """Answer as a good server does."""
        await self.head()
        for event in events(self.reply):
            await self.send(event)
        await self.end()

    def reset(self) -> None:
        """Break the connection so that the other side is told: RST."""
        sock: socket.socket = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


def event(value: object) -> bytes:
    """One event of a stream."""
    return b"data: " + (value if isinstance(value, bytes) else msgspec.json.encode(value)) + b"\n\n"


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """One chunk of a stream."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "fake", "choices": [choice]}


def events(reply: ModelReply) -> list[bytes]:
    """The stream of *reply*, as OpenAI sends it, in small pieces."""
    made = [chunk({"role": "assistant", "content": "" if reply.text else None})]
    made += [chunk({"content": reply.text[at : at + 9]}) for at in range(0, len(reply.text), 9)]
    for index, call in enumerate(reply.calls):
        function = {"name": call.name, "arguments": ""}
        made.append(chunk({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]}))
        for at in range(0, len(call.arguments), 20):
            piece = {"index": index, "function": {"arguments": call.arguments[at : at + 20]}}
            made.append(chunk({"tool_calls": [piece]}))
    made.append(chunk({}, FINISH[reply.stop]))
    made.append({**chunk({}), "choices": [], "usage": COUNTS})
    return [*map(event, made), event(b"[DONE]")]


def watched(reader: asyncio.StreamReader) -> asyncio.Event:
    """An event that is set when the other side goes, however it goes."""
    left = asyncio.Event()
    for name in ("feed_eof", "set_exception"):
        known = getattr(reader, name)
        setattr(reader, name, lambda *told, known=known: (left.set(), known(*told)))
    return left


class FakeProvider:
    """The server. ``with`` it; ``base_url`` is where to ask. ``cast`` tells its playbook which agent asks.

    ``first`` is what it does with whatever it is asked for the first time; asked again, it answers well. ``models`` are
    those that it lists, as Ollama lists its own with ``tags``; ``listing`` is what it says instead.
    """

    def __init__(
        self,
        model: Model | None = None,
        script: Iterable[Move] = (),
        cast: dict[str, str] | None = None,
        first: Move | None = None,
        *,
        models: tuple[str, ...] = ("fake",),
        tags: bool = False,
        listing: bytes | None = None,
    ) -> None:
        self.model = model or FunctionModel({}, default=lambda _: "Hello, world: \u00e9\u4e16\U0001f30d.")
        self.script = list(script)
        self.first = first
        self.known: set[str] = set()
        self.models = models
        self.tags = tags
        self.listing = listing
        self.cast = cast or {}
        self.bodies: list[dict[str, Any]] = []
        self.refusals: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.gone = threading.Event()
        self.came = threading.Event()
        self.connections = 0
        self._calls = 0
        self._ready = threading.Event()
        self._stop: Callable[[], object] = lambda: None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()))

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop()
        self._thread.join(10)
        assert not self._thread.is_alive()

    async def _main(self) -> None:
        loop, over, open_ = asyncio.get_running_loop(), asyncio.Event(), set()
        self._stop = lambda: loop.call_soon_threadsafe(over.set)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            open_.add(task)
            self.connections += 1
            left = watched(reader)
            try:
                while True:
                    await self._serve(reader, writer, left)
            except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                self.gone.set()
            finally:
                open_.discard(task)
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        self.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        self._ready.set()
        await over.wait()
        server.close()
        for task in list(open_):
            task.cancel()
        await asyncio.gather(*open_, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: asyncio.Event) -> None:
        """Take one request and answer it; while it is answered, see whether the other side goes."""
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
        data = await reader.readexactly(int(headers.get("content-length", 0)))
        self.headers.append(headers)
        answering = asyncio.ensure_future(self._answer(lines[0], json.loads(data or b"{}"), writer))
        leaving = asyncio.ensure_future(left.wait())
        await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        if not answering.done():
            answering.cancel()
            await asyncio.wait({answering})
            raise ConnectionResetError
        answering.result()
        if writer.is_closing():
            raise ConnectionResetError

    async def _answer(self, line: str, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        if line.startswith("GET "):
            await self._list(line, Exchange(body, None, writer))  # type: ignore[arg-type]  # nothing is asked
            return
        self.bodies.append(body)
        self.came.set()
        exchange = Exchange(body, None, writer)  # type: ignore[arg-type]  # refused before it is answered
        if not line.startswith("POST /v1/chat/completions "):
            await exchange.error(404, f"there is nothing at {line}")
        elif wrong := refusal(body):
            self.refusals.append(wrong)
            await exchange.error(400, wrong, "invalid_request_error")
        else:
            move = self._move(repr(asked(body, self.cast)))
            exchange.reply = await self._think(body)
            await (exchange.well() if move is None else move(exchange))

    async def _list(self, line: str, exchange: Exchange) -> None:
        """Say which models there are, in OpenAI's form or in Ollama's own, or what was told to say."""
        if self.listing is not None:
            await exchange.whole(200, self.listing)
        elif line.startswith("GET /api/tags ") and self.tags:
            await exchange.whole(200, json.dumps({"models": [{"name": name, "size": 1} for name in self.models]}))
        elif line.startswith("GET /v1/models ") and not self.tags:
            listed = [{"id": name, "object": "model"} for name in self.models]
            await exchange.whole(200, json.dumps({"object": "list", "data": listed}))
        else:
            await exchange.error(404, "there is nothing here")

    def _move(self, question: str) -> Move | None:
        if self.script:
            return self.script.pop(0)
        new = question not in self.known
        self.known.add(question)
        return self.first if new else None

    async def _think(self, body: dict[str, Any]) -> ModelReply:
        reply = await self.model.reply(asked(body, self.cast), lambda _: None)
        calls = []
        for call in reply.calls:
            self._calls += 1
            calls.append(replace(call, id=f"call_{self._calls:04d}"))
        return replace(reply, calls=tuple(calls))
