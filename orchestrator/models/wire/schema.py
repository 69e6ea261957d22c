"""A tool's JSON Schema as a provider takes it: an object at the top, with properties, and no combinator there. Pure.

Rules:

- What comes out accepts the same objects as what went in; where that cannot be, `UnfitSchema` says why.
- A ``$ref`` or ``allOf`` at the top is merged into it. Of an ``anyOf`` or ``oneOf`` there, branches that no object fits
  are dropped, and one that is left is merged. More than one, and ``enum``, ``const`` or ``not``, are unfit.
- ``$defs`` stay, and so does recursion. References to the top itself go to a copy of it under ``$defs``.
- ``$schema`` is dropped where no keyword means something else in another draft; ``$id`` at the top with it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from actors.schema import canonical, schema_faults
from orchestrator.models.wire.pointer import lookup, references, rewritten

__all__ = ["UnfitSchema", "fit_schema"]

MAX_MERGES = 64
NOTES = frozenset({"title", "description", "$comment", "examples", "default", "deprecated", "readOnly", "writeOnly"})
SHELVES = ("$defs", "definitions")
NOISE = frozenset({"$schema", "$id", "id"})
CLOSING = frozenset({"additionalProperties", "unevaluatedProperties", "patternProperties"})
BRANCHES = ("anyOf", "oneOf")
FORBIDDEN = ("anyOf", "oneOf", "enum", "const", "not")
OF_A_DRAFT = frozenset(
    {"additionalItems", "dependencies", "$recursiveRef", "$recursiveAnchor", "divisibleBy", "extends"}
)
CONDITIONS = frozenset({"then", "else"})
TOP = "top"

Schema = dict[str, Any]


class UnfitSchema(ValueError):
    """No provider takes the schema, and no equal one; *reason* says what stands in the way."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def fit_schema(text: str) -> str:
    """Return the JSON Schema *text* as a provider takes it, as canonical text. Raises `UnfitSchema`."""
    fault = next(schema_faults(text, set(), label="the schema"), None)
    if fault is not None:
        raise UnfitSchema(fault)
    schema: Schema = msgspec.json.decode(text)
    if any(lookup(schema, name) is None for name in references(schema)):
        missing = next(name for name in references(schema) if lookup(schema, name) is None)
        raise UnfitSchema(f"it refers to {missing!r}, which it does not hold")
    top = _merged(schema, schema, 0)
    for name in FORBIDDEN:
        if name in top:
            raise UnfitSchema(f"its top level has {name!r}, which providers refuse; declare one object with properties")
    top = _object(top)
    shelves = {name: schema[name] for name in SHELVES if isinstance(schema.get(name), dict)}
    keep = {} if _same_in_every_draft(schema) else {"$schema": schema["$schema"]}
    return canonical(_settled(schema, {**keep, **top, **shelves}))


def _merged(schema: Schema, root: Schema, depth: int) -> Schema:
    """Return *schema* without ``$ref``, ``allOf`` and branches that no object fits, as one level."""
    if depth > MAX_MERGES:
        raise UnfitSchema("its top level refers to itself without end")
    top = {key: value for key, value in schema.items() if key not in NOISE and key not in SHELVES}
    members: list[Any] = []
    if "$ref" in top:
        members.append(lookup(root, top.pop("$ref")))
        top = {} if _ignores_siblings(root) else top
    members += top.pop("allOf", ())
    for name in BRANCHES:
        if name in top:
            fitting = [branch for branch in top[name] if _fits_objects(branch, root, depth)]
            if not fitting:
                raise UnfitSchema(f"no object fits any branch of its {name!r}")
            if len(fitting) == 1:
                members += fitting
                del top[name]
    for member in members:
        if member is False:
            raise UnfitSchema("nothing fits it")
        if member is not True:
            top = _both(top, _merged(member, root, depth + 1))
    return top


def _ignores_siblings(root: Schema) -> bool:
    """Tell whether the draft of *root* is one in which nothing beside a ``$ref`` counts."""
    return any(draft in str(root.get("$schema", "")) for draft in ("draft-03", "draft-04", "draft-06", "draft-07"))


