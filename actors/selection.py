"""How one actor's tools are selected when there are too many to offer whole: a value, part of its definition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Selector"]

Named = tuple[tuple[str, tuple[str, ...]], ...]


def _words(words: Iterable[str]) -> tuple[str, ...]:
    if isinstance(words, str):
        msg = f"expected a collection of names, got the string {words!r}"
        raise TypeError(msg)
    return tuple(words)


@attrs.frozen
class Selector:
    """Offer the *top_k* tools that fit the turn's input best, and those always included.

    ``always_with`` pairs context fields with the tools that are included while the field is present. ``tags`` pairs
    tools with their tags, for discovery. Selection only narrows the offer: what a tool may do is decided as always.
    """

    top_k: int = 12
    always_include: tuple[str, ...] = attrs.field(default=(), converter=_words)
    always_with: Named = ()
    tags: Named = ()

    def named(self) -> frozenset[str]:
        """Return every tool that it names."""
        included = (name for _, names in self.always_with for name in names)
        return frozenset((*self.always_include, *included, *(name for name, _ in self.tags)))

    def faults(self, known: frozenset[str]) -> Iterator[str]:
        """Yield what is wrong with it; *known* are the tools of its definition."""
        if self.top_k < 0:
            yield f"the selector's top_k is {self.top_k}; give at least 0"
        for name in sorted(self.named()):
            if name not in known:
                yield f"the selector names the tool {name!r}, which the definition does not have"
