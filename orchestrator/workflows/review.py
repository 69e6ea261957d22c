"""What follows in the review of a step from what its reviewer and its fixer have said so far. Pure.

Rules:

- A round is one review and, where it wants changes and is not the last, the fixes it asks for.
- ``accepted`` ends the review well, ``rejected`` ends it badly at once, and so does the last round.
- A finding keeps its id in every round. After a review it is *open*; the fixer makes it *fixed* or *declined*; a review
  that names it again opens it again, and one that does not takes the fixer's word. A ``note`` is never open.
- At each moment every finding has exactly one state.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import msgspec

from actors.text import clip
from orchestrator.journal.work import FixesRecorded, ReviewFinding, ReviewRecorded, Severity, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Item", "ItemState", "Move", "Next", "next_move", "open_items", "remaining", "revised", "worklist"]

MAX_NAMED = 10
MAX_FINDING = 200


class ItemState(enum.StrEnum):
    """Where a finding stands."""

    OPEN = "open"
    FIXED = "fixed"
    DECLINED = "declined"
    NOTE = "note"


class Item(msgspec.Struct, frozen=True):
    """A finding in the worklist: as it was last worded, its state, and the fixer's last word on it."""

    finding: ReviewFinding
    state: ItemState
    reason: str


class Move(enum.Enum):
    """What is next in the review of a step."""

    REVIEW = enum.auto()
    FIX = enum.auto()
    DONE = enum.auto()
    FAILED = enum.auto()


class Next(msgspec.Struct, frozen=True):
    """The next move and the round it belongs to."""

    move: Move
    round: int


def next_move(past: Sequence[ReviewRecorded | FixesRecorded], max_rounds: int) -> Next:
    """Return what follows *past*, the records of one step's review in order. After DONE and FAILED nothing follows."""
    if not past:
        return Next(Move.REVIEW, 1)
    last = past[-1]
    if isinstance(last, FixesRecorded):
        return Next(Move.REVIEW, last.round + 1)
    if last.verdict is Verdict.ACCEPTED:
        return Next(Move.DONE, last.round)
    if last.verdict is Verdict.REJECTED or last.round >= max_rounds:
        return Next(Move.FAILED, last.round)
    return Next(Move.FIX, last.round)


def worklist(past: Sequence[ReviewRecorded | FixesRecorded]) -> tuple[Item, ...]:
    """Return every finding of *past* with its state, in the order in which they were first named."""
    items: dict[str, Item] = {}
    for record in past:
        if isinstance(record, ReviewRecorded):
            for finding in record.findings:
                items[finding.id] = _named(finding, items.get(finding.id))
        else:
            for answer in record.answers:
                state = ItemState.FIXED if answer.fixed else ItemState.DECLINED
                items[answer.id] = Item(items[answer.id].finding, state, answer.reason)
    return tuple(items.values())


def _named(finding: ReviewFinding, known: Item | None) -> Item:
    """Return the item of a finding that a review names, for the first time or again."""
    reason = "" if known is None else known.reason
    if finding.severity is not Severity.NOTE:
        return Item(finding, ItemState.OPEN, reason)
    if known is not None and known.state in (ItemState.FIXED, ItemState.DECLINED):
        return Item(finding, known.state, reason)
    return Item(finding, ItemState.NOTE, reason)


def open_items(past: Sequence[ReviewRecorded | FixesRecorded]) -> tuple[Item, ...]:
    """Return what the fixer has to answer now."""
    return tuple(item for item in worklist(past) if item.state is ItemState.OPEN)


def revised(past: Sequence[ReviewRecorded | FixesRecorded], output: str) -> str:
    """Return the step's output as the last fix that changed it left it; *output* is that of the step's own turn."""
    for record in past:
        if isinstance(record, FixesRecorded) and record.output is not None:
            output = record.output
    return output


def remaining(past: Sequence[ReviewRecorded | FixesRecorded]) -> str:
    """Return the open findings as bounded text for the failure of a step."""
    left = open_items(past)
    named = "; ".join(
        clip(f"{f.id} ({f.severity.value}{f', {f.place}' if f.place else ''}): {f.message}", MAX_FINDING)
        for f in (item.finding for item in left[:MAX_NAMED])
    )
    more = f"; and {len(left) - MAX_NAMED} more" if len(left) > MAX_NAMED else ""
    count = f"{len(left)} finding{'s' if len(left) != 1 else ''} remain{'' if len(left) != 1 else 's'}"
    return f"{count}: {named}{more}" if left else "no finding remains"