def _fits_objects(branch: Any, root: Schema, depth: int) -> bool:
    """Tell whether an object may fit *branch*; a doubt counts as yes."""
    while isinstance(branch, dict) and "$ref" in branch and "type" not in branch and depth < MAX_MERGES:
        branch, depth = lookup(root, branch["$ref"]), depth + 1
    if not isinstance(branch, dict):
        return bool(branch)
    kinds = branch.get("type", "object")
    values = branch.get("enum", [branch["const"]] if "const" in branch else None)
    fits = kinds == "object" or (isinstance(kinds, list) and "object" in kinds)
    return fits and (values is None or any(isinstance(value, dict) for value in values))


def _both(one: Schema, other: Schema) -> Schema:
    """Return one level that an object fits exactly if it fits both *one* and *other*."""
    for closed, open_ in ((one, other), (other, one)):
        more = set(open_.get("properties", ())) - set(closed.get("properties", ()))
        if CLOSING & closed.keys() and (more or CLOSING & open_.keys()):
            raise UnfitSchema("parts of its top level close it to each other's properties")
    merged = {**other, **one}
    if "properties" in one and "properties" in other:
        theirs, ours = other["properties"], one["properties"]
        twice = {name: {"allOf": [ours[name], theirs[name]]} for name in ours if name in theirs}
        merged["properties"] = {**theirs, **ours, **{n: ours[n] if ours[n] == theirs[n] else twice[n] for n in twice}}
    if "required" in one and "required" in other:
        merged["required"] = sorted({*one["required"], *other["required"]})
    if not ("object" in _kinds(one) and "object" in _kinds(other)):
        raise UnfitSchema("no object fits every part of its top level")
    merged["type"] = "object"
    if any(
        "if" in here and "if" not in there and CONDITIONS & there.keys() for here, there in ((one, other), (other, one))
    ):
        raise UnfitSchema("parts of its top level would change each other's conditions")
    settled = NOTES | {"properties", "required", "type"}
    clash = sorted(k for k in one.keys() & other.keys() - settled if one[k] != other[k])
    if clash:
        raise UnfitSchema(f"parts of its top level differ in {clash[0]!r}")
    return merged


def _kinds(schema: Schema) -> list[str]:
    kinds = schema.get("type", "object")
    return kinds if isinstance(kinds, list) else [kinds]


def _object(top: Schema) -> Schema:
    """Return *top* as what it is for objects alone; arguments are never anything else."""
    if "object" not in _kinds(top):
        raise UnfitSchema(f"it takes {top['type']!r}, and arguments are always an object")
    properties = top.get("properties", {})
    if not isinstance(properties, dict):
        raise UnfitSchema("its 'properties' are no object")
    return {**top, "type": "object", "properties": properties}


def _settled(schema: Schema, result: Schema) -> Schema:
    """Return *result* with every reference leading to what it led to in *schema*."""
    plain = {key: value for key, value in schema.items() if key not in NOISE}
    moved = sorted({name for name in references(result) if lookup(result, name) != lookup(plain, name)})
    if not moved:
        return result
    shelf = result.setdefault("$defs", {})
    place = TOP
    while place in shelf:
        place += "_"
    old = {key: value for key, value in plain.items() if key not in SHELVES}
    shelf = {**shelf, place: old}
    names = {name: f"#/$defs/{place}{name[1:]}" for name in moved}
    done = rewritten({**result, "$defs": shelf}, names)
    assert isinstance(done, dict)
    if any(lookup(done, name) is None for name in references(done)):
        raise UnfitSchema("its references lead to its top level, which had to be changed")
    return done


def _same_in_every_draft(schema: Schema) -> bool:
    """Tell whether dropping ``$schema`` changes nothing."""
    draft = str(schema.get("$schema", ""))
    if not draft or "2020-12" in draft:
        return True
    stack: list[Any] = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack.extend(node)
        elif isinstance(node, dict):
            beside_ref = "$ref" in node and len(node) > 1 and node is not schema
            flags = any(isinstance(node.get(name), bool) for name in ("exclusiveMinimum", "exclusiveMaximum"))
            if beside_ref or flags or OF_A_DRAFT & node.keys() or isinstance(node.get("items"), list):
                return False
            stack.extend(node.values())
    return True
