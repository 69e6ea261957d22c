"""Looking for local model servers: which of them answer here, and which models they hold.

A look is short and asks for a list, nothing else. What answers with anything but such a list is no model server.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import attrs
import msgspec

from orchestrator.models.provider import PROVIDERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import aiohttp

    from orchestrator.models.provider import Provider

__all__ = ["LocalServer", "local_servers"]

LOOK_S = 1.0
MAX_LIST_BYTES = 4 * 1024 * 1024
OK = 200


@attrs.frozen
class LocalServer:
    """Where a local server was looked for, which *models* it holds, and, where it does not answer so, a *fault*."""

    provider: str
    base_url: str
    models: tuple[str, ...] = ()
    fault: str = ""

    def reference(self, model: str) -> str:
        """Return what ``--model`` takes for one of its models."""
        return f"{self.provider}:{model}"


class Listed(msgspec.Struct):
    """One model of a list: OpenAI's form has ids, Ollama's own has names."""

    id: str = ""
    name: str = ""


class ModelList(msgspec.Struct):
    """A list of models in either form; one of the two is there."""

    data: list[Listed] | None = None
    models: list[Listed] | None = None


async def local_servers(
    environ: Mapping[str, str], providers: Iterable[Provider] = PROVIDERS, within_s: float = LOOK_S
) -> tuple[LocalServer, ...]:
    """Look for every local provider at once, each for at most *within_s* seconds; return what was found, in order."""
    import aiohttp

    local = [provider for provider in providers if provider.local]
    limit = aiohttp.ClientTimeout(total=within_s)
    async with aiohttp.ClientSession(timeout=limit, cookie_jar=aiohttp.DummyCookieJar()) as session:
        return tuple(await asyncio.gather(*(_look(provider, environ, session) for provider in local)))


async def _look(provider: Provider, environ: Mapping[str, str], session: aiohttp.ClientSession) -> LocalServer:
    import aiohttp

    try:
        base = provider.url(environ)
    except ValueError as error:
        return LocalServer(provider.name, "", fault=str(error))
    key = environ.get(provider.key_name, "").strip()
    headers = {"Authorization": f"Bearer {key}"} if key and key.isascii() and key.isprintable() else {}
    fault = "nothing answers"
    for url in (f"{base}/models", f"{base.removesuffix('/v1')}/api/tags"):
        try:
            async with session.get(url, headers=headers, allow_redirects=False) as response:
                models = _listed(await _body(response)) if response.status == OK else None
        except (aiohttp.ClientError, TimeoutError, OSError):
            continue
        if models is not None:
            return LocalServer(provider.name, base, models)
        fault = f"something answers, without a list of models (HTTP {response.status})"
    return LocalServer(provider.name, base, fault=fault)


async def _body(response: aiohttp.ClientResponse) -> bytes:
    """Return the whole body, or as much of it as a list of models may have."""
    held = b""
    async for piece in response.content.iter_any():
        held += piece
        if len(held) > MAX_LIST_BYTES:
            break
    return held


def _listed(data: bytes) -> tuple[str, ...] | None:
    """Return the models of a list, or ``None`` for anything that is no list of models."""
    try:
        found = msgspec.json.decode(data, type=ModelList)
    except (msgspec.DecodeError, RecursionError):
        return None
    listed = found.data if found.data is not None else found.models
    return None if listed is None else tuple(one.id or one.name for one in listed if one.id or one.name)
