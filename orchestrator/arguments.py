"""A call's arguments: decoded once, before the decision, never guessed at.

Text that is not JSON, not an object, too large, or against the schema is a fault with its place. Nothing is repaired.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from actors.schema import digest
from actors.text import clip
from orchestrator.facts import ArgumentFault

if TYPE_CHECKING:
    from actors.tools import Tool

__all__ = ["Parsed", "canonical_arguments", "effect_key", "parse"]

MAX_ARGUMENT_BYTES = 4 * 1024 * 1024
MAX_ECHO = 200
MAX_KEY = 256
CUT = "a complete JSON object (the text ends early: the output limit may have cut it, so send less in one call)"

Parsed = tuple[dict[str, Any] | None, ArgumentFault | None]
EMPTY: dict[str, Any] = {}


def parse(text: str, validator: Any) -> Parsed:
    """Return the decoded arguments, or the first fault found in them."""
    if len(text) > MAX_ARGUMENT_BYTES:
        return None, ArgumentFault("$", f"at most {MAX_ARGUMENT_BYTES} characters", str(len(text)))
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        return None, _syntax_fault(text, error)
    if type(value) is not dict:
        return None, ArgumentFault("$", "a JSON object", _echo(value))
    try:
        if validator.is_valid(value):
            return value, None
        return None, _schema_fault(next(iter(validator.iter_errors(value))))
    except (ValueError, RecursionError) as error:
        return None, ArgumentFault("$", "arguments that can be checked", str(error)[:MAX_ECHO])


def _syntax_fault(text: str, error: Exception) -> ArgumentFault:
    """Say where *text* stops being JSON."""
    try:
        json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as found:
        if found.pos >= len(text.rstrip()) or found.msg.startswith("Unterminated string"):
            return ArgumentFault(f"character {found.pos}", CUT, _clip(text))
        return ArgumentFault(f"character {found.pos}", f"JSON ({found.msg})", _clip(text))
    except (RecursionError, ValueError) as found:
        return ArgumentFault("$", f"JSON ({str(found) or type(found).__name__})", _clip(text))
    if "number out of range" in str(error).lower():
        return ArgumentFault("$", "numbers in range", _clip(text))
    return ArgumentFault("$", "text without half surrogate pairs", _clip(text))


def _no_constant(name: str) -> Any:
    msg = f"{name} is not JSON"
    raise ValueError(msg)


def _schema_fault(error: Any) -> ArgumentFault:
    place = "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)
    place, kind = clip(place, MAX_ECHO), error.kind
    name = kind.name
    if name == "required":
        return ArgumentFault(place, f"the property {clip(kind.property, MAX_ECHO)!r}", "none")
    if name == "type":
        return ArgumentFault(place, f"type {' or '.join(kind.types)}", _echo(error.instance))
    if name in ("additionalProperties", "unevaluatedProperties"):
        return ArgumentFault(place, "only declared properties", ", ".join(map(repr, kind.unexpected))[:MAX_ECHO])
    return ArgumentFault(place, str(error.message)[:MAX_ECHO], _echo(error.instance))


def _echo(value: Any) -> str:
    return _clip(msgspec.json.encode(value).decode())


def _clip(text: str) -> str:
    clean = text.encode("utf-8", "replace").decode()
    return clean if len(clean) <= MAX_ECHO else f"{clean[:MAX_ECHO]}… ({len(text)} characters)"


def canonical_arguments(arguments: dict[str, Any]) -> str:
    """Return *arguments* as text in which key order and blanks make no difference."""
    return msgspec.json.encode(arguments, order="sorted").decode()


def effect_key(tool: Tool, arguments: dict[str, Any]) -> str:
    """Return what makes two calls of *tool* the same effect: the arguments it names, by default all of them."""
    if tool.effect_key is not None:
        arguments = {name: arguments.get(name) for name in tool.effect_key}
    text = canonical_arguments(arguments)
    return f"{tool.name}:{text if len(text) <= MAX_KEY else digest(text)}"
