"""One turn of a step, and at most one more that corrects its answer, each on record before it is accepted.

Rules:

- A turn that is on record is never run again: one that ended is read, one in flight is waited for. A start whose turn
  was never accepted is void.
- A loan is made for exactly the turn that does the work and ends with it. A correction is lent nothing: it is to
  answer, not to act. A loan that is refused fails the step before the turn is on record.
- An answer that is not as asked gets one correction, which is told what is wrong. The second answer counts. JSON that
  is asked for may stand in a fence, here as in a turn of an agent with a schema of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
import msgspec

from actors.answers import unfenced
from actors.errors import MailboxFull
from actors.grants import Access, Grants
from actors.messages import Limits, StopReason, TurnOrigin
from orchestrator.errors import LoanRefused
from orchestrator.journal.records import TurnAccepted
from orchestrator.journal.work import Stage, StageStarted, StepStarted
from orchestrator.loans import end_loans, lend_to
from orchestrator.workflows.outcome import Waits
from orchestrator.workflows.plan import Lend
from orchestrator.workflows.telling import correction
from orchestrator.workflows.template import ReferenceMissing

if TYPE_CHECKING:
    from orchestrator.journal.journal import Journal
    from orchestrator.member import Member
    from orchestrator.supervisor import Supervisor

__all__ = ["Done", "Place", "Task", "Turns"]


class Place(msgspec.Struct, frozen=True):
    """Which turn of a run: the step or item *key*, the stage, and for reviews and fixes the round of at most *of*."""

    key: str
    stage: Stage = Stage.WORK
    round: int = 0
    of: int = 0


@attrs.frozen
class Task:
    """What an actor is asked: the text, what is wrong with an answer, the schema it is held to, what it is lent.

    ``text`` may raise `ReferenceMissing`, which fails the task.
    """

    place: Place
    text: Callable[[], str]
    faults: Callable[[str], tuple[str, ...]]
    schema: str = ""
    lend: Lend | None = None


class Done(msgspec.Struct, frozen=True):
    """What came of a task: the last answer, and why it does not fulfil the task; empty when it does."""

    output: str
    fault: str = ""


class End(msgspec.Struct, frozen=True):
    """How a turn ended."""

    reason: StopReason
    output: str
    detail: str

    @property
    def fault(self) -> str:
        """Why the turn has no answer; empty when it has."""
        return "" if self.reason is StopReason.COMPLETED else self.detail or f"the turn ended as {self.reason.value}"


class Turns:
    """Has tasks done by actors. ``lender`` lends; ``limits`` are those of each turn."""

    def __init__(self, supervisor: Supervisor, lender: Member, limits: Limits) -> None:
        self._supervisor = supervisor
        self._lender = lender
        self._limits = limits

    @property
    def _journal(self) -> Journal:
        return self._supervisor.journal

    async def ask(self, task: Task, member: Member) -> Done:
        """Return what *member* makes of *task*, from the record as far as it is there.

        Raises `Waits` when a turn waits for a person. On cancel a turn in flight stays open.
        """
        first = end = await self._turn(task, member)
        faults = () if first.fault else task.faults(first.output)
        if faults:
            end = await self._turn(task, member, again=correction(faults, task.schema))
            faults = () if end.fault else task.faults(end.output)
        return Done(end.output or first.output, end.fault or "; ".join(faults))

    async def _turn(self, task: Task, member: Member, *, again: str = "") -> End:
        """Run the task's turn, or the correction *again*; or go on with the one that is on record."""
        turn = self._on_record(task.place, again=bool(again))
        ended = self._journal.state.step_ends.get(turn)
        if ended is not None:
            return self._end(task, ended.reason, ended.output, ended.detail)
        if not turn:
            try:
                turn = self._begin(task, member, again)
            except (ReferenceMissing, LoanRefused, MailboxFull) as refused:
                return End(StopReason.FAILED, "", str(refused))
        result = await self._supervisor.results.wait(member, turn)
        if result.stop_reason is StopReason.SUSPENDED:
            raise asyncio.CancelledError if self._supervisor.closing else Waits
        return self._end(task, result.stop_reason, result.output, "; ".join(result.diagnostics))

    def _end(self, task: Task, reason: StopReason, output: str, detail: str) -> End:
        return End(reason, unfenced(output) if task.schema else output, detail)

    def _on_record(self, place: Place, *, again: bool) -> str:
        """Return the turn that was started for *place*, or an empty text."""
        state = self._journal.state
        started: StepStarted | StageStarted | None
        if place.stage is Stage.WORK and not again:
            started = state.steps.get(place.key)
        else:
            started = state.stages.get(place.key, {}).get((place.stage, place.round, again))
        return "" if started is None else started.turn

    def _begin(self, task: Task, member: Member, again: str) -> str:
        """Lend, record and accept a turn; return its id. Nothing is on loan when it raises."""
        place, turn = task.place, self._supervisor.next_turn()
        text = again or task.text()
        if not again and task.lend is not None:
            grants = Grants(task.lend.authorities, Access.READ, task.lend.roots or ())
            lend_to(self._journal, self._lender, member, grants, turn)
        if place.stage is Stage.WORK and not again:
            self._journal.append("", StepStarted(place.key, member.path, turn))
        else:
            stage = StageStarted(place.key, place.stage, member.path, turn, place.round, place.of, bool(again))
            self._journal.append("", stage)
        try:
            return self._supervisor.accept(member, TurnAccepted(turn, text, TurnOrigin.STEP, limits=self._limits))
        except MailboxFull:
            end_loans(self._journal, member.path, turn)
            raise
