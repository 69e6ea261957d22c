"""From a written name to a model, and closing it again."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import attrs

from actors.text import clip
from orchestrator.errors import KeyMissing, UnknownModel
from orchestrator.models.playbook import load_playbook
from orchestrator.models.provider import PROVIDERS, find_provider, private
from orchestrator.models.reference import parse_reference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from actors.ports import Model
    from orchestrator.models.provider import Provider
    from orchestrator.models.reference import Reference
    from orchestrator.models.retry import RetryPolicy
    from orchestrator.models.wire.chat import ChatModel

__all__ = ["close_model", "open_model"]

PLAYBOOK = "playbook"
RETRIES = "LLM_MAX_RETRIES"
MOST_RETRIES = 100
MAX_NAME = 200
KNOWN = (
    "playbook:FILE.py",
    *(f"{p.name}:MODEL" if p.base_url else f"{p.name}:MODEL@http://HOST:PORT/v1" for p in PROVIDERS),
)


def open_model(name: str, environ: Mapping[str, str] | None = None) -> Model:
    """Return the model *name*; nothing is connected before it is asked. Close it with `close_model`.

    ``playbook:FILE.py`` runs the Python file, which defines ``PLAYS``: a mapping from each agent's name to a function
    of the request. ``provider:model`` asks a provider of `PROVIDERS`; ``provider:model@URL`` asks the server at that
    base URL. Keys, base URLs and ``LLM_MAX_RETRIES`` (how often to ask again, by default 4) come from *environ*, by
    default this process's environment. Raises `UnknownModel` with what is wrong and which names there are, and
    `KeyMissing` with the name of the key's variable.
    """
    environ = os.environ if environ is None else environ
    try:
        reference = parse_reference(name)
        if name.startswith(f"{PLAYBOOK}:"):
            return load_playbook(name.removeprefix(f"{PLAYBOOK}:"))
        return _chat(reference, environ)
    except ValueError as error:
        raise UnknownModel(shown(name), str(error), KNOWN) from error


def shown(name: str) -> str:
    """Return *name* without what may be a password or a key in its URL, and no longer than a name is."""
    name, mark, _ = clip(name, MAX_NAME).partition("?")
    name += f"{mark}…" if mark else ""
    head, sign, tail = name.rpartition("@")
    address = head.partition("://")
    return f"{address[0]}://…@{tail}" if sign and address[1] else name


async def close_model(model: Model | None) -> None:
    """Close *model* if it is one that holds connections. Closing twice is fine."""
    close = getattr(model, "close", None)
    if close is not None:
        await close()


def _chat(reference: Reference, environ: Mapping[str, str]) -> ChatModel:
    from orchestrator.models.wire.answer import Server
    from orchestrator.models.wire.chat import ChatModel
    from orchestrator.models.wire.client import Endpoint
    from orchestrator.models.wire.request import Form

    provider = find_provider(reference.provider)
    if provider is None:
        raise ValueError("this release has no such provider")
    url = reference.base_url or provider.url(environ)
    if not url:
        raise ValueError(f"it has no usual base URL; write one behind the model, or set {provider.url_name}")
    key = _key(provider, environ, needed=not provider.keyless and url == provider.base_url, name=str(reference))
    if key and not private(url):
        raise ValueError(f"{provider.key_name} would go to {url} unencrypted; use https, or unset {provider.key_name}")
    server = Server(str(reference), url, provider.key_name)
    form = Form(reference.model, provider.limit_field, counts=provider.counts, call_ids=provider.call_ids)
    return ChatModel(server, Endpoint(url, key), form, retry=_retries(environ))


def _key(provider: Provider, environ: Mapping[str, str], *, needed: bool, name: str) -> str:
    """Return the provider's key, or an empty text where none is set and none is needed."""
    key = environ.get(provider.key_name, "").strip()
    if not key and needed:
        raise KeyMissing(name, provider.key_name)
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError(f"{provider.key_name} holds a blank or a sign that no key has; set it anew")
    return key


def _retries(environ: Mapping[str, str]) -> RetryPolicy:
    from orchestrator.models.retry import RetryPolicy

    written = environ.get(RETRIES, "").strip()
    if not written:
        return RetryPolicy()
    if not written.isdecimal() or int(written) > MOST_RETRIES:
        raise ValueError(f"{RETRIES} is {written!r}; give how often to ask again, 0 to {MOST_RETRIES}")
    return attrs.evolve(RetryPolicy(), attempts=int(written) + 1)
