"""Live progress of a run: a tree of steps and actors with a bar and the tool at work, or plain lines for a file."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Self, TextIO

from actors.messages import CallFinished, ModelReplied, StopReason
from orchestrator.cli.line import one_line
from orchestrator.journal.records import ActorExited, ActorRestarted, ActorSpawned, Entry, Noted, Record, TurnEnded
from orchestrator.journal.work import Stage, StageStarted, StepFinished, StepStarted

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import RenderableType
    from rich.live import Live

    from orchestrator.journal.state import SessionState
    from orchestrator.session import Session
    from orchestrator.workflows.plan import Plan

__all__ = ["Progress", "stages_of"]

SHOWN_ACTORS = 12
MAX_LINE = 400
REFRESHES_A_SECOND = 8


class Progress:
    """Shows what *session* does, from its events alone, on *stream*; ``async with`` it around the run."""

    def __init__(self, plan: Plan, session: Session, state: SessionState, stream: TextIO) -> None:
        self._plan = plan
        self._events = session.events()
        self._stream = stream
        self._task: asyncio.Task[None] | None = None
        self._live: Live | None = None
        self._tools: dict[str, str] = {path: "" for path, actor in state.actors.items() if not actor.exited}
        self._calls = 0
        self._denied = 0
        self._running: Counter[str] = Counter()
        self._items: Counter[str] = Counter()
        self._stages = stages_of(state)
        self._done = {key: step.ok for key, step in state.finished_steps.items()}

    async def __aenter__(self) -> Self:
        if self._stream.isatty():
            from rich.console import Console
            from rich.live import Live

            console = Console(file=self._stream)
            self._live = Live(get_renderable=self._draw, console=console, refresh_per_second=REFRESHES_A_SECOND)
            self._live.start()
        self._task = asyncio.create_task(self._watch(), name="progress")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._live is not None:
            self._live.stop()

    async def _watch(self) -> None:
        async for event in self._events:
            if isinstance(event, Entry):
                self._see(event)

    def _see(self, entry: Entry) -> None:
        record = entry.record
        if isinstance(record, CallFinished):
            self._called(entry.actor, record)
        elif isinstance(record, StepStarted):
            self._start(record)
        elif isinstance(record, StageStarted):
            self._stage(record)
        elif isinstance(record, StepFinished):
            self._finish(record)
        else:
            self._actor(entry.actor, record)

    def _called(self, actor: str, record: CallFinished) -> None:
        self._calls += 1
        if record.result.denial is not None:
            self._denied += 1
            self._say(f"denied   {actor}: {record.result.denial.message}")

    def _actor(self, actor: str, record: Record) -> None:
        if isinstance(record, ActorSpawned):
            self._tools[actor] = ""
        elif isinstance(record, ActorExited):
            self._tools.pop(actor, None)
        elif isinstance(record, ModelReplied):
            self._tools[actor] = ", ".join(sorted({call.name for call in record.reply.calls}))
        elif isinstance(record, ActorRestarted):
            self._say(f"restart  {actor}: {record.reason}")
        elif isinstance(record, Noted):
            self._say(f"note     {actor}: {record.text}")
        elif isinstance(record, TurnEnded):
            self._tools[actor] = ""
            if record.reason is not StopReason.COMPLETED:
                self._say(f"{record.reason.value:<8} {actor}: {record.detail}")

    def _start(self, record: StepStarted) -> None:
        name = record.key.partition("[")[0]
        if not self._running[name] and not self._items[name]:
            self._say(f"step     {name} by {record.by}")
        self._running[name] += 1

    def _stage(self, record: StageStarted) -> None:
        """Tell of each stage of a step, and of an item those that not every item has."""
        if not record.turn:
            return
        said = stage_words(record)
        self._stages[record.key] = said
        if "[" not in record.key or record.again or (record.stage, record.round) != (Stage.REVIEW, 1):
            self._say(f"{record.stage.value:<8} {record.key}: {said} by {record.by}")

    def _finish(self, record: StepFinished) -> None:
        name, item, _ = record.key.partition("[")
        self._stages.pop(record.key, None)
        if item:
            self._running[name] -= 1
            self._items[name] += 1
            return
        self._running.pop(name, None)
        self._done[name] = record.ok
        count = f" ({self._items[name]} items)" if self._items[name] else ""
        self._say(
            f"{'done' if record.ok else 'failed':<8} {name}{count}{f': {record.detail}' if record.detail else ''}"
        )

    def _say(self, text: str) -> None:
        line = one_line(text[:MAX_LINE])
        if self._live is None:
            print(line, file=self._stream, flush=True)
        else:
            self._live.console.print(line, markup=False, highlight=False)

    def _draw(self) -> RenderableType:
        from rich.text import Text
        from rich.tree import Tree

        steps = self._plan.steps
        done = sum(1 for step in steps if step.id in self._done)
        bar = "█" * done + "░" * (len(steps) - done)
        head = f"{self._plan.name}  {bar}  {done}/{len(steps)} steps  {self._calls} calls  {self._denied} denied"
        tree = Tree(Text(head))
        for step in steps:
            waiting = "●" if self._running[step.id] else "·"
            mark = waiting if step.id not in self._done else "✓" if self._done[step.id] else "✗"
            items = f"  {self._items[step.id]} items" if self._items[step.id] else ""
            branch = tree.add(Text(f"{mark} {step.id} ({step.agent}){items}"))
            for key, said in self._stages.items():
                if key.partition("[")[0] == step.id and len(branch.children) < SHOWN_ACTORS:
                    branch.add(Text(f"{key}: {said}", style="dim"))
        busy = [(path, tool) for path, tool in self._tools.items() if tool]
        for path, tool in busy[:SHOWN_ACTORS]:
            tree.add(Text(one_line(f"{path}  {tool[:MAX_LINE]}"), style="dim"))
        if len(busy) > SHOWN_ACTORS:
            tree.add(Text(f"and {len(busy) - SHOWN_ACTORS} more actors at work", style="dim"))
        return tree


def stages_of(state: SessionState) -> dict[str, str]:
    """Return which turn each step and item is in that is not over, where it is not its first."""
    last = {key: tuple(stages.values())[-1] for key, stages in state.stages.items() if key not in state.finished_steps}
    return {key: stage_words(stage) for key, stage in last.items() if stage.turn}


def stage_words(record: StageStarted) -> str:
    """Return which turn of its step the record is about, as in ``review round 2 of 3``."""
    rounds = {Stage.REVIEW: "review", Stage.FIX: "fixes of review"}
    what = f"{rounds[record.stage]} round {record.round} of {record.of}" if record.stage in rounds else "the answer"
    return f"{what}, corrected" if record.again else what
