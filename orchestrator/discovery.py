"""Looking for tools in the snapshot of one turn: filters, and references that go stale. Pure.

Rules:

- A snapshot holds the actor's own catalog with the turn's verdicts, and nothing of any other actor.
- Its digest is that of the tools' declarations and tags. A reference carries the digest it was made under, so that a
  reference from before a rebuild is refused, never answered with another tool of the same name.
- Faults are `ToolFault`: an answer to the model, with a ``code``.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

import attrs

from actors.errors import ToolFault
from actors.schema import canonical, digest
from orchestrator.facts import code_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from orchestrator.facts import Verdict
    from orchestrator.registry import Registered

__all__ = ["FILTERS", "Entry", "Snapshot", "StaleRegistry", "UnknownFilter", "UnknownModule", "discover", "find"]

DIGEST_SHOWN = 16


class UnknownFilter(ToolFault):
    """A filter that there is not; ``name`` is the one that was asked for."""

    code = "discovery_filter_unknown"

    def __init__(self, name: str) -> None:
        self.name = name
        shown = name[:64]
        super().__init__(f"There is no filter {shown!r}.", remedy=f"Filter by: {', '.join(FILTERS)}.")


class StaleRegistry(ToolFault):
    """A reference made under another registry than the turn's; ``reference`` is as it was given."""

    code = "stale_registry"

    def __init__(self, reference: str) -> None:
        self.reference = reference
        message = f"The reference {reference[:160]!r} was made under another set of tools."
        super().__init__(message, remedy="Discover again and use the new reference.")


class UnknownModule(ToolFault):
    """A reference to no tool of the snapshot; ``reference`` is as it was given."""

    code = "unknown_tool"

    def __init__(self, reference: str, known: Iterable[str]) -> None:
        self.reference = reference
        close = difflib.get_close_matches(reference.partition("@")[0][:128], list(known), n=3)
        remedy = f"Close names you have: {', '.join(close)}." if close else "Discover what you have."
        super().__init__(f"You have no tool {reference[:160]!r}.", remedy=remedy)


@attrs.frozen
class Entry:
    """One tool as discovery shows it: ``reference`` is what later calls name it by."""

    name: str
    reference: str
    description: str
    access: str
    verdict: str
    tags: tuple[str, ...] = ()


@attrs.frozen
class Snapshot:
    """The catalog of one actor in one turn. ``digest`` changes with any declaration or tag, not with a verdict."""

    digest: str
    entries: tuple[Entry, ...]

    @classmethod
    def of(
        cls, catalog: Sequence[tuple[Registered, Verdict]], tags: Mapping[str, Iterable[str]] | None = None
    ) -> Snapshot:
        """Take the snapshot of a capability's ``catalog()``; *tags* are those of each tool by name."""
        known = {name: tuple(sorted(each)) for name, each in (tags or {}).items()}
        declared: list[Any] = [[item.tool.declaration(), known.get(item.tool.name, ())] for item, _ in catalog]
        seal = digest(canonical(declared))
        entries = tuple(
            Entry(
                item.tool.name,
                f"{item.tool.name}@{seal[:DIGEST_SHOWN]}",
                item.tool.description,
                item.tool.access.value,
                code_of(verdict) or "permitted",
                known.get(item.tool.name, ()),
            )
            for item, verdict in sorted(catalog, key=lambda each: each[0].tool.name)
        )
        return cls(seal, entries)


def _says(entry: Entry, text: str) -> bool:
    return text.lower() in f"{entry.name}\n{entry.description}".lower()


FILTERS: dict[str, Callable[[Entry, str], bool]] = {
    "name": lambda entry, value: entry.name == value,
    "text": _says,
    "access": lambda entry, value: entry.access == value,
    "tag": lambda entry, value: value in entry.tags,
    "verdict": lambda entry, value: entry.verdict == value,
}


def discover(snapshot: Snapshot, filters: Mapping[str, str] | None = None) -> tuple[Entry, ...]:
    """Return the entries that pass every filter, by name; a denied tool is among them, with its code.

    Raises `UnknownFilter` before anything is looked at.
    """
    asked = filters or {}
    for name in sorted(asked):
        if name not in FILTERS:
            raise UnknownFilter(name)
    return tuple(entry for entry in snapshot.entries if all(FILTERS[key](entry, asked[key]) for key in asked))


def find(snapshot: Snapshot, reference: str) -> Entry:
    """Return the entry that *reference* (``name@digest``) names. Raises `StaleRegistry` or `UnknownModule`."""
    name, _, seal = reference.partition("@")
    if seal != snapshot.digest[:DIGEST_SHOWN]:
        raise StaleRegistry(reference)
    for entry in snapshot.entries:
        if entry.name == name:
            return entry
    raise UnknownModule(reference, (entry.name for entry in snapshot.entries))
