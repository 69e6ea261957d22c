"""A request of an actor as the body of a Chat Completions request. Pure.

Rules:

- Every call stands in its assistant message, its result directly behind it, in call order, under ids that are unique.
- Names of tools and ids of calls are those of the provider's edge, also for tools that are not offered any more.
- No message is empty: where strict servers refuse an empty text, a sign of emptiness stands in its place, and a reply
  that said nothing and called nothing is left out.
- Arguments of an earlier call that are no JSON object are sent as an object that quotes them.
- What nobody asked for is not sent: no tools, no limit, no temperature.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from actors.messages import ModelReply, Results, Said
from actors.naming import PROVIDER, Edge, EdgeNames
from actors.text import clean
from orchestrator.models.wire.schema import UnfitSchema

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.messages import Item, ToolCall
    from actors.ports import ModelRequest, OfferedTool

__all__ = ["CALL_ID", "Form", "Names", "body"]

CALL_ID = Edge("A-Za-z0-9_-", 40)
"""What most providers take as the id of a call."""
NOTHING = "(nothing)"
NO_RESULT = "The call has no result on record."
BROKEN = "not_a_json_object"


class Form(msgspec.Struct, frozen=True):
    """How a server wants its requests: the model's name, the field of the output limit, and what it takes.

    ``max_tokens`` is the output limit, ``None`` for none. ``counts`` asks for usage in the stream.
    """

    model: str
    limit_field: str = "max_tokens"
    max_tokens: int | None = None
    counts: bool = True
    call_ids: Edge = CALL_ID


class Names:
    """The names of one request at the provider's edge, both ways."""

    __slots__ = ("_ids", "_tools")

    def __init__(self, request: ModelRequest, call_ids: Edge) -> None:
        calls = [call for item in request.history if isinstance(item, ModelReply) for call in item.calls]
        self._tools = EdgeNames([*(tool.name for tool in request.tools), *(call.name for call in calls)], PROVIDER)
        self._ids = EdgeNames((call.id for call in calls), call_ids)

    def tool(self, name: str) -> str:
        """Return what the provider calls the tool *name*."""
        return self._tools.there(name)

    def call(self, known: str) -> str:
        """Return the id that the provider knows a call by."""
        return self._ids.there(known)

    def canonical(self, name: str) -> str:
        """Return the tool that the provider calls *name*; a name that is none of them stays what it is."""
        back = self._tools.back(name)
        return name if back is None else back


def body(request: ModelRequest, names: Names, form: Form, fit: Callable[[str], str]) -> bytes:
    """Return the body; *fit* makes a tool's schema what the provider takes. Raises `UnfitSchema`, naming the tool."""
    fields: dict[str, Any] = {
        "model": form.model,
        "messages": messages(request.instructions, request.history, names),
        "stream": True,
    }
    if form.counts:
        fields["stream_options"] = {"include_usage": True}
    if form.max_tokens is not None:
        fields[form.limit_field] = form.max_tokens
    if request.tools:
        fields["tools"] = [_tool(tool, names, fit) for tool in request.tools]
    return msgspec.json.encode(fields)


def _tool(tool: OfferedTool, names: Names, fit: Callable[[str], str]) -> dict[str, Any]:
    try:
        schema = msgspec.Raw(fit(tool.input_schema).encode())
    except UnfitSchema as error:
        raise UnfitSchema(f"the schema of the tool {tool.name!r} is unfit: {error.reason}") from None
    function = {"name": names.tool(tool.name), "description": clean(tool.description), "parameters": schema}
    return {"type": "function", "function": function}


def messages(instructions: str, history: tuple[Item, ...], names: Names) -> list[dict[str, Any]]:
    """Return the whole conversation as messages."""
    made: list[dict[str, Any]] = []
    if instructions.strip():
        made.append({"role": "system", "content": clean(instructions)})
    for place, item in enumerate(history):
        if isinstance(item, Said):
            made.append({"role": "user", "content": _full(item.text)})
        elif isinstance(item, ModelReply) and item.calls:
            made.append(_calling(item, names))
            follows = history[place + 1] if place + 1 < len(history) else None
            made += _answers(item.calls, follows if isinstance(follows, Results) else Results(()), names)
        elif isinstance(item, ModelReply) and item.text.strip():
            made.append({"role": "assistant", "content": item.text})
    return made


def _calling(reply: ModelReply, names: Names) -> dict[str, Any]:
    calls = [
        {
            "id": names.call(call.id),
            "type": "function",
            "function": {"name": names.tool(call.name), "arguments": _arguments(call.arguments)},
        }
        for call in reply.calls
    ]
    return {"role": "assistant", "content": reply.text if reply.text.strip() else None, "tool_calls": calls}


def _answers(calls: tuple[ToolCall, ...], results: Results, names: Names) -> list[dict[str, Any]]:
    texts = {result.call_id: result.text for result in results.results}
    return [
        {"role": "tool", "tool_call_id": names.call(call.id), "content": _full(texts.get(call.id, NO_RESULT))}
        for call in calls
    ]


def _full(text: str) -> str:
    return clean(text) if text.strip() else NOTHING


def _arguments(text: str) -> str:
    """Return *text* if it is a JSON object, else an object that quotes it."""
    try:
        if isinstance(msgspec.json.decode(text), dict):
            return text
    except (ValueError, RecursionError):
        pass
    return msgspec.json.encode({BROKEN: text}).decode()
