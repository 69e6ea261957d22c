"""One streamed reply of 50 chunks: the client CPU of a raw socket, of our wire, of httpx2 under it, and of the SDK.

The raw client is the floor of the figure: plain asyncio streams over one open connection, which splits lines, decodes
each chunk's JSON with msgspec, and keeps no state. Everybody keeps its connection open and asks the same.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from actors.messages import Said
from actors.ports import ModelRequest, OfferedTool
from tests.bench.row import Row, compared
from tests.bench.samples import Stopwatch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    Ask = Callable[[], Awaitable[None]]

__all__ = ["TEXT", "floor_stream", "over_httpx2", "sdk", "served", "streamed", "wire"]

TEXT = "".join(f" word{number}" for number in range(47))
SCHEMA = '{"additionalProperties":false,"properties":{"path":{"type":"string"}},"required":["path"],"type":"object"}'
REQUEST = ModelRequest(
    "worker",
    "worker",
    "t0001",
    "Do what you are asked to do.",
    (Said("Go on."),),
    tuple(OfferedTool(f"tool_{number}", f"Does the thing number {number}.", SCHEMA) for number in range(12)),
)
TARGET, SDK_FACTOR = 3.5, 10.0


class Unequal(AssertionError):
    """A client came to another text."""


def check(text: str) -> None:
    """Raise `Unequal` unless *text* is the whole reply."""
    if text != TEXT:
        raise Unequal(text)


@contextmanager
def served() -> Iterator[int]:
    """Run the server in a process of its own; yield its port."""
    command = (sys.executable, "-m", "tests.bench.stream_server")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()


async def measured(ask: Ask, count: int) -> float:
    """Return the CPU microseconds of one of *count* replies, after two that warm up."""
    await ask()
    await ask()
    watch = Stopwatch()
    for _ in range(count):
        await ask()
    return watch.each(count)


def request_body() -> bytes:
    """Return the body that our wire sends, for those who bring none of their own."""
    from orchestrator.models.wire.request import Form, Names, body
    from orchestrator.models.wire.schema import fit_schema

    form = Form("bench")
    return body(REQUEST, Names(REQUEST, form.call_ids), form, fit_schema)


async def floor_stream(base: str, count: int) -> float:
    """Ask over a raw socket."""
    parts = urlsplit(f"{base}/v1/chat/completions")
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    data = request_body()
    head = f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
    sent = f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data

    async def ask() -> None:
        writer.write(sent)
        rest, text, over = b"", "", False
        while not over:
            *lines, rest = (rest + await reader.read(65536)).split(b"\n")
            for line in lines:
                if line.startswith(b"data: {"):
                    choices = msgspec.json.decode(line[6:])["choices"]
                    text += choices[0]["delta"].get("content", "") if choices else ""
                over = over or line == b"0\r"
        check(text)

    spent = await measured(ask, count)
    writer.close()
    await writer.wait_closed()
    return spent


async def wire(base: str, count: int) -> float:
    """Ask as the library does."""
    from orchestrator.models.opening import close_model, open_model

    model = open_model(f"openai:bench@{base}/v1", {})

    async def ask() -> None:
        check((await model.reply(REQUEST, lambda _: None)).text)

    spent = await measured(ask, count)
    await close_model(model)
    return spent


async def over_httpx2(base: str, count: int) -> float:
    """Ask with httpx2 and our own parser on top: what the choice of the HTTP client is worth."""
    import httpx2

    from orchestrator.models.wire.assembly import Assembly
    from orchestrator.models.wire.chunk import decode_chunk
    from orchestrator.models.wire.sse import EventParser

    async with httpx2.AsyncClient(trust_env=False) as client:

        async def ask() -> None:
            assembly, parser = Assembly(), EventParser()
            url, headers = f"{base}/v1/chat/completions", {"Content-Type": "application/json"}
            async with client.stream("POST", url, content=request_body(), headers=headers) as response:
                async for piece in response.aiter_raw():
                    for _, data in parser.feed(piece):
                        if not data.startswith(b"[DONE]"):
                            assembly.take(decode_chunk(data))
            check(assembly.reply().text)

        return await measured(ask, count)


async def sdk(base: str, count: int) -> float:
    """Ask with the official SDK, and take its chunks as it gives them."""
    import openai

    tools = msgspec.json.decode(request_body())["tools"]
    said = [{"role": "system", "content": REQUEST.instructions}, {"role": "user", "content": "Go on."}]
    async with openai.AsyncOpenAI(api_key="none", base_url=f"{base}/v1") as client:

        async def ask() -> None:
            text = ""
            stream = await client.chat.completions.create(
                model="bench", messages=said, tools=tools, stream=True, stream_options={"include_usage": True}
            )
            async for chunk in stream:
                text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
            check(text)

        return await measured(ask, count)


def streamed(name: str, *, quick: bool) -> list[Row]:
    """Measure all four against one server, in turn: chunks at once, as the targets are meant; a full run also paced."""
    with served() as port:
        base = f"http://127.0.0.1:{port}"
        fast = rows(name, "50-chunk reply", rounds_of(base, *((40, 3) if quick else (100, 7))), TARGET, 1 / SDK_FACTOR)
        return fast if quick else [*fast, *rows(name, "the same, paced", rounds_of(f"{base}/paced", 30, 5))]


def rounds_of(base: str, count: int, rounds: int) -> list[tuple[float, ...]]:
    """Take samples of the floor, the wire, httpx2 and the SDK in turn."""
    samples = (floor_stream, wire, over_httpx2, sdk)
    return [tuple(asyncio.run(sample(base, count)) for sample in samples) for _ in range(rounds)]


def rows(
    name: str, what: str, taken: list[tuple[float, ...]], target: float | None = None, of_sdk: float | None = None
) -> list[Row]:
    """Return the lines of what was measured."""
    pairs = [[(one[left], one[right]) for one in taken] for left, right in ((0, 1), (0, 2), (0, 3), (3, 1))]
    kinds = ("our wire", "our parser over httpx2", "the official SDK", "our wire against the SDK")
    targets = (target, None, None, of_sdk)
    return [
        compared(name, f"{what}: {kind}", "µs CPU", measured, due)
        for kind, measured, due in zip(kinds, pairs, targets, strict=True)
    ]
