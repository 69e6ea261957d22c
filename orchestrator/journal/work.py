"""The records of the work itself: findings, proposed changes, long outputs, steps of a workflow."""

from __future__ import annotations

import msgspec

__all__ = ["FindingRecorded", "FixRecorded", "OutputStored", "StepFinished", "StepStarted"]


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
