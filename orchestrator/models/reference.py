"""A model by its written name: ``provider:model``, or ``provider:model@http://…``. Pure.

Rules:

- What stands before the first colon or slash is the provider, the rest is the model: ``openai/gpt-5`` is
  ``openai:gpt-5``, and ``openrouter:openai/gpt-5`` keeps its slash.
- ``@http://…`` or ``@https://…`` at the end is the base URL of the server to ask. It carries no key and no query.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import msgspec

__all__ = ["Reference", "parse_reference"]

PROVIDER_END = re.compile(r"[:/]")
AT_URL = re.compile(r"@(?=[a-z][a-z0-9+.-]*://)", re.IGNORECASE)
PATH = "/chat/completions"


class Reference(msgspec.Struct, frozen=True):
    """Which model of which provider, and where, if that was written."""

    provider: str
    model: str
    base_url: str = ""

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}" + (f"@{self.base_url}" if self.base_url else "")


def parse_reference(name: str) -> Reference:
    """Return what *name* refers to. Raises ValueError, saying what is missing or wrong; a key in it is not repeated."""
    provider, *rest = PROVIDER_END.split(name.strip(), maxsplit=1)
    if not provider or not rest:
        raise ValueError("a model is written provider:model")
    model, *urls = AT_URL.split(rest[0], maxsplit=1)
    if not model.strip():
        raise ValueError(f"the name of a model is missing behind {provider}:")
    if not urls:
        return Reference(provider, model)
    return Reference(provider, model, checked_url(urls[0]))


def checked_url(url: str) -> str:
    """Return the base URL *url* without a slash at its end. Raises ValueError for one that cannot be a base URL."""
    if not url.strip().isprintable() or " " in url.strip():
        raise ValueError("the base URL holds a blank or a sign that does not print")
    try:
        parts = urlsplit(url.strip())
        port = parts.port
        (parts.hostname or "").encode("idna")
    except ValueError as error:
        raise ValueError(f"the base URL cannot be read: {error}") from None
    if parts.username is not None or parts.password is not None:
        raise ValueError("the base URL holds a user or a password; a key belongs into the environment")
    if parts.query or parts.fragment:
        raise ValueError("the base URL has a query or a fragment; it ends with its path, such as /v1")
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ValueError("the base URL is no http:// or https:// address of a host")
    if parts.path.rstrip("/").endswith(PATH):
        raise ValueError(f"the base URL ends before {PATH}, mostly with /v1; leave that out")
    return url.strip().rstrip("/")
