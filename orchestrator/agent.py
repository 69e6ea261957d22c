"""The front door: an agent, its definition, and the sessions it starts. Four methods: start, run, definition, close."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from actors.text import clean
from orchestrator.approver import key_digest
from orchestrator.children import Children
from orchestrator.desk import Desk
from orchestrator.errors import HandleRefused, ResolutionFailed, SessionClosed
from orchestrator.events import Events
from orchestrator.journal.fault import StoreDamaged, StoreError
from orchestrator.journal.fold import apply, fold
from orchestrator.journal.journal import Journal
from orchestrator.journal.records import Entry, Noted, SessionOpened, SessionResumed, decode
from orchestrator.journal.state import SessionState
from orchestrator.journal.store import Store, open_store
from orchestrator.outcomes import Outcomes
from orchestrator.recovery import finish, revive
from orchestrator.registry import Registry
from orchestrator.session import Session, SessionHandle
from orchestrator.sources.sources import Sources, sources_of
from orchestrator.supervisor import Supervisor
from orchestrator.workspace.roots import Workspace

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from actors.definition import AgentDefinition
    from actors.sources import MCPSource
    from orchestrator.runtime import Principal, RuntimeConfig
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
        self._starts: list[SessionStart] = []
        self._closed = False

    @property
    def definition(self) -> AgentDefinition:
        """The frozen definition."""
        return self._definition

    def start(self, handle: SessionHandle | None = None) -> SessionStart:
        """Return an async context manager that yields a new `Session`, or the resumed one of *handle*.

        Entering it raises `ResolutionFailed`, `HandleRefused` for a handle that does not fit, and `StoreError`. What is
        wrong with a definition is raised before anything is connected or written; what is wrong with a source of its
        tools after the session is on record, which is then closed. Leaving it closes the session: nothing is left
        running. Raises `SessionClosed` when the agent is closed, also while it starts.
        """
        if self._closed:
            raise SessionClosed(f"of the closed agent {self._definition.name!r}")
        self._starts = [start for start in self._starts if not start.over]
        start = SessionStart(self._definition, self._config, self._store, handle)
        self._starts.append(start)
        return start

    async def run(self, turn: Turn | str) -> Result:
        """Run one turn in a session of its own, which is closed afterwards, and return its result."""
        async with self.start() as session:
            return await session.run(turn)

    async def close(self) -> None:
        """Close every session this agent started, and its store if the agent opened it. Closing twice is fine."""
        self._closed = True
        for start in self._starts:
            await start.close()
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
        self,
        definition: AgentDefinition,
        config: RuntimeConfig,
        store: Store,
        handle: SessionHandle | None = None,
        also: tuple[AgentDefinition, ...] = (),
    ) -> None:
        self._definition = definition
        self._config = config
        self._store = store
        self._handle = handle
        self._definitions = (definition, *also)
        self._session: Session | None = None
        self.supervisor: Supervisor | None = None
        self.registry = Registry(getattr(config.model, "tool_schema", None))
        self.over = False
        self._starting: asyncio.Event | None = None

    async def __aenter__(self) -> Session:
        starting = self._starting = asyncio.Event()
        try:
            self._session = await self._start()
        except ResolutionFailed as failed:
            self._check_open()
            raise failed from None
        finally:
            starting.set()
        return self._session

    def _check_open(self) -> None:
        if self.over:
            raise SessionClosed(f"of the closed agent {self._definition.name!r}")

    async def _start(self) -> Session:
        """Start the session; one that cannot start leaves nothing running."""
        wanted = sources_of(self._definitions)
        for definition in self._definitions:
            if wanted:
                self.registry.check(definition)
            else:
                self.registry.resolve(definition)
        config = self._config
        workspace = None if config.workspace is None else Workspace(config.workspace)
        events = Events(config.observability.buffer)
        folded: SessionState | None = None
        if self._handle is None:
            journal = await self._create(events)
        else:
            journal, folded = await self._resume(self._handle, events)
        try:
            self._check_open()
            if wanted:
                folder = "" if workspace is None else str(workspace.root)
                await self._connect(wanted, Sources(journal, events, folder))
            self._check_open()
            self.supervisor = Supervisor(journal, config, self.registry, workspace, events)
            return await self._people(self.supervisor, folded, events)
        except BaseException as error:
            await asyncio.shield(asyncio.ensure_future(self._take_down(journal, error)))
            raise

    async def _connect(self, wanted: tuple[MCPSource, ...], sources: Sources) -> None:
        """Open every source, then resolve every definition."""
        self.registry.sources = sources
        await sources.open(wanted)
        for definition in self._definitions:
            self.registry.resolve(definition)
        for source, text in self.registry.left_out:
            sources.tell("tool_left_out", source, text)

    async def _take_down(self, journal: Journal, error: BaseException) -> None:
        """End what was started of a session that cannot start, and say why. On cancel it goes on."""
        if self.supervisor is not None:
            self.supervisor.closing = True
            await self.supervisor.stops.all()
        if self.registry.sources is not None:
            await self.registry.sources.close()
        with suppress(StoreError):
            if isinstance(error, ResolutionFailed):
                journal.append("", Noted("", "start_failed", str(error)))
        with suppress(StoreError):
            never = self._handle is None and self.supervisor is None
            await journal.close("closed" if never else "open")

    async def _people(self, supervisor: Supervisor, folded: SessionState | None, events: Events) -> Session:
        """Start the root actor, or every actor that the journal knows, and return the session around them."""
        journal, principal = supervisor.journal, self._config.principal
        supervisor.intrinsics.update(Desk(journal).tools())
        if self.registry.sources is not None:
            self.registry.sources.asks = supervisor.questions.ask
        outcomes = Outcomes(supervisor)
        Children(supervisor, self.registry, outcomes)
        known = None
        if folded is not None:
            revive(supervisor, self.registry, folded, principal.grants)
            known = folded.actors.get(self._definition.address)
        if known is None:
            supervisor.spawn(self.registry.resolve(self._definition), None, principal.grants, keep=True)
        elif known.exited:
            raise HandleRefused(f"the session's root has ended: {known.exited}")
        await journal.sync()
        opened = journal.state.opened
        assert opened is not None
        handle = SessionHandle(opened.session, self._store.url, self._definition.fingerprint)
        root = supervisor.members[self._definition.address]
        if folded is not None:
            await finish(supervisor, folded)
            outcomes.resume()
        return Session(handle, supervisor, outcomes, root, events)

    async def close(self) -> None:
        """Close the session, if it was started; one that is starting does not. Closing twice is fine."""
        self.over = True
        if self._starting is not None and not self._starting.is_set():
            if self.registry.sources is not None:
                await self.registry.sources.close()
            await self._starting.wait()
        if self._session is not None:
            await self._session.close()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def _create(self, events: Events) -> Journal:
        config, definition = self._config, self._definition
        about, principal = config.observability, config.principal
        session = f"s{os.urandom(6).hex()}"
        approver = "" if config.approver is None else key_digest(config.approver.key)
        labels = tuple((clean(key), clean(value)) for key, value in about.labels)
        log = await self._store.create(session, title=clean(about.title or definition.name), labels=dict(labels))
        journal = Journal(self._store, log, SessionState(), about.clock, events)
        journal.append(
            "",
            SessionOpened(
                session, definition.name, definition.fingerprint, principal.name, principal.tenant, labels, approver
            ),
        )
        return journal

    async def _resume(self, handle: SessionHandle, events: Events) -> tuple[Journal, SessionState]:
        definition, principal = self._definition, self._config.principal
        log, records = await self._store.resume(handle.session)
        try:
            entries = tuple(_decoded(handle.session, number, data) for number, data in enumerate(records, start=1))
            folded, live = fold(entries), SessionState()
            for entry in entries:
                apply(live, entry, loops=False)
            check_handle(handle, folded, definition, principal)
        except BaseException:
            await log.close("open")
            raise
        journal = Journal(self._store, log, live, self._config.observability.clock, events)
        journal.append("", SessionResumed(log.fence))
        apply(folded, Entry(journal.seq, 0, "", SessionResumed(log.fence)))
        return journal, folded


def _decoded(session: str, number: int, data: bytes) -> Entry:
    """Return the entry of a record. Raises `StoreDamaged` for one that this release does not know."""
    try:
        return decode(data)
    except msgspec.DecodeError as error:
        fault = f"it is no record that this release knows; a newer one may have written it ({error})"
        raise StoreDamaged(f"session {session}", number, fault) from None


def check_handle(
    handle: SessionHandle, folded: SessionState, definition: AgentDefinition, principal: Principal
) -> None:
    """Raise `HandleRefused` unless the session on record is this definition's and this principal's."""
    if handle.version != 1:
        msg = f"the handle has version {handle.version}; this release knows version 1"
        raise HandleRefused(msg)
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
