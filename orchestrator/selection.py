"""Which tools to offer when a catalog is too large to offer whole. Pure, and deterministic.

Rules:

- Reach and decision come before ranking: a candidate that would be refused is never ranked, and never offered because
  a list says so.
- What is selected is a part of what the decision offers, in the definition's order: never wider than the manifest.
- Intrinsic tools are not candidates: whoever selects puts them beside what was selected.
- Equal scores fall back on the definition's order, so an empty intent selects the first *top_k*.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING

import attrs

from actors.intrinsics import INTRINSIC
from actors.messages import Denial

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from actors.selection import Selector
    from orchestrator.facts import Verdict
    from orchestrator.registry import Registered

__all__ = ["Candidate", "Chosen", "candidates_of", "choose", "cosine", "select"]

WORD = re.compile(r"[^\W_]+")


def _names(names: Iterable[str]) -> frozenset[str]:
    if isinstance(names, str):
        msg = f"expected a collection of names, got the string {names!r}"
        raise TypeError(msg)
    return frozenset(names)


@attrs.frozen
class Candidate:
    """One tool that may be selected: its text to rank by, its tags, and whether the decision offers it now."""

    name: str
    text: str
    offered: bool
    tags: frozenset[str] = attrs.field(default=frozenset(), converter=_names)


@attrs.frozen
class Chosen:
    """What was selected and what was not: ``names`` to offer, ``left_out`` by ranking, ``refused`` by the decision."""

    names: tuple[str, ...]
    left_out: tuple[str, ...]
    refused: tuple[str, ...]


def candidates_of(
    catalog: Sequence[tuple[Registered, Verdict]], tags: Mapping[str, Iterable[str]] | None = None
) -> tuple[Candidate, ...]:
    """Return the candidates of a capability's ``catalog()``; *tags* are those of each tool by name."""
    known = tags or {}
    return tuple(
        Candidate(
            item.tool.name,
            f"{item.tool.name} {item.tool.description}",
            offered=not isinstance(verdict, Denial),
            tags=known.get(item.tool.name, ()),
        )
        for item, verdict in catalog
        if item.tool.source != INTRINSIC
    )


def select(
    candidates: Sequence[Candidate],
    intent: str,
    *,
    top_k: int,
    always_include: Iterable[str] = (),
    tags: Iterable[str] = (),
) -> Chosen:
    """Return the candidates to offer for *intent*: those always included, and the *top_k* most alike of the others.

    *tags*, when any are given, leaves only candidates with one of them to be ranked. A tool always included does not
    count against *top_k*, and is not offered either when the decision refuses it. Raises ValueError for a negative
    *top_k*.
    """
    if top_k < 0:
        msg = f"top_k is {top_k}; give at least 0"
        raise ValueError(msg)
    wanted, tagged = _names(always_include), _names(tags)
    reachable = [candidate for candidate in candidates if candidate.offered]
    ranked = [each for each in reachable if each.name not in wanted and (not tagged or tagged & each.tags)]
    scores = _scores(intent, reachable)
    best = sorted(range(len(ranked)), key=lambda place: (-scores[ranked[place].name], place))[:top_k]
    picked = {ranked[place].name for place in best} | wanted
    return Chosen(
        names=tuple(each.name for each in reachable if each.name in picked),
        left_out=tuple(each.name for each in reachable if each.name not in picked),
        refused=tuple(each.name for each in candidates if not each.offered),
    )


def choose(
    selector: Selector,
    catalog: Sequence[tuple[Registered, Verdict]],
    intent: str,
    context: frozenset[str] = frozenset(),
) -> Chosen:
    """Select from a capability's ``catalog()`` for *intent*, with the *context* fields that are present."""
    more = (name for field, names in selector.always_with if field in context for name in names)
    always = (*selector.always_include, *more)
    candidates = candidates_of(catalog, dict(selector.tags))
    return select(candidates, intent, top_k=selector.top_k, always_include=always)


def cosine(left: Sequence[float], right: Sequence[float]) -> float:
    """Return how alike two vectors are, from -1 to 1. Vectors that cannot be compared are 0.0 alike: never an error.

    Those are vectors of different lengths, empty ones, and ones without a finite length above 0.
    """
    if len(left) != len(right) or not left:
        return 0.0
    size = math.hypot(*left) * math.hypot(*right)
    if not (math.isfinite(size) and size > 0):
        return 0.0
    return sum(a * b for a, b in zip(left, right, strict=True)) / size


def _words(text: str) -> Counter[str]:
    return Counter(WORD.findall(text.lower()))


def _scores(intent: str, candidates: Sequence[Candidate]) -> dict[str, float]:
    """Return how alike each candidate's text is to *intent*; a word weighs less the more candidates have it."""
    bags = {candidate.name: _words(candidate.text) for candidate in candidates}
    asked = _words(intent)
    held = Counter(word for bag in bags.values() for word in bag)
    weight = {word: math.log1p(len(bags) / (1 + held[word])) for word in asked | held}
    found: dict[str, float] = {}
    for name, bag in bags.items():
        words = sorted(asked.keys() | bag.keys())
        left, right = ([each[word] * weight[word] for word in words] for each in (asked, bag))
        found[name] = cosine(left, right)
    return found
