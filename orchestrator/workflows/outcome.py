"""What became of a run and of its steps."""

from __future__ import annotations

from typing import Any

import msgspec

from orchestrator.workflows.answers import decoded

__all__ = ["StepOutcome", "Waits", "WorkflowResult"]


class StepOutcome(msgspec.Struct, frozen=True):
    """What became of a step, or of one item of it: *output* is text, JSON where the step has a schema."""

    key: str
    ok: bool
    output: str
    detail: str = ""


class Waits(Exception):  # it is no error
    """A step's turn waits for a person."""


class WorkflowResult(msgspec.Struct, frozen=True):
    """What became of a run: whether every foreground step succeeded, and each step's outcome in file order.

    ``waiting`` are the approvals that open steps wait for; the run goes on when it is resumed after an answer.
    """

    ok: bool
    outcomes: tuple[StepOutcome, ...]
    waiting: tuple[str, ...] = ()

    def output(self, step: str) -> Any:
        """Return the output of *step*, decoded where it is JSON. Raises KeyError for a step that did not succeed."""
        for outcome in self.outcomes:
            if outcome.key == step and outcome.ok:
                return decoded(outcome.output)
        raise KeyError(step)
