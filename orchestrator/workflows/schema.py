"""JSON Schemas of step outputs: from YAML nodes to canonical JSON, and asked what a path leads to.

A scalar in a schema is read as JSON reads it: ``true``, ``false``, ``null`` and JSON numbers when written
plain, text otherwise; so ``on``, ``1_000`` and dates are text. Nothing is ever fetched for a ``$ref``.
"""

from __future__ import annotations

import json
import math
import re
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from orchestrator.validators import UnusableSchema, compile_schema
from orchestrator.workflows.document import Mapping, Node, Scalar, Sequence

if TYPE_CHECKING:
    from orchestrator.workflows.fault import FaultLog, Mark

__all__ = ["Finding", "JSONValue", "canonical", "find", "is_array", "read_schema"]

JSONValue: TypeAlias = "bool | int | float | str | list[JSONValue] | dict[str, JSONValue] | None"

NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
MAX_DIGITS = 64
MAX_REFERENCES = 16
OPEN_KEYS = frozenset({"allOf", "anyOf", "oneOf", "if", "patternProperties", "additionalProperties", "$dynamicRef"})


class Finding(Enum):
    """What a schema says of a path when it says no more: it cannot be there, or it may be anything."""

    NOWHERE = "nowhere"
    ANYTHING = "anything"


def canonical(value: JSONValue) -> str:
    """Return the one JSON text of *value*: keys sorted, no spaces."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def read_schema(node: Mapping, faults: FaultLog) -> dict[str, JSONValue]:
    """Return *node* as a schema; what makes it invalid goes to *faults*, at its own place."""
    schema = {name.text: value_of(value, faults) for name, value in node.pairs}
    path, message = schema_fault(schema)
    if message:
        mark = mark_of(node, path)
        faults.add(mark, f"this is not a valid JSON Schema: {message}", "Correct the schema; all of it must be here.")
    return schema


def value_of(node: Node, faults: FaultLog) -> JSONValue:
    """Return *node* as the JSON value that it is written as."""
    if isinstance(node, Mapping):
        return {name.text: value_of(value, faults) for name, value in node.pairs}
    if isinstance(node, Sequence):
        return [value_of(item, faults) for item in node.items]
    if not node.plain:
        return node.text
    if node.text in WORDS:
        return WORDS[node.text]
    if not node.text:
        faults.add(node.mark, "this key of the schema has no value", "Give a value; write null for JSON's null.")
        return None
    return number_of(node, faults) if NUMBER.fullmatch(node.text) else node.text


def number_of(node: Scalar, faults: FaultLog) -> JSONValue:
    """Return the number that *node* is written as, or its text when no JSON reader would keep it."""
    if len(node.text) <= MAX_DIGITS:
        if node.text.lstrip("-").isdigit():
            return int(node.text)
        if math.isfinite(number := float(node.text)):
            return number
    faults.add(node.mark, f"the number {node.text[:20]}… is too large", "Quote it if it is meant as text.")
    return node.text


def schema_fault(schema: dict[str, JSONValue]) -> tuple[tuple[str, ...], str]:
    """Return where in *schema* it is not valid and why, or an empty reason."""
    try:
        compile_schema(canonical(schema))
    except UnusableSchema as error:
        return error.path, error.message
    return (), ""


def mark_of(node: Node, path: tuple[str, ...]) -> Mark:
    """Return where the value stands that *path* leads to, as far as it leads."""
    for key in path:
        if isinstance(node, Mapping) and (below := node.get(key)):
            node = below
        elif isinstance(node, Sequence) and key.isdigit() and int(key) < len(node.items):
            node = node.items[int(key)]
        else:
            break
    return node.mark


def find(schema: JSONValue, path: tuple[str, ...]) -> dict[str, JSONValue] | Finding:
    """Return the schema of what *path* leads to in a value of *schema*.

    A key that the schema lists no property for is :attr:`Finding.NOWHERE`, though JSON Schema would let it
    be there: in a plan it is a slip of the pen.
    """
    here = follow(schema, schema)
    for key in path:
        if isinstance(here, Finding):
            return here
        below = step_into(here, key)
        here = below if isinstance(below, Finding) else follow(schema, below)
    return here


def follow(top: JSONValue, schema: JSONValue) -> dict[str, JSONValue] | Finding:
    """Return *schema* with its local ``$ref`` followed."""
    for _ in range(MAX_REFERENCES):
        if not isinstance(schema, dict):
            return Finding.NOWHERE if schema is False else Finding.ANYTHING
        reference = schema.get("$ref")
        if reference is None:
            return schema
        if not isinstance(reference, str) or not reference.startswith("#"):
            return Finding.ANYTHING
        schema = top
        for key in reference.removeprefix("#").split("/")[1:]:
            schema = schema.get(key.replace("~1", "/").replace("~0", "~")) if isinstance(schema, dict) else None
    return Finding.ANYTHING


def step_into(schema: dict[str, JSONValue], key: str) -> JSONValue | Finding:
    """Return what *schema* says of its member *key*."""
    kinds = schema.get("type")
    properties = schema.get("properties")
    if isinstance(properties, dict) and key in properties:
        return properties[key]
    if is_array(schema) and key.isdigit():
        return schema.get("items", True)
    if any(schema.get(name, False) is not False for name in OPEN_KEYS):
        return Finding.ANYTHING
    if isinstance(properties, dict) or schema.get("additionalProperties") is False:
        return Finding.NOWHERE
    if kinds is None or kinds == "object" or isinstance(kinds, list):
        return Finding.ANYTHING
    return Finding.NOWHERE


def is_array(schema: dict[str, JSONValue]) -> bool:
    """Tell whether *schema* says plainly that its value is an array."""
    return schema.get("type") in ("array", ["array"])
