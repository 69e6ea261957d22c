"""The front door: an agent, its definition, and the sessions it starts. Four methods: start, run, definition, close."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from orchestrator.children import Children
from orchestrator.desk import Desk
from orchestrator.errors import HandleRefused, SessionClosed
from orchestrator.events import Events
from orchestrator.journal.fold import SessionState, fold
from orchestrator.journal.journal import Journal
from orchestrator.journal.records import SessionOpened, SessionResumed, decode
from orchestrator.journal.store import Store, open_store
from orchestrator.recovery import finish, revive
from orchestrator.registry import Registry
from orchestrator.session import Session, SessionHandle
from orchestrator.supervisor import Supervisor
from orchestrator.workspace.roots import Workspace

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from actors.definition import AgentDefinition
    from orchestrator.runtime import RuntimeConfig
    from orchestrator.turn import Result, Turn

__all__ = ["Agent", "SessionStart"]


class Agent:
    """A definition together with what it runs with. ``async with`` closes it.

    Nothing is opened, connected or written before the first session starts.
    """

    def __init__(self, definition: AgentDefinition, config: RuntimeConfig) -> None:
        self._definition = definition
        self._config = config
        self._own_store = isinstance(config.store, str)
        self._store = open_store(config.store) if isinstance(config.store, str) else config.store
        self._sessions: list[Session] = []
        self._closed = False

    @property
    def definition(self) -> AgentDefinition:
        """The frozen definition."""
        return self._definition

    def start(self, handle: SessionHandle | None = None) -> SessionStart:
        """Return an async context manager that yields a new `Session`, or the resumed one of *handle*.

        Entering it raises `ResolutionFailed` before anything is written, `HandleRefused` for a handle that does not
        fit, and `StoreError`. Leaving it closes the session: nothing is left running.
        """
        return SessionStart(self, handle)

    async def run(self, turn: Turn | str) -> Result:
        """Run one turn in a session of its own, which is closed afterwards, and return its result."""
        async with self.start() as session:
            return await session.run(turn)

    async def close(self) -> None:
        """Close every session this agent started, and its store if the agent opened it. Closing twice is fine."""
        self._closed = True
        for session in tuple(self._sessions):
            await session.close()
        self._sessions.clear()
        if self._own_store:
            await self._store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


class SessionStart:
    """A session about to start; ``async with`` it. ``also`` are definitions that the host starts by itself."""

    def __init__(
        self, agent: Agent, handle: SessionHandle | None, also: tuple[AgentDefinition, ...] = ()
    ) -> None:
        self._agent = agent
        self._handle = handle
        self._also = also
        self._session: Session | None = None
        self.supervisor: Supervisor | None = None
        self.registry = Registry()

    async def __aenter__(self) -> Session:
        agent, config = self._agent, self._agent._config
        if agent._closed:
            raise SessionClosed("of a closed agent")
        for definition in (agent.definition, *self._also):
            self.registry.resolve(definition)
        workspace = None if config.workspace is None else Workspace(config.workspace)
        events = Events(config.observability.buffer)
        store = agent._store
        if self._handle is None:
            journal, folded = await self._create(store, events), None
        else:
            journal, folded = await self._resume(store, self._handle, events)
        supervisor = self.supervisor = Supervisor(journal, config, workspace, events)
        supervisor.intrinsics.update(Desk(journal).tools())
        children = Children(supervisor, self.registry)
        opened = journal.state.opened
        assert opened is not None
        try:
            if folded is None:
                resolved = self.registry.resolve(agent.definition)
                supervisor.spawn(resolved, None, config.principal.grants, keep=True)
            else:
                revive(supervisor, self.registry, folded, config.principal.grants)
            await journal.sync()
            root = supervisor.members[agent.definition.address]
            handle = SessionHandle(opened.session, store.url, agent.definition.fingerprint)
            session = self._session = Session(handle, supervisor, children, root, events)
            agent._sessions.append(session)
            if folded is not None:
                await finish(supervisor, folded)
                children.resume()
        except BaseException:
            supervisor.closing = True
            await supervisor.halt()
            await journal.close("open")
            raise
        return session

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()
            if session in self._agent._sessions:
                self._agent._sessions.remove(session)

    async def _create(self, store: Store, events: Events) -> Journal:
        config, definition = self._agent._config, self._agent.definition
        about, principal = config.observability, config.principal
        session = f"s{os.urandom(6).hex()}"
        title = about.title or definition.name
        log = await store.create(session, title=title, labels=dict(about.labels))
        journal = Journal(store, log, SessionState(), about.clock, events)
        journal.append(
            "",
            SessionOpened(session, definition.name, definition.fingerprint, principal.name, principal.tenant, about.labels),
        )
        return journal

    async def _resume(self, store: Store, handle: SessionHandle, events: Events) -> tuple[Journal, SessionState]:
        definition, principal = self._agent.definition, self._agent._config.principal
        if handle.version != 1:
            msg = f"the handle has version {handle.version}; this release knows version 1"
            raise HandleRefused(msg)
        log, records = await store.resume(handle.session)
        try:
            entries = tuple(decode(data) for data in records)
            folded, live = fold(entries), SessionState()
            for entry in entries:
                live.apply(entry, loops=False)
            opened = folded.opened
            if opened is None or opened.fingerprint != definition.fingerprint:
                made = "nothing" if opened is None else f"{opened.agent!r} ({opened.fingerprint[:12]})"
                msg = (
                    f"session {handle.session} was made with {made}, not with {definition.name!r} "
                    f"({definition.fingerprint[:12]}); resume it with the definition it was made with"
                )
                raise HandleRefused(msg)
            if (opened.principal, opened.tenant) != (principal.name, principal.tenant):
                msg = f"session {handle.session} belongs to another principal"
                raise HandleRefused(msg)
        except BaseException:
            await log.close("open")
            raise
        journal = Journal(store, log, live, self._agent._config.observability.clock, events)
        journal.append("", SessionResumed(log.fence))
        return journal, folded
