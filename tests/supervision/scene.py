"""A stage for tests: a session with its supervisor in view, definitions in a line, and an audit of a journal."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from actors.definition import AgentDefinition, ToolSet
from actors.messages import CallFinished, ModelReply, Said, Steered
from actors.roles.role import Role
from orchestrator.agent import Agent
from orchestrator.journal.fold import fold
from orchestrator.journal.memory import MemoryStore
from orchestrator.journal.records import OutcomeDropped, OutcomeRecorded, TurnAccepted, TurnEnded, decode
from orchestrator.models.function import FunctionModel
from orchestrator.runtime import Observability, RuntimeConfig, SessionLimits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from actors.ports import Model, ModelRequest
    from actors.tools import Tool
    from orchestrator.clock import Clock
    from orchestrator.journal.records import Entry
    from orchestrator.journal.store import Store
    from orchestrator.session import Session, SessionHandle
    from orchestrator.supervisor import Supervisor


class Scene:
    """A live session, with what stands behind it."""

    def __init__(self, agent: Agent, session: Session, supervisor: Supervisor, store: Store) -> None:
        self.agent = agent
        self.session = session
        self.supervisor = supervisor
        self.store = store

    async def entries(self) -> tuple[Entry, ...]:
        """Everything on record so far."""
        return tuple(decode(data) for data in await self.store.read(self.session.snapshot().session))

    async def records(self, kind: type[Any]) -> list[Any]:
        """The records of one kind so far, in order."""
        return [entry.record for entry in await self.entries() if isinstance(entry.record, kind)]

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return once *holds* says yes; it is asked now and after each record."""
        events = self.session.events()
        if not holds():
            async for _ in events:
                if holds():
                    break
        await events.aclose()  # type: ignore[attr-defined]  # the stream is a generator

    async def quiet(self) -> None:
        """Return when no actor is active."""
        while self.supervisor.tasks:
            await asyncio.wait(set(self.supervisor.tasks))


@asynccontextmanager
async def scene(
    definition: AgentDefinition,
    model: Model,
    *,
    store: Store | None = None,
    handle: SessionHandle | None = None,
    clock: Clock | None = None,
    limits: SessionLimits | None = None,
) -> AsyncIterator[Scene]:
    """Open a session; leaving the block closes it. The store stays open, for a look at what was recorded."""
    store = store or MemoryStore()
    about = Observability() if clock is None else Observability(clock=clock)
    config = RuntimeConfig(model, limits=limits or SessionLimits(), store=store, observability=about)
    agent = Agent(definition, config)
    start = agent.start(handle)
    async with start as session:
        assert start.supervisor is not None
        yield Scene(agent, session, start.supervisor, store)


def agent(name: str, *tools: Tool, children: Iterable[AgentDefinition] = (), **more: Any) -> AgentDefinition:
    """A definition; an agent called ``boss`` is a builder, every other one a child."""
    role = Role.BUILDER if name == "boss" else Role.CHILD
    return AgentDefinition(name, role, tools=ToolSet(direct=tools), children=tuple(children), **more)


def script(*answers: Any) -> Callable[[ModelRequest], Any]:
    """A playbook that gives the n-th answer to the n-th question of an actor's whole history, then only ``ok``."""

    def play(request: ModelRequest) -> Any:
        number = sum(isinstance(item, ModelReply) for item in request.history)
        answer = answers[number] if number < len(answers) else "ok"
        return answer(request) if callable(answer) else answer

    return play


def plays(**scripts: Any) -> FunctionModel:
    """A model of one script an agent: a playbook, or the answers of one."""
    return FunctionModel({name: play if callable(play) else script(*play) for name, play in scripts.items()})


def heard(request: ModelRequest) -> list[str]:
    """Every text on the user's side of a request."""
    return [item.text for item in request.history if isinstance(item, Said)]


def cut(store: MemoryStore, session: str, length: int) -> MemoryStore:
    """A store with the same session, as a crash after *length* records would leave it."""
    from orchestrator.journal.memory import Shelf

    left = MemoryStore()
    shelf = left.shelves[session] = Shelf("", (), 0)
    shelf.records = list(store.shelves[session].records[:length])
    shelf.fence = 1
    return left


def discharges(entries: Iterable[Entry]) -> Counter[str]:
    """How often each child turn's outcome was delivered or dropped."""
    counted: Counter[str] = Counter()
    for entry in entries:
        record = entry.record
        if isinstance(record, CallFinished):
            counted.update(record.discharged)
        elif isinstance(record, TurnAccepted | Steered):
            counted.update(record.notices)
        elif isinstance(record, OutcomeDropped):
            counted[record.turn] += 1
    return counted


def faults(entries: Iterable[Entry]) -> list[str]:
    """What is wrong with the journal of a session in which everything is over."""
    entries = tuple(entries)
    records = [entry.record for entry in entries]
    accepted = Counter(record.turn for record in records if isinstance(record, TurnAccepted))
    ended = Counter(record.turn for record in records if isinstance(record, TurnEnded))
    outcomes = Counter(record.turn for record in records if isinstance(record, OutcomeRecorded))
    given = discharges(entries)
    state = fold(entries)
    found = [f"turn {turn} was accepted {n} times" for turn, n in accepted.items() if n != 1]
    found += [f"turn {turn} has {ended[turn]} ends" for turn in accepted if ended[turn] != 1]
    found += [f"turn {turn} has {n} outcomes" for turn, n in outcomes.items() if n != 1]
    found += [f"the outcome of {turn} was discharged {given[turn]} times" for turn in outcomes if given[turn] != 1]
    tasks = [actor.task for actor in state.actors.values() if actor.spawned.parent and actor.spawned.call]
    found += [f"the task {task!r} of a child has no outcome" for task in tasks if task not in outcomes]
    found += [
        f"{actor.path} is left in phase {actor.loop.phase}" for actor in state.actors.values() if actor.loop.pending
    ]
    return found
