"""What a server that does not answer with a reply means: its status and its words to a fault with a remedy. Pure.

The same words are read wherever they come: as the body of an error, inside an open stream, or as a whole reply.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import msgspec

from orchestrator.models.fault import FaultKind, ModelFault

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Server", "refused", "streamed_error"]

BY_STATUS = {
    400: FaultKind.BAD_REQUEST,
    401: FaultKind.AUTHENTICATION,
    402: FaultKind.QUOTA,
    403: FaultKind.FORBIDDEN,
    404: FaultKind.NOT_FOUND,
    408: FaultKind.SERVER,
    409: FaultKind.SERVER,
    413: FaultKind.TOO_LARGE,
    425: FaultKind.SERVER,
    429: FaultKind.THROTTLED,
    500: FaultKind.SERVER,
    502: FaultKind.SERVER,
    503: FaultKind.OVERLOADED,
    504: FaultKind.SERVER,
    529: FaultKind.OVERLOADED,
    **dict.fromkeys(range(520, 525), FaultKind.SERVER),
}
TOO_LONG = (
    "context_length",
    "context length",
    "context size",
    "context window",
    "exceed_context",
    "maximum context",
    "prompt is too long",
    "too many tokens",
)
OUT_OF_MONEY = ("insufficient_quota", "billing", "credit balance")
FILTERED = ("content_filter", "content_policy", "responsibleai")
BUSY = ("overloaded", "server_overloaded", "unavailable", "at capacity")
TOO_OFTEN = ("rate_limit", "rate limit", "too many requests")
STATUS_OF = {
    401: ("authentication", "invalid_api_key"),
    403: ("permission",),
    404: ("not_found",),
    400: ("invalid_request", "bad_request", *TOO_LONG, *FILTERED),
}
SAID = (
    (FaultKind.QUOTA, {400, 402, 403, 429}, OUT_OF_MONEY, False),
    (FaultKind.TOO_LONG, {400, 422, 500}, TOO_LONG, True),
    (FaultKind.REFUSED, {400, 403, 422}, FILTERED, False),
    (FaultKind.OVERLOADED, {500}, BUSY, True),
    (FaultKind.THROTTLED, {500}, TOO_OFTEN, True),
)
"""Which kind is meant when one of these words comes with one of these statuses: in the code, or anywhere."""
FIRST_CLIENT_ERROR, FIRST_SERVER_ERROR = 400, 500
REDIRECTS = frozenset({300, 301, 302, 303, 305, 307, 308})
PROXY_WANTS = 407


@attrs.frozen
class Server:
    """Whom a fault speaks of: the model as it was named, its base URL, and the environment name of its key."""

    model: str
    base_url: str
    key_name: str = ""

    def remedy(self, kind: FaultKind) -> str:
        """Return what a person can do about a fault of this *kind*."""
        name = self.model.partition(":")[2].partition("@http")[0] or self.model
        key = self.key_name or "a key"
        return {
            FaultKind.AUTHENTICATION: f"set {key} to a key that {self.base_url} takes",
            FaultKind.FORBIDDEN: f"use a key in {key} that may use {name}, or another model",
            FaultKind.QUOTA: "look at the account's plan and billing, or use another model",
            FaultKind.NOT_FOUND: f"check the model's name, {name!r}, and the base URL, {self.base_url}",
            FaultKind.TOO_LONG: "shorten what is sent: smaller tool outputs, fewer turns in one session, fewer tools",
            FaultKind.TOO_LARGE: "shorten what is sent: smaller tool outputs, fewer turns in one session, fewer tools",
            FaultKind.REFUSED: "say it in other words; the provider's filter refused the conversation",
            FaultKind.FOREIGN: f"see that {self.base_url} is the base URL of an OpenAI-compatible server",
        }.get(kind, "")


class Told(msgspec.Struct):
    """What an error says."""

    message: str
    code: str = ""
    status: int | None = None


def refused(
    server: Server, status: int, text: str, after_s: float | None = None, hide: Callable[[str], str] = str
) -> ModelFault:
    """Return the fault of a response with a *status* that is not 200; *hide* takes what is secret out of its words."""
    told = told_by(text, hide)
    kind = _kind(status, told)
    if status in REDIRECTS:
        told.message = "the server sends us elsewhere, and a key is not carried there"
    elif status < FIRST_CLIENT_ERROR:
        told.message = "the server does not answer with a reply"
    elif status == PROXY_WANTS:
        told.message = told.message or "the proxy on the way wants a user and a password of its own"
    message = f"HTTP {status}: {told.message}" if told.message else f"HTTP {status}"
    return ModelFault(kind, server.model, message, remedy=server.remedy(kind), status=status, after_s=after_s)


def streamed_error(server: Server, text: str, hide: Callable[[str], str] = str) -> ModelFault:
    """Return the fault of an error that came inside a stream, or in place of a reply; *text* is all that was sent.

    *hide* takes out of it what is secret.
    """
    told = told_by(text, hide)
    status = told.status or next((s for s, signs in STATUS_OF.items() if _any(signs, told.code)), FIRST_SERVER_ERROR)
    kind = _kind(status, told)
    message = f"error in the stream: {told.message or told.code or 'no more is said'}"
    return ModelFault(kind, server.model, message, remedy=server.remedy(kind), status=told.status)


def told_by(text: str, hide: Callable[[str], str] = str) -> Told:
    """Return what the body of an error says: the usual JSON, or the first words of anything else.

    What *hide* takes out is looked for in what was read: JSON has more than one spelling for a text.
    """
    told = _read(text)
    return Told(hide(told.message), hide(told.code), told.status)


def _read(text: str) -> Told:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        lead = text.lstrip()[:15].lower()
        return Told("a web page, no model server" if lead.startswith(("<!doctype", "<html")) else text.strip())
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, dict) and "error" in value:
        return error_of(value["error"])
    return error_of(value)


def error_of(error: Any) -> Told:
    """Return what the value of an ``error`` says, whatever shape a server gives it."""
    if isinstance(error, str):
        return Told(error)
    if not isinstance(error, dict):
        return Told("")
    message = next((error[name] for name in ("message", "detail", "error", "msg") if error.get(name)), "")
    words = [str(error[name]) for name in ("code", "type", "status") if isinstance(error.get(name), str)]
    status = next((error[n] for n in ("code", "status", "status_code") if isinstance(error.get(n), int)), None)
    if not isinstance(message, str):
        message = msgspec.json.encode(message).decode()
    return Told(message, " ".join(words), status if status is not None and status >= FIRST_CLIENT_ERROR else None)


def _kind(status: int, told: Told) -> FaultKind:
    """Return the kind: what is said decides where that is sure, else the status."""
    for kind, statuses, signs, anywhere in SAID:
        text = f"{told.code} {told.message if anywhere else ''}".lower()
        if status in statuses and _any(signs, text):
            return kind
    return BY_STATUS.get(status, FaultKind.FOREIGN if status < FIRST_CLIENT_ERROR else FaultKind.BAD_REQUEST)


def _any(signs: tuple[str, ...], text: str) -> bool:
    return any(sign in text for sign in signs)
