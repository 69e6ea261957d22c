"""What the records of the work do to a session's state, pure: findings, changes, outputs, steps and their reviews."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from orchestrator.journal.work import (
    FindingRecorded,
    FixesRecorded,
    FixRecorded,
    OutputStored,
    ReviewRecorded,
    StageStarted,
    StepFinished,
    StepStarted,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from orchestrator.journal.state import SessionState

__all__ = ["WORK"]


def _finding(state: SessionState, path: str, record: FindingRecorded) -> None:
    state.findings.append((path, record))


def _fix(state: SessionState, path: str, record: FixRecorded) -> None:
    state.fixes.append((path, record))


def _stored(state: SessionState, path: str, record: OutputStored) -> None:
    state.outputs[record.handle] = (path, record.text)


def _step(state: SessionState, _: str, record: StepStarted) -> None:
    state.steps[record.key] = record


def _stage(state: SessionState, _: str, record: StageStarted) -> None:
    state.stages.setdefault(record.key, {})[record.stage, record.round, record.again] = record


def _round(state: SessionState, _: str, record: ReviewRecorded | FixesRecorded) -> None:
    state.rounds.setdefault(record.key, []).append(record)


def _step_finished(state: SessionState, _: str, record: StepFinished) -> None:
    state.finished_steps[record.key] = record
    started = state.steps.get(record.key)
    if started is not None:
        state.step_ends.pop(started.turn, None)
    for stage in state.stages.get(record.key, {}).values():
        state.step_ends.pop(stage.turn, None)


WORK: Mapping[type, Callable[[SessionState, str, Any], None]] = MappingProxyType(
    {
        FindingRecorded: _finding,
        FixRecorded: _fix,
        OutputStored: _stored,
        StepStarted: _step,
        StepFinished: _step_finished,
        StageStarted: _stage,
        ReviewRecorded: _round,
        FixesRecorded: _round,
    }
)
