"""The records of the work itself: findings, proposed changes, long outputs, steps of a workflow and their reviews."""

from __future__ import annotations

import enum

import msgspec

__all__ = [
    "FindingRecorded",
    "FixAnswer",
    "FixRecorded",
    "FixesRecorded",
    "OutputStored",
    "ReviewFinding",
    "ReviewRecorded",
    "Severity",
    "Stage",
    "StageStarted",
    "StepFinished",
    "StepStarted",
    "Verdict",
    "WorkRecord",
]


class Stage(enum.StrEnum):
    """What a turn of a step is for: the work itself, a review of it, or the fixes that a review asked for."""

    WORK = "work"
    REVIEW = "review"
    FIX = "fix"


class Verdict(enum.StrEnum):
    """What a reviewer says of a step: it is done, it is to be fixed, or no fix will do."""

    ACCEPTED = "accepted"
    CHANGES_WANTED = "changes_wanted"
    REJECTED = "rejected"


class Severity(enum.StrEnum):
    """How much a finding weighs. A ``note`` is a remark: nobody has to fix it."""

    BLOCKER = "blocker"
    MAJOR = "major"
    MINOR = "minor"
    NOTE = "note"


class FindingRecorded(msgspec.Struct, frozen=True, omit_defaults=True, tag="finding_recorded"):
    """An actor recorded a finding or its verdict on one."""

    number: int
    subject: str
    message: str
    place: str = ""
    verdict: str = "open"


class FixRecorded(msgspec.Struct, frozen=True, omit_defaults=True, tag="fix_recorded"):
    """An actor proposed a change, as a unified diff."""

    number: int
    path: str
    diff: str
    reason: str = ""


class OutputStored(msgspec.Struct, frozen=True, tag="output_stored"):
    """A tool output too long for the model, readable by the entry's actor under *handle*."""

    handle: str
    text: str


class StepStarted(msgspec.Struct, frozen=True, tag="step_started"):
    """A workflow step, or one item of it, runs as *turn* of the actor *by*."""

    key: str
    by: str
    turn: str


class StepFinished(msgspec.Struct, frozen=True, omit_defaults=True, tag="step_finished"):
    """A workflow step, or one item of it, is over."""

    key: str
    ok: bool
    output: str
    detail: str = ""


class StageStarted(msgspec.Struct, frozen=True, omit_defaults=True, tag="stage_started"):
    """A turn of a step other than its first: a correction of an answer (*again*), a review, or fixes.

    It runs as *turn* of the actor *by*; an empty *turn* takes a start back whose turn was never accepted. *round*
    counts the step's reviews from 1, of which there are at most *of*; both are 0 for the work itself.
    """

    key: str
    stage: Stage
    by: str
    turn: str
    round: int = 0
    of: int = 0
    again: bool = False


class ReviewFinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that a reviewer found; *id* names it in every round of its step."""

    id: str
    place: str
    severity: Severity
    message: str
    suggestion: str = ""


class ReviewRecorded(msgspec.Struct, frozen=True, omit_defaults=True, tag="review_recorded"):
    """The reviewer *by* gave its verdict on a step in round *round* of at most *of*."""

    key: str
    round: int
    of: int
    by: str
    verdict: Verdict
    findings: tuple[ReviewFinding, ...] = ()
    summary: str = ""


class FixAnswer(msgspec.Struct, frozen=True):
    """What a fixer did about one finding: *fixed*, or declined to; and how, or why not."""

    id: str
    fixed: bool
    reason: str


class FixesRecorded(msgspec.Struct, frozen=True, omit_defaults=True, tag="fixes_recorded"):
    """The fixer *by* answered every item of the worklist of round *round*.

    *output* is the step's output as the fixes have made it; ``None`` when they left it alone.
    """

    key: str
    round: int
    by: str
    answers: tuple[FixAnswer, ...]
    output: str | None = None


WorkRecord = (
    FindingRecorded
    | FixRecorded
    | OutputStored
    | StepStarted
    | StepFinished
    | StageStarted
    | ReviewRecorded
    | FixesRecorded
)
