"""What an answer is held to: a step's own schema, and the two that the engine owns, for reviewers and fixers. Pure.

`REVIEW` is the shape of every reviewer's answer, `FIXES` of every fixer's. What a schema cannot say is checked beside
it: an id is given once, ``accepted`` leaves nothing to fix, ``changes_wanted`` names something to fix, and a fixer
answers exactly the items it was given.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from actors.text import clip
from orchestrator.journal.work import FixAnswer, ReviewFinding, Severity, Verdict
from orchestrator.validators import MAX_FAULT, MAX_FAULTS, answer_faults, value_faults
from orchestrator.workflows.schema import JSONValue, canonical

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "FIXES",
    "REVIEW",
    "FixesAnswer",
    "ReviewAnswer",
    "decoded",
    "fixes_faults",
    "read_fixes",
    "read_review",
    "review_faults",
]

MAX_FINDINGS = 50


def _text(limit: int, least: int = 0) -> dict[str, JSONValue]:
    return {"type": "string", "minLength": least, "maxLength": limit}


def _object(properties: dict[str, JSONValue], *optional: str) -> dict[str, JSONValue]:
    required: list[JSONValue] = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _list(items: dict[str, JSONValue]) -> dict[str, JSONValue]:
    return {"type": "array", "items": items, "maxItems": MAX_FINDINGS}


ID: dict[str, JSONValue] = {"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,64}$"}
REVIEW = canonical(
    _object(
        {
            "verdict": {"enum": [verdict.value for verdict in Verdict]},
            "summary": _text(2000),
            "findings": _list(
                _object(
                    {
                        "id": ID,
                        "place": _text(300),
                        "severity": {"enum": [severity.value for severity in Severity]},
                        "message": _text(1000, 1),
                        "suggestion": _text(4000),
                    },
                    "suggestion",
                )
            ),
        },
        "summary",
    )
)
FIXES = canonical(
    _object(
        {
            "items": _list(_object({"id": ID, "state": {"enum": ["fixed", "declined"]}, "reason": _text(1000, 1)})),
            "output": True,
        },
        "output",
    )
)


class ReviewAnswer(msgspec.Struct, frozen=True):
    """A reviewer's answer, checked."""

    verdict: Verdict
    findings: tuple[ReviewFinding, ...]
    summary: str = ""


class FixesAnswer(msgspec.Struct, frozen=True):
    """A fixer's answer, checked. *output* is the step's revised output, ``None`` when it stays as it is."""

    answers: tuple[FixAnswer, ...]
    output: str | None


def decoded(output: str) -> Any:
    """Return *output* as the JSON value it is, or as the text it is."""
    try:
        return msgspec.json.decode(output)
    except (ValueError, RecursionError):
        return output


def review_faults(output: str) -> tuple[str, ...]:
    """Return why *output* is no review; none when it is."""
    faults = answer_faults(REVIEW, output)
    if faults:
        return faults
    answer = read_review(output)
    found = list(_twice(finding.id for finding in answer.findings))
    wanted = [finding.id for finding in answer.findings if finding.severity is not Severity.NOTE]
    if answer.verdict is Verdict.ACCEPTED and wanted:
        found.append(f"the verdict is 'accepted', and these findings are more than a note: {', '.join(wanted[:10])}")
    if answer.verdict is not Verdict.ACCEPTED and not wanted:
        found.append(f"the verdict is {answer.verdict.value!r}, and no finding is more than a note")
    return tuple(found[:MAX_FAULTS])


def fixes_faults(ids: tuple[str, ...], schema: str, output: str) -> tuple[str, ...]:
    """Return why *output* is no answer to the items *ids* of a step whose output has *schema*; none when it is."""
    faults = answer_faults(FIXES, output)
    if faults:
        return faults
    answer = msgspec.json.decode(output)
    given = [item["id"] for item in answer["items"]]
    found = list(_twice(given))
    found += [f"items: {name!r} has no answer" for name in ids if name not in given]
    found += [f"items: {name!r} is not in the worklist" for name in given if name not in ids]
    if "output" in answer and not schema and not isinstance(answer["output"], str):
        found.append("output: the step's output is text, and this is not")
    elif "output" in answer and schema:
        found += [f"output: {fault}" for fault in value_faults(schema, answer["output"])]
    return tuple(clip(fault, MAX_FAULT) for fault in found[:MAX_FAULTS])


def _twice(ids: Iterable[str]) -> Iterable[str]:
    return (f"the id {name!r} is given {times} times" for name, times in Counter(ids).items() if times > 1)


def read_review(output: str) -> ReviewAnswer:
    """Return the review in *output*, which has no fault of its schema."""
    return msgspec.json.decode(output, type=ReviewAnswer)


def read_fixes(output: str, schema: str) -> FixesAnswer:
    """Return the fixer's answer in *output*, which has no fault; *schema* is that of the step's output."""
    answer = msgspec.json.decode(output, type=dict[str, msgspec.Raw])
    items = msgspec.json.decode(answer["items"])
    answers = tuple(FixAnswer(item["id"], item["state"] == "fixed", item["reason"]) for item in items)
    value = answer.get("output")
    if value is None:
        return FixesAnswer(answers, None)
    return FixesAnswer(answers, bytes(value).decode() if schema else msgspec.json.decode(value))
