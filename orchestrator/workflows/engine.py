"""The engine: runs a plan's steps as soon as what they need is done, each in an actor, each outcome on record.

Rules:

- An agent of the plan has one actor, a child of the session's root, for all its steps. The items of a ``for_each`` have
  actors of their own below it, at most ``max_concurrent`` items at once.
- A step is on record before its turn is accepted and after it has ended, so a resumed run does again nothing that
  finished, waits for what is in flight, and starts what never began. A start whose turn was never accepted is void.
- A step's schema is told with its prompt. An answer that is not as it asks gets one correction. A step with a
  ``review`` is done once its reviewer has accepted it.
- A step that fails fails what needs it. A *background* step's failure is told and does not fail the run, which waits
  for it; only what needs the output that is not there fails with it.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from actors.messages import Limits
from orchestrator.journal.work import Stage, StepFinished
from orchestrator.validators import answer_faults
from orchestrator.workflows.answers import decoded
from orchestrator.workflows.company import Company
from orchestrator.workflows.leftovers import clear
from orchestrator.workflows.outcome import StepOutcome, Waits, WorkflowResult
from orchestrator.workflows.plan import ready
from orchestrator.workflows.rounds import Rounds
from orchestrator.workflows.telling import Case, step_text
from orchestrator.workflows.template import ReferenceMissing, render, select
from orchestrator.workflows.turns import Done, Place, Task, Turns

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
        self._supervisor = supervisor
        self._outputs: dict[str, Any] = {}
        self._company = Company(supervisor, registry, root, definitions)
        self._turns = Turns(supervisor, root, limits or Limits())
        self._rounds = Rounds(supervisor.journal, self._company, self._turns)

    @property
    def _journal(self) -> Journal:
        return self._supervisor.journal

    async def run(self) -> WorkflowResult:
        """Run every step that can run and return what became of each. On cancel the steps in flight stay open.

        Steps that wait for a person, and what needs them, are left open as well: the result names the approvals.
        """
        clear(self._journal, self._company, self._plan)
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

    async def _step(self, step: Step) -> StepOutcome:
        """Run one step, or take its outcome from the record."""
        known = self._journal.state.finished_steps.get(step.id)
        if known is None:
            outcome = await (self._items(step) if step.for_each else self._one(step, step.id, None))
        else:
            outcome = StepOutcome(step.id, known.ok, known.output, known.detail)
        if outcome.ok:
            structured = bool(step.output or step.for_each)
            self._outputs[step.id] = decoded(outcome.output) if structured else outcome.output
        return outcome

    async def _items(self, step: Step) -> StepOutcome:
        """Run every item of a ``for_each`` step; its output is the list of theirs, null for one that failed."""
        source, *path = step.for_each.split(".")
        try:
            items = select(self._outputs[source], tuple(path))
        except LookupError as error:
            return self._fail(step.id, f"{step.for_each} is not there to go over: {error.args[0]}")
        if not isinstance(items, list):
            return self._fail(step.id, f"{step.for_each} is not there to go over: it is no list")
        self._company.owner(step.agent)
        slots = asyncio.Semaphore(step.max_concurrent)

        async def one(number: int, item: Any) -> StepOutcome:
            key = f"{step.id}[{number}]"
            known = self._journal.state.finished_steps.get(key)
            if known is not None:
                return StepOutcome(key, known.ok, known.output, known.detail)
            async with slots:
                return await self._one(step, key, item)

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

    async def _one(self, step: Step, key: str, item: Any) -> StepOutcome:
        """Have a step without items, or one item, worked on and reviewed, as far as the record does not tell."""
        fill = partial(render, item=item, outputs=self._outputs)
        faults = partial(answer_faults, step.output)
        text = lambda: step_text(fill(step.prompt), step.output)  # noqa: E731
        task = Task(Place(key), text, faults, step.output, step.lend)
        async with self._company.seat(step, key, Stage.WORK) as member:
            done = await self._turns.ask(task, member)
        if not done.fault and step.review is not None:
            try:
                case = Case(key, fill(step.prompt), fill(step.review.prompt), step.output)
                done = await self._rounds.hold(step, step.review, case, done.output)
            except ReferenceMissing as missing:
                done = Done(done.output, str(missing))
        outcome = self._finish(StepFinished(key, not done.fault, done.output, done.fault))
        self._company.release(step, key)
        return outcome

    def _fail(self, key: str, detail: str) -> StepOutcome:
        return self._finish(StepFinished(key, ok=False, output="", detail=detail))

    def _finish(self, record: StepFinished) -> StepOutcome:
        self._journal.append("", record)
        return StepOutcome(record.key, record.ok, record.output, record.detail)
