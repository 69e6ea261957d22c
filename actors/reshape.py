"""An argument transform, as data: arguments that are filled in, and arguments under another name. Pure.

A reshaped tool shows its caller an *outer* schema; the tool itself gets the *inner* arguments. What is filled in is no
part of the outer schema, so no caller can give it another value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import msgspec

from actors.schema import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["Reshape"]

Pairs = tuple[tuple[str, str], ...]


def _pairs(pairs: Iterable[tuple[str, str]] | Mapping[str, str]) -> Pairs:
    items = pairs.items() if hasattr(pairs, "items") else pairs
    return tuple((name, value) for name, value in items)


@attrs.frozen
class Reshape:
    """*fixed* pairs inner arguments with the JSON text of their values, *renamed* outer names with inner ones."""

    fixed: Pairs = attrs.field(default=(), converter=_pairs)
    renamed: Pairs = attrs.field(default=(), converter=_pairs)

    def faults(self, inner_schema: str) -> Iterator[str]:
        """Yield what is wrong with it for a tool whose own schema is *inner_schema*."""
        properties = msgspec.json.decode(inner_schema).get("properties", {})
        inner = [name for name, _ in self.fixed] + [name for _, name in self.renamed]
        for name in inner:
            if name not in properties:
                yield f"the transform names the argument {name!r}, which the tool does not have"
            if inner.count(name) > 1:
                yield f"the transform names the argument {name!r} twice"
        taken = set(properties) - set(inner)
        for outer, _ in self.renamed:
            if outer in taken:
                yield f"the transform calls two arguments {outer!r}"
            taken.add(outer)
        for name, text in self.fixed:
            try:
                msgspec.json.decode(text)
            except (msgspec.DecodeError, RecursionError):
                yield f"the value of {name!r} is not JSON: {text[:80]!r}"

    def outer(self, inner_schema: str) -> str:
        """Return the schema that callers are shown."""
        schema = msgspec.json.decode(inner_schema)
        gone, names = {name for name, _ in self.fixed}, {inner: outer for outer, inner in self.renamed}
        properties = schema.get("properties", {})
        schema["properties"] = {names.get(name, name): value for name, value in properties.items() if name not in gone}
        required = [names.get(name, name) for name in schema.get("required", ()) if name not in gone]
        schema.pop("required", None)
        if required:
            schema["required"] = required
        schema["additionalProperties"] = False
        return canonical(schema)

    def inner(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that the tool gets for those that a caller gave."""
        names = dict(self.renamed)
        given = {names.get(name, name): value for name, value in arguments.items()}
        return given | {name: msgspec.json.decode(text) for name, text in self.fixed}
