"""Call ids that are unique in a whole history. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from actors.messages import ToolCall

if TYPE_CHECKING:
    from actors.messages import ModelReply

__all__ = ["with_unique_ids"]


def with_unique_ids(reply: ModelReply, known: frozenset[str], step: str) -> tuple[ModelReply, frozenset[str]]:
    """Keep the provider's ids where they are unique among *known*; name the other calls by *step* and place.

    Returns the reply and the ids known after it.
    """
    ids = set(known)
    calls: list[ToolCall] = []
    for place, call in enumerate(reply.calls):
        own = call.id
        if not own or own in ids:
            own = f"{step}.{place + 1}"
            while own in ids:
                own += "x"
        ids.add(own)
        calls.append(call if own == call.id else ToolCall(own, call.name, call.arguments))
    return replace(reply, calls=tuple(calls)), frozenset(ids)
