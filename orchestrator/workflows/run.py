"""One run of a workflow in a session of its own: new, or taken up where an earlier process left it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from actors.definition import AgentDefinition
from actors.messages import Limits
from actors.roles.role import Role
from orchestrator.agent import SessionStart
from orchestrator.journal.store import open_store
from orchestrator.workflows.cast import definitions
from orchestrator.workflows.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from actors.states import StateChart
    from actors.tools import Tool
    from orchestrator.journal.records import Entry
    from orchestrator.journal.state import SessionState
    from orchestrator.runtime import RuntimeConfig
    from orchestrator.session import Session, SessionHandle
    from orchestrator.workflows.engine import WorkflowResult
    from orchestrator.workflows.plan import Plan

__all__ = ["STEP_LIMITS", "WorkflowRun", "root_definition"]

STEP_LIMITS = Limits(steps=10_000, calls=100_000, seconds=None)


def root_definition(plan: Plan) -> AgentDefinition:
    """Return the definition of a run's root: it has no tools and takes no turns; it owns the actors of the steps."""
    return AgentDefinition(name=plan.name, role=Role.BUILDER, instructions=f"The root of workflow {plan.digest}.")


class WorkflowRun:
    """A run of *plan*; ``async with`` it, then `run`. With a *handle* it is taken up again.

    Entering raises what ``Agent.start`` raises; a changed workflow is `HandleRefused`.
    """

    def __init__(
        self,
        plan: Plan,
        pool: Mapping[str, Tool],
        config: RuntimeConfig,
        handle: SessionHandle | None = None,
        states: StateChart | None = None,
    ) -> None:
        self._plan = plan
        self._definitions = definitions(plan.agents, pool, states=states)
        self._own_store = isinstance(config.store, str)
        self._store = open_store(config.store) if isinstance(config.store, str) else config.store
        self._root = root_definition(plan)
        also = tuple(self._definitions.values())
        self._start = SessionStart(self._root, config, self._store, handle, also)
        self._session: Session | None = None

    async def __aenter__(self) -> Self:
        try:
            self._session = await self._start.__aenter__()
        except BaseException:
            await self._close_store()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._start.__aexit__(kind, error, traceback)
        await self._close_store()

    async def _close_store(self) -> None:
        if self._own_store:
            await self._store.close()

    @property
    def session(self) -> Session:
        """The live session."""
        assert self._session is not None
        return self._session

    @property
    def state(self) -> SessionState:
        """What the session's journal says now."""
        assert self._start.supervisor is not None
        return self._start.supervisor.journal.state

    async def entries(self) -> tuple[Entry, ...]:
        """Return every entry of the session's journal."""
        assert self._start.supervisor is not None
        return await self._start.supervisor.journal.read(0)

    async def run(self) -> WorkflowResult:
        """Run every step that is not done yet. On cancel what is in flight stays open, to be taken up again."""
        supervisor = self._start.supervisor
        assert supervisor is not None
        root = supervisor.members[self._root.address]
        engine = Engine(self._plan, self._definitions, supervisor, self._start.registry, root, STEP_LIMITS)
        return await engine.run()
