"""What a person may type below a question, and the answer that it is. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from actors.text import clip, listed
from orchestrator.approver import Answer, Verdict
from orchestrator.cli.line import exact

if TYPE_CHECKING:
    from orchestrator.approver import Question

__all__ = ["CHOICE", "Again", "answer_of", "shown"]

YES = frozenset({"y", "yes"})
NO = frozenset({"n", "no"})
EDIT = frozenset({"e", "edit"})
ALWAYS = frozenset({"a", "always"})
BY = "terminal"
MAX_NAME = 64
CHOICE = (
    "y yes, n no, n REASON no with a reason, e JSON yes with these arguments instead, "
    "a FIELD... yes and so for later calls with the same FIELD, empty line: no answer"
)


class Again(Exception):
    """A line does not answer the question; the text tells why, where there is more to say than the choice."""


def shown(question: Question) -> tuple[str, ...]:
    """Return the lines that show *question*: who asks, exactly what would run, and what it is about besides."""
    first = f"{question.actor} asks to run {question.tool}: {exact(question.arguments)}"
    told = question.target and question.target not in question.arguments
    return (first, f"about: {exact(question.target)}") if told else (first,)


def answer_of(line: str, question: Question, key: str) -> Answer | None:
    """Return the answer to *question* that *line* is, and ``None`` for an empty line. Raises `Again`."""
    word, _, rest = line.strip().partition(" ")
    word, rest = word.casefold(), rest.strip()
    if not word:
        return None
    if word in YES:
        return Answer(question.approval, Verdict.APPROVE, key, BY, rest)
    if word in NO:
        return Answer(question.approval, Verdict.REJECT, key, BY, rest)
    if word in EDIT:
        _object(rest)
        return Answer(question.approval, Verdict.APPROVE, key, BY, arguments=rest)
    if word in ALWAYS:
        return Answer(question.approval, Verdict.APPROVE, key, BY, always=_fields(rest, question))
    raise Again


def _object(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        msg = f"these are no arguments ({error}); write a JSON object behind e"
        raise Again(msg) from error


def _fields(text: str, question: Question) -> tuple[str, ...]:
    fields, known = tuple(text.replace(",", " ").split()), _object(question.arguments)
    unknown = [field for field in fields if field not in known]
    if unknown or not fields:
        what = (
            f"the call has no field {clip(unknown[0], MAX_NAME)!r}"
            if unknown
            else "name the fields that must be the same"
        )
        msg = f"{what}; there are: {listed(known)}"
        raise Again(msg)
    return fields
