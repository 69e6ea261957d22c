"""Questions about who needs whom. Pure; an edge leads from a name to the names it needs."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["find_cycles", "upstream"]

MAX_CYCLES = 20


def find_cycles(needs: Mapping[str, tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Return cycles of *needs*, each as names that need the next, from one name back to it; at most twenty.

    Together they touch every name that is on a cycle, unless there are more than that.
    """
    edges = {name: list(needed) for name, needed in needs.items()}
    found: list[tuple[str, ...]] = []
    while len(found) < MAX_CYCLES:
        try:
            TopologicalSorter(edges).prepare()
        except CycleError as error:
            cycle = tuple(reversed(error.args[1]))
            found.append(cycle)
            edges[cycle[0]].remove(cycle[1])
        else:
            break
    return tuple(found)


def upstream(name: str, needs: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """Return every name that *name* needs, directly or through others."""
    seen: set[str] = set()
    pending = list(needs.get(name, ()))
    while pending:
        each = pending.pop()
        if each not in seen:
            seen.add(each)
            pending.extend(needs.get(each, ()))
    return frozenset(seen)
