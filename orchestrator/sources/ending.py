"""How a request to a server ended: answered, refused, or nobody knows; in the words that a call has for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from actors.errors import OutcomeUnknown, ToolFault
from actors.text import clip
from orchestrator.sources.reply import is_forgotten, status_of

if TYPE_CHECKING:
    from actors.sources import MCPSource

__all__ = ["MAX_SAID", "Gone", "ended"]

MAX_SAID = 800


class Gone(Exception):
    """The server does not know the session any more, so it did not take the request."""

    def __init__(self) -> None:
        super().__init__("it had forgotten the session")


def ended(asking: asyncio.Task[Any], source: MCPSource, why: str) -> Any:
    """Return what the request *asking*, which is done, was answered; *why* tells how its connection was lost.

    Raises `ToolFault` where the server refused it, `Gone` where it was not taken, `OutcomeUnknown` for everything else.
    """
    import anyio
    from mcp import MCPError
    from pydantic import ValidationError

    try:
        return asking.result()
    except MCPError as error:
        raise _said(error, source, why) from None
    except ValidationError as error:
        raise OutcomeUnknown(_unreadable(source, str(error))) from None
    except asyncio.CancelledError:
        why = why or "the request was given up"
    except (RuntimeError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
        why = why or f"{type(error).__name__}: {error}"
    raise OutcomeUnknown(_lost(source, why))


def _said(error: Any, source: MCPSource, why: str) -> Exception:
    """Return what an error of the protocol comes to."""
    from mcp_types import CONNECTION_CLOSED, PARSE_ERROR, REQUEST_TIMEOUT

    if source.url and is_forgotten(error):
        return Gone()
    status = status_of(error) if source.url else None
    told = clip(error.message, MAX_SAID)
    if status is None and error.code in (CONNECTION_CLOSED, REQUEST_TIMEOUT):
        return OutcomeUnknown(_lost(source, why or error.message))
    if status is None and error.code == PARSE_ERROR:
        return OutcomeUnknown(_unreadable(source, told))
    if status is None:
        return ToolFault(f"The server {source.name} refused: {told} ({error.code}).")
    if 400 <= status < 500:  # noqa: PLR2004  # the statuses that say: not taken
        return ToolFault(f"The server {source.name} refused: {told}.")
    return OutcomeUnknown(f"The server {source.name} did not say what became of it: {told}.")


def _unreadable(source: MCPSource, what: str) -> str:
    return f"The server {source.name} answered what the protocol does not allow: {clip(what, MAX_SAID)}"


def _lost(source: MCPSource, why: str) -> str:
    return f"server_lost: the server {source.name} was lost before it answered ({clip(why, MAX_SAID)})."
