"""Between a transport and the SDK: every message passes here, so that one bad tool does not lose its server.

The SDK refuses a whole listing for one malformed entry, and a whole answer for one block of an unknown kind. Here each
entry of a ``tools/list`` answer is looked at by itself: a good one goes on with its own text kept beside it, a bad one
is left out and its fault is kept; a block that the protocol does not know is told by its kind. Schemas of answers are
taken off, because the SDK would check them by a library that may fetch; we check them ourselves.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from actors.text import clip

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from typing import Self

__all__ = ["BAD", "RAW", "sieved"]

RAW = "orchestrator/raw"
"""Where, in a tool's ``_meta``, the entry stands as the server sent it."""
BAD = "orchestrator/bad"
"""Where, in a listing's ``_meta``, the faults of the entries that were left out stand."""
MAX_FAULT = 300
MAX_KIND = 80
MAX_DEPTH = 100


@asynccontextmanager
async def sieved(
    transport: AbstractAsyncContextManager[tuple[Any, Any]], ended: Callable[[], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """Yield the streams of *transport* with the sieve between; *ended* is called when nothing more can come in."""
    async with transport as (read, write):
        asked: dict[Any, str] = {}
        yield Incoming(read, asked, ended), Outgoing(write, asked)


class Between:
    """One stream of the transport, closed as the stream itself is."""

    def __init__(self, inner: Any, asked: dict[Any, str]) -> None:
        self._inner = inner
        self._asked = asked

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class Outgoing(Between):
    """The stream to the server; it remembers what was asked for, where the answer is to be looked at."""

    async def send(self, item: Any) -> None:
        """Send one message."""
        message = item.message
        method, request = getattr(message, "method", ""), getattr(message, "id", None)
        if method in SIFTERS and request is not None:
            self._asked[request] = method
        elif method == "notifications/cancelled":
            self._asked.pop((message.params or {}).get("requestId"), None)
        await self._inner.send(item)


class Incoming(Between):
    """The stream from the server."""

    def __init__(self, inner: Any, asked: dict[Any, str], ended: Callable[[], None]) -> None:
        super().__init__(inner, asked)
        self._ended = ended

    @property
    def last_context(self) -> Any:
        """The context of the sender of the last message, where the transport keeps it."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        """Return the next message; what was no message is left out."""
        import anyio

        try:
            while isinstance(item := await self._inner.receive(), Exception):
                pass
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._ended()
            raise
        message = item.message
        if not hasattr(message, "method"):
            method, result = self._asked.pop(message.id, ""), getattr(message, "result", None)
            if method and isinstance(result, dict):
                message.result = SIFTERS[method](result)
        return item

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        import anyio

        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


def sifted(result: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a ``tools/list`` with every good entry, and the faults of the others in its ``_meta``."""
    tools = result.get("tools")
    if not isinstance(tools, list):
        return result
    good: list[dict[str, Any]] = []
    bad: list[str] = []
    for number, entry in enumerate(tools, start=1):
        checked = _checked(entry)
        if isinstance(checked, str):
            name = entry.get("name") if isinstance(entry, dict) else None
            named = f"tool {clip(name, 80)!r}" if isinstance(name, str) and name else f"entry {number} of its listing"
            bad.append(clip(f"{named}: {checked}", MAX_FAULT))
        else:
            good.append(checked)
    if not isinstance(result.get("nextCursor", ""), str | None):
        bad.append("the rest of its listing: its nextCursor is no text")
        result = {**result, "nextCursor": None}
    meta = result.get("_meta")
    return {**result, "tools": good, "_meta": {**(meta if isinstance(meta, dict) else {}), BAD: bad}}


def _checked(entry: Any) -> dict[str, Any] | str:
    """Return what the SDK is given for one entry, or what is wrong with it."""
    if not isinstance(entry, dict):
        return f"it is no object but {type(entry).__name__}"
    name, schema = entry.get("name"), entry.get("inputSchema", {"type": "object"})
    if not isinstance(name, str) or not name:
        return "it has no name"
    if schema is None:
        schema = {"type": "object"}
    if not isinstance(schema, dict):
        return f"its inputSchema is no object but {type(schema).__name__}"
    description = entry.get("description")
    if description is not None and not isinstance(description, str):
        return f"its description is no text but {type(description).__name__}"
    if _deep(entry):
        return f"it is nested more than {MAX_DEPTH} deep"
    shown = {**schema, "type": "object"} if _typed(schema) else {"type": "object"}
    raw = {**entry, "inputSchema": schema}
    return {"name": name, "description": description or "", "inputSchema": shown, "_meta": {RAW: raw}}


def _deep(value: Any) -> bool:
    """Tell whether a JSON value is nested deeper than what can be handed on."""
    stack = [(value, 0)]
    while stack:
        node, depth = stack.pop()
        if depth > MAX_DEPTH:
            return True
        if isinstance(node, dict | list):
            stack.extend((each, depth + 1) for each in (node.values() if isinstance(node, dict) else node))
    return False


def _typed(schema: dict[str, Any]) -> bool:
    """Tell whether the SDK takes *schema*. What it does not take, our own check will name."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    return (
        isinstance(schema.get("$schema", ""), str)
        and isinstance(properties, dict)
        and all(isinstance(each, dict | bool) for each in properties.values())
        and isinstance(required, list)
        and all(isinstance(each, str) for each in required)
    )


def answered(result: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a ``tools/call`` with every block that the protocol knows, the others told by their kind."""
    blocks = result.get("content")
    if not isinstance(blocks, list):
        blocks = [] if blocks is None else [blocks]
    known = result.get("resultType", "complete") == "complete"
    return {**result, "content": [_block(block) for block in blocks]} if known else result


def _block(block: Any) -> Any:
    from mcp_types import CallToolResult
    from pydantic import ValidationError

    try:
        CallToolResult.model_validate({"content": [block]}, by_name=False)
    except ValidationError:
        kind = block.get("type") if isinstance(block, dict) else None
        told = f"{clip(kind, MAX_KIND)} " if isinstance(kind, str) else ""
        return {"type": "text", "text": f"[{told}content that the protocol does not know]"}
    return block


SIFTERS = {"tools/list": sifted, "tools/call": answered}
"""What looks at an answer before the SDK does, by the method that was asked for."""
