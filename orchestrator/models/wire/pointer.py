"""References inside a JSON Schema: where they stand, where they lead, and leading them elsewhere. Pure.

Only places that hold schemas are looked at: what stands in an example or a constant is a value, not a reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["lookup", "references", "rewritten"]

VALUES = frozenset({"const", "default", "enum", "example", "examples"})
BY_NAME = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions", "dependencies"})


def references(schema: Any) -> list[str]:
    """Return every ``$ref`` of *schema*, each once."""
    found: dict[str, None] = {}
    stack: list[tuple[Any, bool]] = [(schema, False)]
    while stack:
        node, named = stack.pop()
        if isinstance(node, list):
            stack.extend((inner, False) for inner in node)
        elif isinstance(node, dict):
            if not named and isinstance(node.get("$ref"), str):
                found[node["$ref"]] = None
            stack.extend(
                (inner, key in BY_NAME and not named) for key, inner in node.items() if named or key not in VALUES
            )
    return list(found)


def lookup(schema: Any, reference: str) -> Any:
    """Return what *reference* leads to in *schema*, or ``None``."""
    pointer = unquote(reference.removeprefix("#"))
    if pointer and not pointer.startswith("/"):
        return _anchored(schema, pointer)
    node = schema
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and key in node:
            node = node[key]
        elif isinstance(node, list) and key.isdecimal() and int(key) < len(node):
            node = node[int(key)]
        else:
            return None
    return node if isinstance(node, dict | bool) else None


def _anchored(schema: Any, anchor: str) -> Any:
    stack = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            if node.get("$anchor") == anchor:
                return node
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return None


def rewritten(schema: Any, names: Mapping[str, str], *, named: bool = False) -> Any:
    """Return *schema* with every ``$ref`` that *names* has led elsewhere."""
    if isinstance(schema, list):
        return [rewritten(inner, names) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    done = {}
    for key, inner in schema.items():
        if key == "$ref" and not named and isinstance(inner, str):
            done[key] = names.get(inner, inner)
        elif key in VALUES and not named:
            done[key] = inner
        else:
            done[key] = rewritten(inner, names, named=key in BY_NAME and not named)
    return done
