"""What an earlier process left between two records of a run, put right before the run goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from orchestrator.loans import end_loans

if TYPE_CHECKING:
    from orchestrator.journal.journal import Journal
    from orchestrator.journal.work import StageStarted, StepStarted
    from orchestrator.workflows.company import Company
    from orchestrator.workflows.plan import Plan

__all__ = ["clear"]


def clear(journal: Journal, company: Company, plan: Plan) -> None:
    """End loans whose turn is not open, take starts back whose turn was never accepted, let items' actors go.

    A start that is taken back frees the id of its turn, which the next start uses again.
    """
    state = journal.state
    for borrower, loans in tuple(state.borrowed.items()):
        for turn in {state.loans[loan].until for loan in loans}:
            if state.actors[borrower].accepted(turn) is None:
                end_loans(journal, borrower, turn)
    starts: tuple[StepStarted | StageStarted, ...] = (
        *state.steps.values(),
        *(stage for stages in state.stages.values() for stage in stages.values()),
    )
    for started in starts:
        over = started.key in state.finished_steps or started.turn in state.step_ends
        if started.turn and not over and state.actors[started.by].accepted(started.turn) is None:
            journal.append("", replace(started, turn=""))
    steps = {step.id: step for step in plan.steps}
    for key in tuple(state.finished_steps):
        company.release(steps[key.partition("[")[0]], key)
