"""The providers there are, as data: where each is asked, what its key is called, and how it wants its requests.

All of them speak Chat Completions. A local one needs no key, and its server is looked for by ``orchestrator doctor``.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import attrs

from actors.naming import Edge
from orchestrator.models.reference import checked_url
from orchestrator.models.wire.request import CALL_ID

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PROVIDERS", "Provider", "find_provider", "private"]

MISTRAL_CALL_ID = Edge("A-Za-z0-9", 9)


@attrs.frozen
class Provider:
    """A provider: its ``name``, its usual ``base_url`` (empty: it has none), and the environment names that count.

    ``key_name`` holds the key, which is needed unless ``keyless``; ``url_name`` overrides the base URL. A ``local`` one
    is looked for. The rest is how its server differs: the field of the output limit, whether it can be asked to count
    tokens in a stream, and what it takes as the id of a call.
    """

    name: str
    base_url: str = ""
    key_name: str = ""
    url_name: str = ""
    keyless: bool = False
    local: bool = False
    limit_field: str = "max_tokens"
    counts: bool = True
    call_ids: Edge = CALL_ID

    def url(self, environ: Mapping[str, str]) -> str:
        """Return the base URL in this environment, or an empty text. Raises ValueError for one that cannot be."""
        written = environ.get(self.url_name, "").strip() if self.url_name else ""
        if not written:
            return self.base_url
        if self.url_name == OLLAMA_HOST:
            written = ollama_url(written)
        try:
            return checked_url(written)
        except ValueError as error:
            raise ValueError(f"{self.url_name}: {error}") from None


OLLAMA_HOST = "OLLAMA_HOST"
OLLAMA_PORT = 11434

PROVIDERS = (
    Provider(
        "openai",
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        limit_field="max_completion_tokens",
    ),
    Provider("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "OPENROUTER_BASE_URL"),
    Provider("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "DEEPSEEK_BASE_URL"),
    Provider("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", "GROQ_BASE_URL"),
    Provider(
        "mistral",
        "https://api.mistral.ai/v1",
        "MISTRAL_API_KEY",
        "MISTRAL_BASE_URL",
        counts=False,  # it counts without being asked, and refuses fields that it does not know
        call_ids=MISTRAL_CALL_ID,
    ),
    Provider("ollama", "http://127.0.0.1:11434/v1", "OLLAMA_API_KEY", OLLAMA_HOST, keyless=True, local=True),
    Provider("llamacpp", "http://127.0.0.1:8080/v1", "LLAMA_API_KEY", "LLAMACPP_BASE_URL", keyless=True, local=True),
    Provider("vllm", "http://127.0.0.1:8000/v1", "VLLM_API_KEY", "VLLM_BASE_URL", keyless=True, local=True),
    Provider("openai-compatible", "", "OPENAI_API_KEY", "OPENAI_BASE_URL", keyless=True),
)


def find_provider(name: str) -> Provider | None:
    """Return the provider *name*, or ``None``."""
    return next((provider for provider in PROVIDERS if provider.name == name), None)


def ollama_url(written: str) -> str:
    """Return the base URL that ``OLLAMA_HOST`` means: a host, a port, both, or an address; the default fills in."""
    text = written if "://" in written else f"http://{written}"
    parts = urlsplit(text)
    host = parts.hostname or "127.0.0.1"
    host = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104  # where a server listens, not where it is
    port = parts.port or (OLLAMA_PORT if "://" not in written or parts.scheme == "http" else 443)
    shown = f"[{host}]" if ":" in host else host
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{shown}:{port}{path if path.endswith('/v1') else f'{path}/v1'}"


def private(url: str) -> bool:
    """Tell whether *url* is encrypted, or leads no further than this machine or its own network."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme == "https" or host == "localhost" or ("." not in host.strip(".") and ":" not in host):
        return True
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host.endswith((".local", ".localhost", ".internal"))
