"""Chunks to one reply. Pure.

Rules:

- Text, reasoning and arguments are joined as they come; arguments are never repaired, and never parsed here.
- Pieces of a call belong together by index. A new id at an index in use, with a name, begins another call; so does a
  piece without an index that has a new id. A name that is sent again with each piece is one name.
- Counts are cumulative: the last value wins, a missing one keeps the earlier, nothing is ever added up.
- A reply is whole once a finish reason or the end mark has come. Without either it is cut.
- Half surrogate pairs wait for their other half, so that every piece of text given out is text.
- A reply that the server's filter stopped runs nothing: its calls may have been cut anywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.messages import ModelReply, ReplyStop, ToolCall, Usage
from actors.text import clean

if TYPE_CHECKING:
    from orchestrator.models.wire.chunk import CallPiece, Choice, Chunk, Counts, Piece

__all__ = ["Assembly"]

STOPS = {
    "length": ReplyStop.LENGTH,
    "max_tokens": ReplyStop.LENGTH,
    "model_length": ReplyStop.LENGTH,
    "content_filter": ReplyStop.REFUSED,
    "refusal": ReplyStop.REFUSED,
}
FAILED = "error"
MAX_NAME = 4096
"""Letters of a call's name that are kept: what is longer names no tool."""


class PartialCall:
    """A call as far as it has come."""

    __slots__ = ("arguments", "id", "name", "order")

    def __init__(self, order: int) -> None:
        self.order = order
        self.id = ""
        self.name = ""
        self.arguments: list[str] | None = None

    def take(self, piece: CallPiece) -> None:
        """Add *piece*."""
        if piece.id:
            self.id = piece.id
        function = piece.function
        if function is None:
            return
        if function.name and function.name != self.name and len(self.name) < MAX_NAME:
            self.name = (self.name + function.name)[:MAX_NAME]
        if function.arguments is not None:
            if self.arguments is None:
                self.arguments = []
            self.arguments.append(function.arguments)

    def call(self) -> ToolCall:
        """Return the call. One for which no arguments were sent at all has none; an empty text stays one."""
        return ToolCall(self.id, self.name, "{}" if self.arguments is None else "".join(self.arguments))


class Assembly:
    """One reply in the making. ``whole`` once it is known to be complete, ``failed`` when its server says it is not."""

    __slots__ = (
        "_calls",
        "_counts",
        "_free",
        "_half",
        "_latest",
        "_reasoning",
        "_refusal",
        "_text",
        "begun",
        "finish",
        "whole",
    )

    def __init__(self) -> None:
        self._text: list[str] = []
        self._half = ""
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[PartialCall] = []
        self._latest: dict[int, PartialCall] = {}
        self._counts = [0, 0, 0]
        self._free = 0
        self.finish = ""
        self.begun = False
        self.whole = False

    @property
    def failed(self) -> bool:
        """Whether the server named an error as the reason to stop."""
        return self.finish == FAILED

    def take(self, chunk: Chunk) -> str:
        """Add *chunk*; return the text that it adds, mostly a piece, often none."""
        if chunk.usage is not None:
            self._count(chunk.usage)
        added = ""
        for choice in chunk.choices or ():
            if not choice.index:
                added += self._choose(choice)
        return added

    def flush(self) -> str:
        """The stream is over: return text that is still due, which is rare."""
        if not self._half:
            return ""
        text, self._half = clean(self._half), ""
        self._text.append(text)
        return text

    def reply(self, requests: int = 1) -> ModelReply:
        """Return the reply as it stands."""
        text, stop = "".join(self._text), STOPS.get(self.finish, ReplyStop.END)
        calls = tuple(call.call() for call in sorted(self._calls, key=lambda call: call.order))
        if self._refusal:
            stop = ReplyStop.REFUSED
            text = text or clean("".join(self._refusal))
        if stop is ReplyStop.REFUSED:
            calls = ()
        elif calls and stop is ReplyStop.END:
            stop = ReplyStop.TOOL_CALLS
        spent, cached, given = self._counts
        return ModelReply(text, calls, stop, Usage(spent, cached, given, requests), clean("".join(self._reasoning)))

    def _choose(self, choice: Choice) -> str:
        self.begun = True
        if choice.finish_reason:
            self.finish = choice.finish_reason
            self.whole = True
        piece = choice.delta or choice.message
        return self._add(piece) if piece is not None else ""

    def _add(self, piece: Piece) -> str:
        thought = piece.reasoning_content or piece.reasoning
        if thought:
            self._reasoning.append(thought)
        if piece.refusal:
            self._refusal.append(piece.refusal)
        for call in piece.tool_calls or ():
            self._part(call).take(call)
        content = piece.content
        if not content:
            return ""
        return self._say(content if isinstance(content, str) else "".join(part.text or "" for part in content))

    def _part(self, piece: CallPiece) -> PartialCall:
        """Return the call that *piece* belongs to, a new one where it belongs to none."""
        index = piece.index
        if index is None:
            known = self._calls[-1] if self._calls else None
            another = known is not None and bool(piece.id) and piece.id != known.id
        else:
            known = self._latest.get(index)
            named = piece.function is not None and piece.function.name
            another = known is not None and bool(named and piece.id and known.id) and piece.id != known.id
        if known is None or another:
            known = PartialCall(self._free if another or index is None else index)
            self._free = max(self._free, known.order + 1)
            self._calls.append(known)
            if index is not None:
                self._latest[index] = known
        return known

    def _say(self, text: str) -> str:
        if self._half:
            text, self._half = self._half + text, ""
        if not text.isascii():
            if "\ud800" <= text[-1] <= "\udbff":
                text, self._half = text[:-1], text[-1]
            text = clean(text)
        self._text.append(text)
        return text

    def _count(self, counts: Counts) -> None:
        for place, number in enumerate((counts.prompt_tokens, counts.cached, counts.completion_tokens)):
            if number is not None:
                self._counts[place] = max(0, number)
