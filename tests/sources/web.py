"""A server over HTTP, of the older protocol, that does what its script says: raw sockets, so that it can misbehave."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TOOLS = [
    {"name": name, "description": name, "inputSchema": {"type": "object"}} for name in ("die", "ok", "cut", "hang")
]


class Web:
    """The server. ``calls`` are the tools called, ``sessions`` those it knows; *acts* says what a tool does.

    What is asked by the HTTP method ``silent`` is never answered.
    """

    def __init__(self, tools: list[dict[str, Any]] | None = None, **acts: str) -> None:
        self.tools = TOOLS if tools is None else tools
        self.acts = {"die": "reset", "cut": "cut", "hang": "hang", **acts}
        self.calls: list[str] = []
        self.sessions: set[str] = set()
        self.headers: list[dict[str, str]] = []
        self.status = 0
        self.delay_s = 0.0
        self.silent = ""
        self.url = ""
        self.left = asyncio.Event()
        self._over = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def open(self, port: int = 0) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/mcp"

    async def close(self) -> None:
        """Stop listening and drop every connection without a word."""
        assert self._server is not None
        self._server.close()
        self._over.set()
        for writer in tuple(self._writers):
            reset(writer)
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method = head[0].split()[0]
        headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.headers.append(headers)
        if method == self.silent:
            self.left.set()
            await self._over.wait()
            return False
        if self.status:
            return await answer(writer, self.status, b"")
        if method != "POST":
            return await answer(writer, 405, b"")
        return await self._post(writer, headers, json.loads(body))

    async def _post(self, writer: asyncio.StreamWriter, headers: dict[str, str], message: dict[str, Any]) -> bool:
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        request, asked = message.get("id"), message.get("method")
        if asked == "initialize":
            session = f"s{len(self.headers)}"
            self.sessions.add(session)
            told = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}}
            return await result(writer, request, {**told, "serverInfo": {"name": "web", "version": "1"}}, session)
        if asked == "server/discover":
            return await error(writer, request, -32601)
        if headers.get("mcp-session-id") not in self.sessions:
            return await answer(writer, 404, b"")
        if request is None:
            return await answer(writer, 202, b"")
        if asked == "tools/list":
            return await result(writer, request, {"tools": self.tools})
        if asked == "tools/call":
            return await self._call(writer, request, message["params"])
        return await error(writer, request, -32601)

    async def _call(self, writer: asyncio.StreamWriter, request: Any, params: dict[str, Any]) -> bool:
        name = params["name"]
        self.calls.append(name)
        act = self.acts.get(name)
        if act == "reset":
            reset(writer)
            return False
        if act == "cut":
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            writer.write(chunk(b": here it comes\n\n") + b"0\r\n\r\n")
            await writer.drain()
            return True
        if act == "hang":
            self.left.set()
            await self._over.wait()
            return False
        if act == "500":
            return await answer(writer, 500, b"broken")
        return await result(writer, request, {"content": [{"type": "text", "text": f"{name} ran"}]})


def reset(writer: asyncio.StreamWriter) -> None:
    """Drop the connection with a reset, as a process does that is killed."""
    sock = writer.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def chunk(data: bytes) -> bytes:
    """*data* as one chunk of a chunked body."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


async def answer(
    writer: asyncio.StreamWriter, status: int, body: bytes, *, kind: str = "text/plain", more: str = ""
) -> bool:
    """Answer with *status* and *body*; True: the connection stays."""
    head = f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n{more}\r\n"
    writer.write(head.encode() + body)
    await writer.drain()
    return True


async def result(writer: asyncio.StreamWriter, request: Any, value: dict[str, Any], session: str = "") -> bool:
    """Answer a request with its result."""
    body = json.dumps({"jsonrpc": "2.0", "id": request, "result": value}).encode()
    more = f"mcp-session-id: {session}\r\n" if session else ""
    return await answer(writer, 200, body, kind="application/json", more=more)


async def error(writer: asyncio.StreamWriter, request: Any, code: int) -> bool:
    """Answer a request with an error."""
    body = json.dumps({"jsonrpc": "2.0", "id": request, "error": {"code": code, "message": "no"}}).encode()
    return await answer(writer, 200, body, kind="application/json")


@asynccontextmanager
async def served(web: Web) -> AsyncIterator[Web]:
    """Have *web* listen for the time of the block."""
    await web.open()
    try:
        yield web
    finally:
        await web.close()
