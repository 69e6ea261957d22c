"""The HTTP of the model wire: one session over one endpoint, made when it is first used.

Rules:

- Certificates are checked, proxies come from the environment, redirects are not followed: a key goes where it was sent.
- Nothing waits without limit: not to connect, not for the first byte, not for the next one.
- A response that is not read to its end closes its connection, on cancel too: the server sees it at once.
- The key is in the request's headers and nowhere else.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import attrs

from orchestrator.models.fault import FaultKind, ModelFault

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import aiohttp

__all__ = ["Endpoint", "HttpClient", "Incoming", "WireLimits"]

AGENT = "orchestrator-of-actors"
DRAIN_S = 0.2
FIRST_SERVER_ERROR = 500
PROXY_REMEDY = (
    "check the proxy that the environment names (http_proxy, https_proxy, all_proxy), or name the host in no_proxy"
)


@attrs.frozen
class WireLimits:
    """Limits of one request, in seconds and bytes.

    ``connect_s`` to connect, ``first_byte_s`` from sending the request to the first byte of the answer's body,
    ``idle_s`` between two bytes of it (exact to a tenth of itself), ``tail_s`` between two once the reply is whole and
    only its counts and end mark are due. ``max_reply_bytes`` of a whole reply,
    ``max_event_bytes`` of one event of it, ``max_error_bytes`` of an error's text that are read. ``connections`` open
    at once; further requests wait for one, without limit.
    """

    connect_s: float = 10.0
    first_byte_s: float = 180.0
    idle_s: float = 60.0
    tail_s: float = 5.0
    max_reply_bytes: int = 64 * 1024 * 1024
    max_event_bytes: int = 8 * 1024 * 1024
    max_error_bytes: int = 64 * 1024
    connections: int = 256


@attrs.frozen
class Endpoint:
    """Where a model is asked: ``base_url``, such as ``https://api.openai.com/v1``, and the key, if one is needed."""

    base_url: str
    key: str = attrs.field(default="", repr=False)

    def without_key(self, text: str) -> str:
        """Return *text* with the key, should a server have repeated it in any spelling, made unreadable."""
        for spelling in (self.key, self.key.replace("/", "\\/"), quote(self.key, safe="")) if self.key else ():
            text = text.replace(spelling, "[key]")
        return text


class Incoming:
    """A response whose head has come, and whose body is read in pieces."""

    __slots__ = ("_idle", "_limit", "_limits", "_loop", "_response", "headers", "status")

    def __init__(self, response: aiohttp.ClientResponse, limit: asyncio.Timeout, limits: WireLimits) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        self._response = response
        self._limit = limit
        self._limits = limits
        self._idle = limits.idle_s
        self._loop = asyncio.get_running_loop()

    async def read(self) -> bytes:
        """Return the next piece of the body, nothing at its end. Raises `TimeoutError`, and the errors of aiohttp."""
        piece: bytes = await self._response.content.readany()
        at, idle, due = self._loop.time(), self._idle, self._limit.when()
        if due is None or not idle * 0.9 <= due - at <= idle:
            self._limit.reschedule(at + idle)
        return piece

    def hurry(self) -> None:
        """Only the tail of the body is due: wait for it no longer than ``tail_s``."""
        self._idle = min(self._idle, self._limits.tail_s)
        self._limit.reschedule(self._loop.time() + self._idle)

    async def text(self) -> str:
        """Return the body of an error as text, or as much of it as comes and is read."""
        import aiohttp

        held = b""
        with suppress(aiohttp.ClientError):  # the status has come: what is missing of its words changes nothing
            while len(held) < self._limits.max_error_bytes and (piece := await self.read()):
                held += piece
        return held[: self._limits.max_error_bytes].decode(errors="replace")

    async def drain(self) -> None:
        """Read what follows the end mark, so that the connection can be used again; give up after a moment."""
        if not self._response.content.at_eof():
            self._limit.reschedule(self._loop.time() + DRAIN_S)
            await self._response.content.readany()


