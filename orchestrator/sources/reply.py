"""What an HTTP server answers to one request, as the SDK is to see it: a message, or an error that tells how HTTP went.

The SDK loses the status of an answer that is no message, and takes an answer of any size. Here such an answer becomes
an error of the protocol with the status in its data, so that whoever asked can tell a request that was refused from one
of which nobody knows what it did.
"""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["HTTP_FAILED", "MAX_REPLY_BYTES", "is_forgotten", "plain", "status_of"]

HTTP_FAILED = -32077
"""The code of an error that stands for an HTTP answer; no server's own."""
MAX_REPLY_BYTES = 16 * 1024 * 1024
OPENING = frozenset({"initialize", "server/discover"})
"""Requests whose failures the SDK reads by itself, to find out which protocol a server speaks."""


class Asked(msgspec.Struct):
    """What counts of a request."""

    id: int | str | None = None
    method: str = ""


async def plain(request: Any, response: Any) -> Any:
    """Return *response* to the POST *request* as the SDK is to see it. Raises what reading its body raises."""
    import httpx2

    asked = msgspec.json.decode(request.content, type=Asked)
    status, kind = response.status_code, response.headers.get("content-type", "").lower()
    streams = response.is_success and kind.startswith("text/event-stream")
    if asked.id is None or asked.method in OPENING or response.has_redirect_location or streams:
        return response
    body, fault = await _body(response)
    is_message = kind.startswith("application/json") and (
        status == httpx2.codes.OK or (response.is_error and _is_refusal(body))
    )
    forgotten = status == httpx2.codes.NOT_FOUND and "mcp-session-id" in request.headers
    if is_message and not fault and not forgotten:
        return httpx2.Response(status, headers={"content-type": kind}, content=body)
    later = response.headers.get("retry-after", "")
    how = fault or f"HTTP {status} {response.reason_phrase}".rstrip() + (f", retry after {later}" if later else "")
    data = {"status": httpx2.codes.OK if fault else status, "forgotten": forgotten}
    error = {"code": HTTP_FAILED, "message": how, "data": data}
    told = msgspec.json.encode({"jsonrpc": "2.0", "id": asked.id, "error": error})
    return httpx2.Response(200, headers={"content-type": "application/json"}, content=told)


async def _body(response: Any) -> tuple[bytes, str]:
    """Return the body, and why it cannot be taken; nothing is unpacked, because what that comes to has no limit."""
    pieces, size = [], 0
    try:
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            return b"", "its answer is packed, which it was not asked to do"
        async for piece in response.stream:
            size += len(piece)
            if size > MAX_REPLY_BYTES:
                return b"", f"its answer has more than {MAX_REPLY_BYTES} bytes"
            pieces.append(piece)
    finally:
        await response.aclose()
    return b"".join(pieces), ""


def _is_refusal(body: bytes) -> bool:
    """Tell whether *body* is an error of the protocol: the server answered, and said no."""
    import mcp_types
    from pydantic import ValidationError

    try:
        return isinstance(mcp_types.jsonrpc_message_adapter.validate_json(body, by_name=False), mcp_types.JSONRPCError)
    except ValidationError:
        return False


def status_of(error: Any) -> int | None:
    """Return the HTTP status that the SDK's *error* stands for, or ``None`` for an error of the protocol."""
    data = error.error.data
    status = data.get("status") if error.code == HTTP_FAILED and isinstance(data, dict) else None
    return status if isinstance(status, int) else None


def is_forgotten(error: Any) -> bool:
    """Tell whether the SDK's *error* says that the server does not know the session that the request was sent in."""
    return status_of(error) is not None and error.error.data.get("forgotten") is True
