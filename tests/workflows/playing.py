"""A workflow played in a session: its plan from YAML, its agents from functions, its journal at hand."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from actors.messages import ModelReply, Results, Said
from orchestrator.journal.memory import MemoryStore
from orchestrator.journal.records import decode
from orchestrator.models.function import FunctionModel
from orchestrator.runtime import RuntimeConfig
from orchestrator.workflows.load import parse_plan
from orchestrator.workflows.run import WorkflowRun
from orchestrator.workflows.telling import bare

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from actors.messages import ToolResult
    from actors.ports import ModelRequest
    from actors.tools import Tool
    from orchestrator.journal.records import Entry
    from orchestrator.session import SessionHandle
    from orchestrator.workflows.engine import StepOutcome, WorkflowResult
    from orchestrator.workflows.plan import Plan


class Piece:
    """A workflow with the functions of its agents and the tools that they may name."""

    def __init__(self, text: str, tools: Iterable[Tool] = (), **plays: Any) -> None:
        self.pool = {tool.name: tool for tool in tools}
        self.plan: Plan = parse_plan(text, "piece.yaml", pool=self.pool)
        self.plays = {name: play if callable(play) else always(play) for name, play in plays.items()}
        self.store = MemoryStore()

    def config(self, **config: Any) -> RuntimeConfig:
        """With what the workflow runs."""
        return RuntimeConfig(FunctionModel(self.plays), store=self.store, **config)

    @asynccontextmanager
    async def open(self, handle: SessionHandle | None = None, **config: Any) -> AsyncIterator[WorkflowRun]:
        """Enter a run of it, new or resumed."""
        async with WorkflowRun(self.plan, self.pool, self.config(**config), handle) as run:
            yield run

    async def play(self, **config: Any) -> WorkflowResult:
        """Run it once to its end."""
        async with self.open(**config) as run:
            self.handle = run.session.snapshot()
            return await run.run()

    async def entries(self) -> tuple[Entry, ...]:
        """What the session of the last run has on record."""
        return tuple(decode(data) for data in await self.store.read(self.handle.session))

    async def records(self, kind: type[Any]) -> list[Any]:
        """The records of one kind, in order."""
        return [entry.record for entry in await self.entries() if isinstance(entry.record, kind)]


def always(answer: Any) -> Any:
    """A function that gives *answer* to every request."""
    return lambda _: answer


def in_turn(request: ModelRequest) -> tuple[str, list[ToolResult], int]:
    """What the present turn was asked, without a schema, the results of its calls so far, how often it has answered."""
    begin = max(at for at, item in enumerate(request.history) if isinstance(item, Said))
    said, items = request.history[begin], request.history[begin + 1 :]
    assert isinstance(said, Said)
    results = [result for item in items if isinstance(item, Results) for result in item.results]
    return bare(said.text), results, sum(isinstance(item, ModelReply) for item in items)


def of(result: WorkflowResult, key: str) -> StepOutcome:
    """The outcome of one step."""
    return next(outcome for outcome in result.outcomes if outcome.key == key)
