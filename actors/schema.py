"""JSON Schemas as text: canonical form, and the faults that can be seen without resolving anything.

Rules:

- Canonical text has its keys sorted and holds no blanks; equal values have equal text.
- A schema refers only to itself; nothing here opens a file or a socket.
- No depth of input can overflow the stack.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["EMPTY_SCHEMA", "canonical", "digest", "schema_faults", "struct_schema"]

MAX_SCHEMA_BYTES = 1_048_576
MAX_SCHEMA_DEPTH = 64
EMPTY_SCHEMA = '{"additionalProperties":false,"properties":{},"type":"object"}'


def schema_faults(text: str, named: set[str], *, label: str = "input_schema") -> Iterator[str]:
    """Yield what is wrong with a schema as such, without resolving anything: size, depth, references, arguments named.

    *named* are arguments that other fields of the tool speak of and the schema must declare.
    """
    if len(text) > MAX_SCHEMA_BYTES:
        yield f"{label} has {len(text)} characters; the limit is {MAX_SCHEMA_BYTES}"
        return
    try:
        schema = msgspec.json.decode(text)
    except RecursionError:
        yield f"{label} is nested more than {MAX_SCHEMA_DEPTH} deep"
        return
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        yield f"{label} is not JSON: {error}"
        return
    if not isinstance(schema, dict):
        yield f"{label} is not an object but {type(schema).__name__}"
        return
    fault = _walk(schema, label)
    if fault:
        yield fault
        return
    properties = schema.get("properties", {})
    for name in sorted(named):
        if isinstance(properties, dict) and name not in properties:
            yield f"argument {name!r} is named by targets, effect_key or idempotency_key, but not by {label}"


def _walk(schema: Any, label: str) -> str | None:
    """Return the first fault of depth or reference, iteratively: no depth of input can overflow the stack."""
    stack: list[tuple[Any, str, int]] = [(schema, "$", 0)]
    while stack:
        node, place, depth = stack.pop()
        if depth > MAX_SCHEMA_DEPTH:
            return f"{label} is nested more than {MAX_SCHEMA_DEPTH} deep at {place[:200]}"
        if isinstance(node, dict):
            reference = node.get("$ref")
            if isinstance(reference, str) and not reference.startswith("#"):
                return (
                    f"{label} refers outside itself at {place}: {reference[:200]!r}; inline the definition under $defs"
                )
            stack.extend((value, f"{place}.{key}", depth + 1) for key, value in node.items())
        elif isinstance(node, list):
            stack.extend((value, f"{place}[{index}]", depth + 1) for index, value in enumerate(node))
    return None


def canonical(value: Any) -> str:
    """Return *value* as JSON text with sorted keys and no blanks."""
    return msgspec.json.encode(value, order="sorted").decode()


def digest(text: str) -> str:
    """Return the SHA-256 of *text* in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def struct_schema(struct: type[msgspec.Struct]) -> str:
    """Return the JSON Schema of *struct* as canonical text, with shared types under ``$defs``."""
    (schema,), components = msgspec.json.schema_components((struct,), ref_template="#/$defs/{name}")
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    top = dict(components.pop(name, schema))
    top.pop("title", None)
    if components:
        top["$defs"] = components
    return canonical(top)