class HttpClient:
    """Sends requests to one endpoint, from as many tasks at once as there are. *model* is its name in errors."""

    def __init__(self, endpoint: Endpoint, model: str, limits: WireLimits) -> None:
        self._endpoint = endpoint
        self._model = model
        self._limits = limits
        self._session: aiohttp.ClientSession | None = None
        self._slots = asyncio.Semaphore(limits.connections)
        self._proxy: str | None = None
        self._url = endpoint.base_url.rstrip("/") + "/chat/completions"

    @asynccontextmanager
    async def post(self, body: bytes) -> AsyncIterator[Incoming]:
        """Send *body*; yield the response. Leaving the block gives the connection back, or closes it.

        Raises `ModelFault` for what goes wrong on the way, inside the block too.
        """
        import aiohttp

        session = self._session or self._open()
        async with self._slots:
            try:
                async with (
                    asyncio.timeout(self._limits.first_byte_s) as limit,
                    session.post(self._url, data=body, allow_redirects=False, proxy=self._proxy) as response,
                ):
                    yield Incoming(response, limit, self._limits)
            except (aiohttp.ClientError, TimeoutError, OSError, UnicodeError) as error:
                raise self._fault(error) from None

    async def close(self) -> None:
        """Close every connection. Closing twice is fine; a request after it opens a new session."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open(self) -> aiohttp.ClientSession:
        import aiohttp

        headers = {"Content-Type": "application/json", "Accept": "text/event-stream", "User-Agent": AGENT}
        headers["Accept-Encoding"] = "identity"
        if self._endpoint.key:
            headers["Authorization"] = f"Bearer {self._endpoint.key}"
        try:
            self._proxy = proxy_of(self._url)
        except ValueError as error:
            raise ModelFault(FaultKind.FOREIGN, self._model, str(error), remedy=PROXY_REMEDY) from None
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._limits.connect_s),
        )
        return self._session

    def _fault(self, error: Exception) -> ModelFault:
        import aiohttp

        where = urlsplit(self._url).netloc
        # What aiohttp says of a response tells the address of a proxy too, password and all.
        said = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
        told = self._endpoint.without_key(said or type(error).__name__)
        via = f" by the proxy {urlsplit(self._proxy).netloc.rpartition('@')[2]}" if self._proxy else ""
        if isinstance(error, aiohttp.ClientHttpProxyError):
            text = f"no connection to {where}{via}: HTTP {error.status} {told}"
            kind = FaultKind.CONNECTION if error.status >= FIRST_SERVER_ERROR else FaultKind.FOREIGN
            return ModelFault(kind, self._model, text, remedy=PROXY_REMEDY, status=error.status)
        if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
            remedy = "have its certificate's authority trusted by this machine (SSL_CERT_FILE names a file of them)"
            return ModelFault(FaultKind.FOREIGN, self._model, f"{where} cannot be trusted: {told}", remedy=remedy)
        if isinstance(error, aiohttp.InvalidURL | UnicodeError):
            return ModelFault(FaultKind.NOT_FOUND, self._model, f"{self._url} is no address", remedy="check the URL")
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
            near = f"see that something listens at {where}; 'orchestrator doctor' looks for local servers"
            remedy = PROXY_REMEDY if via else near
            number = error.errno or 0
            told = os.strerror(number) if number > 0 else error.strerror or told
            text = f"no connection to {where}{via}: {told}"
            return ModelFault(FaultKind.CONNECTION, self._model, text, remedy=remedy)
        if isinstance(error, TimeoutError):
            limits = f"first byte {self._limits.first_byte_s:g} s, next byte {self._limits.idle_s:g} s"
            return ModelFault(FaultKind.SILENT, self._model, f"{where} fell silent (limits: {limits})")
        return ModelFault(FaultKind.CONNECTION, self._model, f"the connection to {where} broke: {told}")


def proxy_of(url: str) -> str | None:
    """Return the proxy that the environment names for *url*, or ``None``; this machine itself is never far.

    A proxy without a scheme is an ``http`` one. Raises ValueError for one that we cannot use, without its password.
    """
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    host = parts.hostname or ""
    if host in ("", "localhost", "::1") or host.startswith("127.") or proxy_bypass(host):
        return None
    proxies = getproxies()
    written = proxies.get(parts.scheme) or proxies.get("all")
    if not written:
        return None
    named = f"the proxy for {host} in the environment"
    try:
        proxy = urlsplit(written if "://" in written else f"http://{written}")
        usable = proxy.scheme in ("http", "https") and bool(proxy.hostname) and proxy.port != 0
    except ValueError:
        raise ValueError(f"{named} is no address") from None
    if not usable:
        raise ValueError(f"{named} is none that we can use ({proxy.scheme}://…); give an http:// one")
    return proxy.geturl()
