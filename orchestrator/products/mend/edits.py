"""From a linter's edits to a unified diff. Pure: text in, text out.

Fixes whose edits overlap are not combined: the first by place is taken, the others are left for another run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.products.mend.linter import Edit, Finding, Position

__all__ = ["apply_fixes"]

Span = tuple[int, int, str]


def apply_fixes(text: str, findings: Iterable[Finding]) -> tuple[str, tuple[Finding, ...]]:
    """Return *text* with the fixes of *findings* applied, and the findings whose fixes were."""
    starts = _line_starts(text)
    taken: list[Span] = []
    done: list[Finding] = []
    for finding in sorted(findings, key=lambda f: (f.location.row, f.location.column)):
        spans = [] if finding.fix is None else [_span(edit, starts, text) for edit in finding.fix.edits]
        if not spans or any(_overlap(span, other) for span in spans for other in taken):
            continue
        taken.extend(spans)
        done.append(finding)
    for begin, end, content in sorted(taken, reverse=True):
        text = text[:begin] + content + text[end:]
    return text, tuple(done)


def _line_starts(text: str) -> list[int]:
    starts = [0]
    starts.extend(index + 1 for index, character in enumerate(text) if character == "\n")
    return starts


def _offset(place: Position, starts: list[int], text: str) -> int:
    if place.row > len(starts):
        return len(text)
    return min(len(text), starts[place.row - 1] + place.column - 1)


def _span(edit: Edit, starts: list[int], text: str) -> Span:
    return _offset(edit.location, starts, text), _offset(edit.end_location, starts, text), edit.content


def _overlap(left: Span, right: Span) -> bool:
    """Tell whether two edits touch the same characters, or insert at the same place."""
    return left[0] <= right[1] and right[0] <= left[1]
