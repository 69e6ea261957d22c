"""The words of rights in a file: an access, an approval, authorities; what is none is a fault at its own place."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from actors.grants import AUTHORITY
from orchestrator.workflows.section import nearest

if TYPE_CHECKING:
    import enum

    from orchestrator.workflows.section import Section

    Kind = TypeVar("Kind", bound=enum.StrEnum)

__all__ = ["read_authorities", "read_one_of"]


def read_one_of(section: Section, key: str, kind: type[Kind]) -> Kind | None:
    """Return the member of *kind* at *key*, or ``None`` when there is none that can be read."""
    word = section.scalar(key)
    if word is None:
        return None
    if word.text not in set(kind):
        section.faults.add(word.mark, f"there is no {key} {word.text!r}", nearest(word.text, map(str, kind)))
        return None
    return kind(word.text)


def read_authorities(section: Section, *, held: bool) -> frozenset[str]:
    """Return the authorities at ``authorities``; only those that are *held*, not asked for, may end in ``.*``."""
    names = []
    for word in section.words("authorities"):
        if AUTHORITY.fullmatch(word.text) and (held or not word.text.endswith(".*")):
            names.append(word.text)
        else:
            remedy = "Write it like workspace.write, in lower case."
            section.faults.add(word.mark, f"{word.text[:60]!r} is not an authority", remedy)
    return frozenset(names)
