"""What a strict provider refuses in a Chat Completions request: a sentence for the first fault, or nothing."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import jsonschema_rs

if TYPE_CHECKING:
    from collections.abc import Iterator

FIELDS = {"model", "messages", "stream", "stream_options", "tools", "max_tokens", "max_completion_tokens"}
NAME, CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}"), re.compile(r"[A-Za-z0-9_-]{1,40}")
AT_TOP = ("anyOf", "oneOf", "allOf", "enum", "not", "$ref")


def refusal(body: Any) -> str:
    """The first thing wrong with *body*, or an empty text."""
    return next(faults(body), "")


def faults(body: Any) -> Iterator[str]:
    """Everything wrong with *body*."""
    if not isinstance(body, dict):
        yield "the body is no object"
        return
    for name in sorted(body.keys() - FIELDS):
        yield f"Unrecognized request argument supplied: {name}"
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "you must provide a model parameter"
    if body.get("stream_options") is not None and body.get("stream") is not True:
        yield "stream_options is only allowed when stream is enabled"
    yield from tool_faults(body.get("tools"), offered="tools" in body)
    yield from message_faults(body.get("messages"))


def tool_faults(tools: Any, *, offered: bool) -> Iterator[str]:
    """Everything wrong with the tools."""
    if not offered:
        return
    if not isinstance(tools, list) or not tools:
        yield "[] is too short - 'tools'"
        return
    names = [tool["function"]["name"] for tool in tools]
    if len(set(names)) != len(names):
        yield "tool names are not unique"
    for tool in tools:
        function = tool["function"]
        if tool.keys() != {"type", "function"} or function.keys() - {"name", "description", "parameters"}:
            yield "unknown fields in a tool"
        if not NAME.fullmatch(function["name"]):
            yield f"Invalid 'tools[0].function.name': {function['name']!r}"
        schema = function["parameters"]
        if schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
            yield f"Invalid schema for function {function['name']!r}: it is not an object with properties"
        if bad := [name for name in AT_TOP if name in schema]:
            yield f"Invalid schema for function {function['name']!r}: {bad} at the top level"
        try:
            jsonschema_rs.validator_for(schema, offline=True)
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            yield f"Invalid schema for function {function['name']!r}: {error}"


def message_faults(messages: Any) -> Iterator[str]:
    """Everything wrong with the conversation."""
    if not isinstance(messages, list) or not messages:
        yield "[] is too short - 'messages'"
        return
    waiting: list[str] = []
    ids: set[str] = set()
    for place, message in enumerate(messages):
        role, where = message.get("role"), f"messages[{place}]"
        if waiting and role != "tool":
            yield f"{where}: an assistant message with 'tool_calls' must be followed by tool messages for {waiting}"
            return
        if role == "system":
            yield from () if place == 0 else (f"{where}: a system message comes first",)
            yield from blank(message, where, {"role", "content"})
        elif role == "user":
            yield from blank(message, where, {"role", "content"})
        elif role == "tool":
            yield from blank(message, where, {"role", "content", "tool_call_id"})
            if message["tool_call_id"] not in waiting:
                yield f"{where}: 'tool_call_id' {message['tool_call_id']!r} has no call directly before it"
            else:
                waiting.remove(message["tool_call_id"])
        elif role == "assistant":
            yield from assistant_faults(message, where, ids)
            waiting = [call["id"] for call in message.get("tool_calls", ())]
        else:
            yield f"{where}: the role {role!r} is none"
    if waiting:
        yield f"the calls {waiting} have no answer"
    if messages[-1]["role"] == "assistant":
        yield "the last message is the assistant's"


def blank(message: dict[str, Any], where: str, fields: set[str]) -> Iterator[str]:
    """A message's unknown fields, and its emptiness."""
    if message.keys() != fields:
        yield f"{where}: fields {sorted(message.keys() ^ fields)}"
    content = message.get("content")
    if not isinstance(content, str) or not content.strip():
        yield f"{where}: content is empty"


def assistant_faults(message: dict[str, Any], where: str, ids: set[str]) -> Iterator[str]:
    """Everything wrong with what the assistant is said to have said."""
    calls = message.get("tool_calls")
    content = message.get("content")
    if message.keys() - {"role", "content", "tool_calls"}:
        yield f"{where}: unknown fields"
    if calls is None or content is not None:
        yield from blank({"content": content}, where, {"content"})
    if calls is not None and not calls:
        yield f"{where}: [] is too short - 'tool_calls'"
    for call in calls or ():
        function = call["function"]
        if call.keys() != {"id", "type", "function"} or function.keys() != {"name", "arguments"}:
            yield f"{where}: unknown fields in a call"
        if not CALL_ID.fullmatch(call["id"]) or call["id"] in ids:
            yield f"{where}: the id {call['id']!r} is bad or was used before"
        ids.add(call["id"])
        if not NAME.fullmatch(function["name"]):
            yield f"{where}: the name {function['name']!r} does not match '^[a-zA-Z0-9_-]{{1,64}}$'"
        try:
            if not isinstance(json.loads(function["arguments"]), dict):
                yield f"{where}: the arguments are no object"
        except ValueError:
            yield f"{where}: the arguments are no JSON"
