"""What a bad provider does: each move is one way to answer a request badly."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from tests.models.provider import COUNTS, SSE, Exchange, chunk, event, events

if TYPE_CHECKING:
    from tests.models.provider import Move


async def well(it: Exchange) -> None:
    """Answer well."""
    await it.well()


def says(status: int, message: str = "not now", code: str = "", **headers: object) -> Move:
    """Answer with an error."""

    async def move(it: Exchange) -> None:
        await it.error(status, message, code, **headers)

    return move


def half(data: list[bytes]) -> list[bytes]:
    """The first part of a stream: some of the reply, not its end."""
    return data[: max(2, len(data) // 2 - 1)]


async def reset(it: Exchange) -> None:
    """Break the connection in the middle of the reply."""
    await it.head()
    for data in half(events(it.reply)):
        await it.send(data)
    it.reset()


async def reset_at_once(it: Exchange) -> None:
    """Break the connection before anything is said."""
    it.reset()


async def cut(it: Exchange) -> None:
    """End the stream properly, in the middle of the reply."""
    await it.head()
    for data in half(events(it.reply)):
        await it.send(data)
    await it.end()


async def closed(it: Exchange) -> None:
    """Close the connection in the middle of the body."""
    await it.head()
    for data in half(events(it.reply)):
        await it.send(data)
    it.writer.close()


def fails_in_stream(error: Any, name: str = "") -> Move:
    """Begin to answer, then say that it went wrong."""

    async def move(it: Exchange) -> None:
        await it.head()
        for data in half(events(it.reply)):
            await it.send(data)
        await it.send((f"event: {name}\n".encode() if name else b"") + event({"error": error}))
        await it.end()

    return move


async def damaged(it: Exchange) -> None:
    """Send a chunk that is no JSON."""
    await it.head()
    await it.send(event(chunk({"role": "assistant"})) + event(b'{"choices": [{"del'))
    await it.end()


async def nothing(it: Exchange) -> None:
    """End the stream without a reply in it."""
    await it.head()
    await it.send(event({**chunk({}), "choices": []}) + event(b"[DONE]"))
    await it.end()


async def silent(it: Exchange) -> None:
    """Begin to answer, then say nothing any more."""
    await it.head()
    await it.send(events(it.reply)[0])
    await asyncio.Event().wait()


async def mute(it: Exchange) -> None:
    """Say nothing at all."""
    assert it.body
    await asyncio.Event().wait()


async def broken_arguments(it: Exchange) -> None:
    """Send calls whose arguments stop in the middle."""
    calls = tuple(replace(call, arguments=call.arguments[:-2]) for call in it.reply.calls)
    it.reply = replace(it.reply, calls=calls)
    await it.well()


async def same_ids(it: Exchange) -> None:
    """Give every call the same id."""
    it.reply = replace(it.reply, calls=tuple(replace(call, id="call_same") for call in it.reply.calls))
    await it.well()


async def no_ids(it: Exchange) -> None:
    """Give no call an id."""
    it.reply = replace(it.reply, calls=tuple(replace(call, id="") for call in it.reply.calls))
    await it.well()


async def twice(it: Exchange) -> None:
    """Make every call twice."""
    again = tuple(replace(call, id=f"{call.id}b") for call in it.reply.calls)
    it.reply = replace(it.reply, calls=(*it.reply.calls, *again))
    await it.well()


async def slow(it: Exchange) -> None:
    """Send every byte of the first chunks alone."""
    await it.head()
    data = b"".join(events(it.reply))
    for place in range(min(60, len(data))):
        await it.send(data[place : place + 1])
    await it.send(data[60:])
    await it.end()


async def odd_bytes(it: Exchange) -> None:
    """Split the stream every seven bytes, inside letters too, with comments, CRLF, a mark in front and usage twice."""
    data = "\ufeff: keep-alive\r\n\r\n".encode()
    for each in events(it.reply)[:-2]:
        data += (
            each.replace(b"\n", b"\r\n")
            + b": still here\r\n\r\n"
            + event({**chunk({}), "usage": {**COUNTS, "completion_tokens": 3}})
        )
    data += b"".join(events(it.reply)[-2:]) * 2
    await it.head()
    for place in range(0, len(data), 7):
        await it.send(data[place : place + 7])
    await it.end()


async def not_streamed(it: Exchange) -> None:
    """Answer with one JSON value, as a server that cannot stream."""
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in it.reply.calls
    ]
    message = {"role": "assistant", "content": it.reply.text or None, **({"tool_calls": calls} if calls else {})}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    await it.whole(200, json.dumps({"object": "chat.completion", "choices": [choice], "usage": COUNTS}))


async def zipped(it: Exchange) -> None:
    """Compress the stream without being asked."""
    await it.whole(200, gzip.compress(b"".join(events(it.reply))), SSE, content_encoding="gzip")


async def page(it: Exchange) -> None:
    """Answer with a web page."""
    await it.whole(200, "<!DOCTYPE html><html><body>Log in</body></html>", "text/html")


async def broken_refusal(it: Exchange) -> None:
    """Begin to say that the key is wrong, and break the connection."""
    await it.head(401, "text/plain")
    await it.send(b"the key is")
    it.reset()


async def bad_gateway(it: Exchange) -> None:
    """Answer with the error page of something in between."""
    await it.whole(502, "<html><head><title>502 Bad Gateway</title></head></html>", "text/html")


async def moved(it: Exchange) -> None:
    """Send the client elsewhere."""
    await it.whole(307, "", "text/plain", location="http://127.0.0.1:9/v1/chat/completions")


async def unmarked(it: Exchange) -> None:
    """Leave the end mark out: the finish reason is all there is."""
    await it.head()
    for data in events(it.reply)[:-1]:
        await it.send(data)
    await it.end()


async def unfinished(it: Exchange) -> None:
    """Leave the finish reason out: the end mark is all there is."""
    await it.head()
    for data in events(it.reply):
        if b'"finish_reason":null' in data or b"[DONE]" in data:
            await it.send(data)
    await it.end()
