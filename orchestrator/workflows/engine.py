"""The engine: runs a plan's steps as soon as what they need is done, each in an actor, each outcome on record.

Rules:

- An agent of the plan has one actor, a child of the session's root, for all its steps. The items of a ``for_each`` are
  children of that actor, at most ``max_concurrent`` at once.
- A step is on record before its turn is accepted and after it has ended, so a resumed run does again nothing that
  finished, waits for what is in flight, and starts what never began. A start whose turn was never accepted is void.
- A step that fails fails what needs it. A *background* step's failure is told and does not fail the run, which waits
  for it; only what needs the output that is not there fails with it.
- What a step is lent ends with its turn. A loan that is refused fails the step before anything of it is on record.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from actors.errors import MailboxFull
from actors.grants import Access, Grants
from actors.messages import Limits, StopReason, TurnOrigin
from orchestrator.errors import LoanRefused
from orchestrator.journal.records import TurnAccepted
from orchestrator.journal.work import StepFinished, StepStarted
from orchestrator.loans import end_loans, lend_to
from orchestrator.workflows.plan import ready
from orchestrator.workflows.schema import output_faults
from orchestrator.workflows.template import ReferenceMissing, render, select

if TYPE_CHECKING:
    from collections.abc import Mapping

    from actors.definition import AgentDefinition
    from orchestrator.journal.journal import Journal
    from orchestrator.member import Member
    from orchestrator.registry import Registry
    from orchestrator.supervisor import Supervisor
    from orchestrator.workflows.plan import Plan, Step

__all__ = ["Engine", "StepOutcome", "WorkflowResult"]

SKIPPED = "a step that it needs has failed: "
MAX_SHOWN = 300


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


class Engine:
    """Runs *plan* in a live session. ``definitions`` are the plan's agents by name."""

    def __init__(
        self,
        plan: Plan,
        definitions: Mapping[str, AgentDefinition],
        supervisor: Supervisor,
        registry: Registry,
        root: Member,
        limits: Limits | None = None,
    ) -> None:
        self._plan = plan
        self._definitions = definitions
        self._supervisor = supervisor
        self._registry = registry
        self._root = root
        self._limits = limits or Limits()
        self._outputs: dict[str, Any] = {}
        self._owners: dict[str, Member] = {}
        self._turns: dict[str, asyncio.Lock] = {}

    @property
    def _journal(self) -> Journal:
        return self._supervisor.journal

    async def run(self) -> WorkflowResult:
        """Run every step that can run and return what became of each. On cancel the steps in flight stay open.

        Steps that wait for a person, and what needs them, are left open as well: the result names the approvals.
        """
        self._clear()
        outcomes: dict[str, StepOutcome] = {}
        running: dict[str, asyncio.Task[StepOutcome]] = {}
        waiting: set[str] = set()
        try:
            while len(outcomes) < len(self._plan.steps):
                for step in ready(self._plan, outcomes, running.keys() | waiting):
                    failed = [need for need in step.needs if not outcomes[need].ok]
                    if failed:
                        outcomes[step.id] = self._fail(step.id, SKIPPED + ", ".join(failed))
                    else:
                        running[step.id] = asyncio.create_task(self._step(step), name=f"step {step.id}")
                if running:
                    done, _ = await asyncio.wait(running.values(), return_when=asyncio.FIRST_COMPLETED)
                    for name in [name for name, task in running.items() if task in done]:
                        try:
                            outcomes[name] = running.pop(name).result()
                        except Waits:
                            waiting.add(name)
                elif waiting:
                    break
        finally:
            for task in running.values():
                task.cancel()
            if running:
                await asyncio.wait(running.values())
        await self._journal.sync()
        ordered = tuple(outcomes[step.id] for step in self._plan.steps if step.id in outcomes)
        background = {step.id for step in self._plan.steps if step.background}
        ok = not waiting and all(o.ok or o.key in background for o in ordered)
        return WorkflowResult(ok, ordered, self._supervisor.approvals.pending() if waiting else ())

    def _clear(self) -> None:
        """Put right what an earlier process left between two records.

        Loans whose turn is not open end; a start whose turn was never accepted is taken back, so that its id is free;
        actors of items that are over are let go.
        """
        state = self._journal.state
        for borrower, loans in tuple(state.borrowed.items()):
            for turn in {state.loans[loan].until for loan in loans}:
                if state.actors[borrower].accepted(turn) is None:
                    end_loans(self._journal, borrower, turn)
        for key, started in tuple(state.steps.items()):
            over = key in state.finished_steps or started.turn in state.step_ends
            if started.turn and not over and state.actors[started.by].accepted(started.turn) is None:
                self._journal.append("", StepStarted(key, started.by, ""))
            member = self._supervisor.members.get(started.by)
            if member is not None and "[" in key:
                member.keep = False
                if not state.actors[member.path].waiting:
                    self._supervisor.on_idle(member)

    async def _step(self, step: Step) -> StepOutcome:
        """Run one step, or take its outcome from the record."""
        known = self._journal.state.finished_steps.get(step.id)
        if known is None:
            outcome = await (self._items(step) if step.for_each else self._alone(step))
        else:
            outcome = StepOutcome(step.id, known.ok, known.output, known.detail)
        if outcome.ok:
            structured = bool(step.output or step.for_each)
            self._outputs[step.id] = decoded(outcome.output) if structured else outcome.output
        return outcome

    async def _alone(self, step: Step) -> StepOutcome:
        """Run a step that has no items once its actor is free, so that no other turn has what this one is lent."""
        async with self._turns.setdefault(step.agent, asyncio.Lock()):
            return self._ended(step, step.id) or await self._turn(step, step.id, None, self._owner(step))

    async def _items(self, step: Step) -> StepOutcome:
        """Run every item of a ``for_each`` step; its output is the list of theirs, null for one that failed."""
        source, *path = step.for_each.split(".")
        try:
            items = select(self._outputs[source], tuple(path))
        except LookupError as error:
            return self._fail(step.id, f"{step.for_each} is not there to go over: {error.args[0]}")
        if not isinstance(items, list):
            return self._fail(step.id, f"{step.for_each} is not there to go over: it is no list")
        owner, slots = self._owner(step), asyncio.Semaphore(step.max_concurrent)

        async def one(number: int, item: Any) -> StepOutcome:
            key = f"{step.id}[{number}]"
            known = self._journal.state.finished_steps.get(key)
            if known is not None:
                return StepOutcome(key, known.ok, known.output, known.detail)
            async with slots:
                return self._ended(step, key) or await self._turn(step, key, item, self._worker(step, owner, key))

        tasks = [
            asyncio.create_task(one(number, item), name=f"{step.id}[{number}]") for number, item in enumerate(items)
        ]
        try:
            if tasks:
                await asyncio.wait(tasks)
        finally:
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
        outcomes = [task.result() for task in tasks]
        outputs = [(decoded(o.output) if step.output else o.output) if o.ok else None for o in outcomes]
        failed = [outcome.key for outcome in outcomes if not outcome.ok]
        detail = f"{len(failed)} of {len(outcomes)} items failed: {', '.join(failed[:10])}" if failed else ""
        ok = not failed or step.background
        return self._finish(StepFinished(step.id, ok, msgspec.json.encode(outputs).decode(), detail))

    def _owner(self, step: Step) -> Member:
        """Return the actor of the step's agent, started when it is first needed."""
        member = self._owners.get(step.agent)
        if member is None or member.gone:
            member = self._owners[step.agent] = self._worker(step, self._root, f"agent {step.agent}", keep=True)
        return member

    def _worker(self, step: Step, parent: Member, call: str, *, keep: bool = False) -> Member:
        """Return the actor that *call* has started below *parent*, or start it."""
        path = self._journal.state.by_call.get(f"{parent.path}\0{call}", "")
        member = self._supervisor.members.get(path)
        if member is None:
            resolved = self._registry.resolve(self._definitions[step.agent])
            member = self._supervisor.spawn(resolved, parent, parent.to_share(), call=call, keep=keep)
        member.keep = keep
        return member

    def _ended(self, step: Step, key: str) -> StepOutcome | None:
        """Return what became of a turn that ended before its step could be judged."""
        started = self._journal.state.steps.get(key)
        ended = None if started is None else self._journal.state.step_ends.get(started.turn)
        return None if ended is None else self._judge(step, key, ended.reason, ended.output, ended.detail)

    async def _turn(self, step: Step, key: str, item: Any, member: Member) -> StepOutcome:
        """Run the step's prompt as one turn of *member*, or go on with the turn that is on record."""
        started = self._journal.state.steps.get(key)
        turn = "" if started is None else started.turn
        if not turn:
            turn = self._supervisor.next_turn()
            try:
                text = render(step.prompt, item, self._outputs)
                self._lend(step, member, turn)
            except (ReferenceMissing, LoanRefused) as refused:
                return self._fail(key, str(refused))
            self._journal.append("", StepStarted(key, member.path, turn))
            try:
                self._supervisor.accept(member, TurnAccepted(turn, text, TurnOrigin.STEP, limits=self._limits))
            except MailboxFull as full:
                end_loans(self._journal, member.path, turn)
                return self._fail(key, str(full))
        result = await self._supervisor.results.wait(member, turn)
        if result.stop_reason is StopReason.SUSPENDED:
            raise asyncio.CancelledError if self._supervisor.closing else Waits
        detail = "; ".join(result.diagnostics)
        return self._judge(step, key, result.stop_reason, result.output, detail)

    def _lend(self, step: Step, member: Member, turn: str) -> None:
        if step.lend is not None:
            grants = Grants(step.lend.authorities, Access.READ, step.lend.roots or ())
            lend_to(self._journal, self._root, member, grants, turn)

    def _judge(self, step: Step, key: str, reason: StopReason, output: str, detail: str) -> StepOutcome:
        """Say whether a turn that ended with *output* fulfils its step."""
        if reason is not StopReason.COMPLETED:
            return self._fail(key, detail or f"the turn ended as {reason.value}", output)
        if not step.output:
            return self._finish(StepFinished(key, ok=True, output=output))
        try:
            value = msgspec.json.decode(output)
            faults = output_faults(step.output, value)
        except (ValueError, RecursionError) as error:
            shown = output if len(output) <= MAX_SHOWN else f"{output[:MAX_SHOWN]}…"
            return self._fail(key, f"the answer is not the JSON that was asked for ({error}): {shown}", output)
        return self._finish(StepFinished(key, not faults, output, "; ".join(faults[:5])))

    def _fail(self, key: str, detail: str, output: str = "") -> StepOutcome:
        return self._finish(StepFinished(key, ok=False, output=output, detail=detail))

    def _finish(self, record: StepFinished) -> StepOutcome:
        self._journal.append("", record)
        return StepOutcome(record.key, record.ok, record.output, record.detail)


def decoded(output: str) -> Any:
    """Return *output* as the JSON value it is, or as the text it is."""
    try:
        return msgspec.json.decode(output)
    except (ValueError, RecursionError):
        return output
