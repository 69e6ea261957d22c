"""A server over HTTP, as a transport of the MCP SDK, with what the SDK does not tell: how the HTTP itself went."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import anyio

from orchestrator.sources.reply import MAX_REPLY_BYTES, plain

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

__all__ = ["http"]

CONNECT_S = 10.0
READ_S = 300.0
LEAVE_S = 2.0


@lru_cache(maxsize=1)
def tls() -> ssl.SSLContext:
    """Return the one set of certificates that servers are checked against: reading it costs more than connecting."""
    import httpx2

    return httpx2.create_ssl_context()


@asynccontextmanager
async def http(
    url: str, headers: Mapping[str, str], silent_s: float, noted: Callable[[str], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """Yield the two streams that the SDK wants for the server at *url*, which may be silent for *silent_s* seconds.

    *noted* hears how the opening went (``HTTP 401`` …; an empty text where it went well) and of every connection that
    fails, because the SDK's own errors lose that. On leaving the server is told that the session is over, and nothing
    stays open.
    """
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async def look(response: Any) -> None:
        if response.request.method == "POST":
            noted(f"HTTP {response.status_code} {response.reason_phrase}".rstrip() if response.is_error else "")

    class Watched(httpx2.AsyncHTTPTransport):
        """Tells of connections that fail before they answer, and makes every answer one that the SDK can tell."""

        async def handle_async_request(self, request: Any) -> Any:
            try:
                if request.method == "DELETE":
                    return await within(LEAVE_S, super().handle_async_request(request))
                response = await super().handle_async_request(request)
                return await plain(request, response) if request.method == "POST" else response
            except httpx2.TransportError as error:
                noted(f"{type(error).__name__}: {error}".rstrip(": "))
                raise

    client = httpx2.AsyncClient(
        headers={**headers, "accept-encoding": "identity"},
        transport=Watched(verify=tls(), limits=httpx2.Limits()),
        timeout=httpx2.Timeout(CONNECT_S, read=max(READ_S, silent_s), pool=None),
        event_hooks={"response": [look]},
    )
    async with (
        client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_REPLY_BYTES) as streams,
    ):
        yield streams


async def within(seconds: float, request: Awaitable[Any]) -> Any:
    """Return what *request* returns. Raises what the SDK takes for a failure once *seconds* are over."""
    import httpx2

    with anyio.move_on_after(seconds):
        return await request
    msg = f"it did not answer within {seconds:g} s"
    raise httpx2.StreamError(msg)
