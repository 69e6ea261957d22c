"""What the actors of steps, reviewers, fixers, and whoever has to answer again are told: bounded text. Pure.

A step's schema stands behind its prompt, after a fixed line; `bare` takes it off again. The last line of what a
reviewer or a fixer is told is one JSON object with everything it is to judge or to mend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from actors.answers import ASKED, CORRECTION
from actors.answers import correction as corrected
from actors.text import clip
from orchestrator.workflows.answers import FIXES, REVIEW
from orchestrator.workflows.review import Item, ItemState
from orchestrator.workflows.schema import canonical

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CORRECTION", "Case", "bare", "correction", "fix_text", "review_text", "step_text"]

MAX_ASKED = 20_000
MAX_ANSWER = 100_000
MAX_SETTLED = 200
MAX_SCHEMA = 8_000
TOLD = f"\n\n{ASKED}"
REVIEWING = """Review of step {key!r}, round {round} of {of}.{prompt}
Judge the answer against what was asked, and look at what it speaks of yourself. "accepted": nothing is left to fix.
"changes_wanted": the findings can be fixed; a fixer gets those that are more than a note. "rejected": no fix will do,
and the step fails. A finding of an earlier round that is still open keeps its id; one that you do not name again is
settled. Where there is an "output_schema", the answer satisfies it, and has to go on doing so.
{asked}{schema}
What to review, as JSON:
{data}"""
FIXING = """Fixes for step {key!r}, round {round} of {of}.
Mend what the findings name, and nothing else. Say for each of them whether it is fixed, or that you decline and why.
Where the fix changes the answer itself, give the whole new one as "output": JSON that satisfies "output_schema" where
there is one, text otherwise. Leave it out where the answer stays as it is.
{asked}{schema}
What to fix, as JSON:
{data}"""


class Case(msgspec.Struct, frozen=True):
    """What is reviewed: the step's key, what was asked, what more the reviewer is to look at, the answer's schema."""

    key: str
    asked: str
    prompt: str = ""
    schema: str = ""


def step_text(prompt: str, schema: str) -> str:
    """Return what the actor of a step is told: *prompt*, and the schema of its answer where there is one.

    A schema that is too long to be told is said to be so; a correction then names what is wrong.
    """
    if not schema:
        return prompt
    shown = schema if len(schema) <= MAX_SCHEMA else f"(too long to be shown: {len(schema)} characters)"
    return f"{prompt}{TOLD}{shown}"


def bare(text: str) -> str:
    """Return the prompt in *text*, which `step_text` may have put a schema behind."""
    prompt, told, _ = text.rpartition(TOLD)
    return prompt if told else text


def review_text(case: Case, number: int, of: int, answer: str, items: Sequence[Item]) -> str:
    """Return what a reviewer is told in round *number* about *answer* and the findings so far."""
    data = _data(case, number, of, answer) | {"findings": [_item(item) for item in items]}
    prompt = f"\n{clip(case.prompt, MAX_ASKED)}" if case.prompt else ""
    return REVIEWING.format(
        key=case.key, round=number, of=of, prompt=prompt, asked=ASKED, schema=REVIEW, data=canonical(data)
    )


def fix_text(case: Case, number: int, of: int, answer: str, items: Sequence[Item]) -> str:
    """Return what a fixer is told: the worklist *items*, all of them open."""
    data = _data(case, number, of, answer) | {"worklist": [_item(item) for item in items]}
    return FIXING.format(key=case.key, round=number, of=of, asked=ASKED, schema=FIXES, data=canonical(data))


def correction(faults: Sequence[str], schema: str) -> str:
    """Return what an actor is told whose answer has *faults*; a schema that is too long for this is left out."""
    shown = f"\nThis is the schema:\n{schema}" if len(schema) <= MAX_SCHEMA else ""
    return f"{corrected('; '.join(faults))} Nothing else is to be done in this turn.{shown}"


def _data(case: Case, number: int, of: int, answer: str) -> dict[str, Any]:
    data = {
        "step": case.key,
        "round": number,
        "of": of,
        "asked": clip(case.asked, MAX_ASKED),
        "answer": clip(answer, MAX_ANSWER),
    }
    return data | {"output_schema": msgspec.json.decode(case.schema)} if 0 < len(case.schema) <= MAX_SCHEMA else data


def _item(item: Item) -> dict[str, Any]:
    """Return a finding with its state; one that is settled in short."""
    finding, open_ = item.finding, item.state is ItemState.OPEN
    shown: dict[str, Any] = {
        "id": finding.id,
        "place": finding.place,
        "severity": finding.severity.value,
        "state": item.state.value,
        "message": finding.message if open_ else clip(finding.message, MAX_SETTLED),
    }
    if open_ and finding.suggestion:
        shown["suggestion"] = finding.suggestion
    if item.reason:
        shown["reason"] = clip(item.reason, MAX_SETTLED)
    return shown
