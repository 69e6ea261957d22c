"""Names at an edge: legal there, unique, stable, and mapped back byte for byte. Pure.

Rules:

- A name that is legal at the edge stays what it is. Any other is shortened to what is legal in it, with a digest of the
  whole name behind it, so its edge name depends on nothing but itself.
- Where that still clashes with another name of the set, the digest grows. The order of the set changes nothing.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CANONICAL", "PROVIDER", "Edge", "EdgeNames"]

DIGEST_SHOWN = 8


@attrs.frozen
class Edge:
    """What names are legal somewhere: *letters* is the inside of a character class, *limit* counts characters."""

    letters: str
    limit: int

    def legal(self, name: str) -> bool:
        """Tell whether *name* can stand at this edge as it is."""
        return re.fullmatch(f"[{self.letters}]{{1,{self.limit}}}", name) is not None

    def name(self, name: str, shown: int = DIGEST_SHOWN) -> str:
        """Return the edge name of *name*; *shown* digits of its digest stand behind one that is not legal."""
        if self.legal(name):
            return name
        plain = re.sub(f"[^{self.letters}]+", "_", name).strip("_")[: self.limit - shown - 1]
        mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:shown]
        return f"{plain}_{mark}" if plain else f"n{mark}"


CANONICAL = Edge("A-Za-z0-9._-", 128)
"""What a definition calls a tool."""

PROVIDER = Edge("A-Za-z0-9_-", 64)
"""What a model provider takes as the name of a function."""


class EdgeNames:
    """The names of one set at one edge, both ways."""

    __slots__ = ("_back", "_there")

    def __init__(self, names: Iterable[str], edge: Edge) -> None:
        self._there: dict[str, str] = {}
        self._back: dict[str, str] = {}
        for name in sorted(set(names), key=lambda each: (not edge.legal(each), each)):
            shown = DIGEST_SHOWN
            while (there := edge.name(name, shown)) in self._back:
                shown += 1
            self._there[name] = there
            self._back[there] = name

    def there(self, name: str) -> str:
        """Return the edge name of *name*, which is of the set. Raises KeyError."""
        return self._there[name]

    def back(self, there: str) -> str | None:
        """Return the name whose edge name is *there*, or ``None``."""
        return self._back.get(there)
