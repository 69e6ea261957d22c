"""A server over HTTP, as a transport of the MCP SDK, with what the SDK does not tell: how the HTTP itself went."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Mapping

__all__ = ["http"]

CONNECT_S = 10.0
READ_S = 300.0
MAX_EVENT_BYTES = 16 * 1024 * 1024


@lru_cache(maxsize=1)
def tls() -> ssl.SSLContext:
    """Return the one set of certificates that servers are checked against: reading it costs more than connecting."""
    import httpx2

    return httpx2.create_ssl_context()


@asynccontextmanager
async def http(url: str, headers: Mapping[str, str], noted: Callable[[str], None]) -> AsyncIterator[tuple[Any, Any]]:
    """Yield the two streams that the SDK wants for the server at *url*.

    *noted* hears of every answer that refuses (``401``, ``404``, ``500`` …) and of every connection that fails, because
    the SDK's own errors lose that. On leaving the server is told that the session is over, and nothing stays open.
    """
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async def look(response: Any) -> None:
        if response.status_code >= httpx2.codes.BAD_REQUEST:
            noted(f"HTTP {response.status_code} {response.reason_phrase}".rstrip())

    class Watched(httpx2.AsyncHTTPTransport):
        """Tells of connections that fail before they answer."""

        async def handle_async_request(self, request: Any) -> Any:
            try:
                return await super().handle_async_request(request)
            except httpx2.TransportError as error:
                noted(f"{type(error).__name__}: {error}".rstrip(": "))
                raise

    client = httpx2.AsyncClient(
        headers=dict(headers),
        transport=Watched(verify=tls()),
        timeout=httpx2.Timeout(CONNECT_S, read=READ_S),
        event_hooks={"response": [look]},
    )
    async with (
        client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_EVENT_BYTES) as streams,
    ):
        yield streams
