"""The work that is measured: an actor with 12 tools, a policy, a memory journal, one live subscriber, all limits on.

The model answers from replies made beforehand, and model and tools each suspend once, as every real one does; so what
is measured is the library, and the event loop as far as any asyncio program needs it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import attrs

from actors.definition import AgentDefinition, ToolSet
from actors.grants import Access
from actors.messages import Limits, ModelReply, ReplyStop, ToolCall, TurnOrigin, Usage
from actors.roles.role import Role
from actors.tools import Tool, tool
from orchestrator.agent import Agent
from orchestrator.focus import Policy
from orchestrator.journal.records import TurnAccepted
from orchestrator.member import Member
from orchestrator.registry import Registry
from orchestrator.runtime import OWNER, RuntimeConfig, SessionLimits
from orchestrator.session import Session
from orchestrator.supervisor import Supervisor
from orchestrator.turn import Turn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from orchestrator.journal.store import Store

__all__ = [
    "DENIED",
    "LIMITS",
    "SPENT",
    "TOOLS",
    "WORKER",
    "Held",
    "Opened",
    "Prepared",
    "calling",
    "opened",
    "reading",
    "saying",
    "worker_with",
]

DENIED = frozenset({"read_10"})
LIMITS = Limits(steps=1_000_000, calls=1_000_000)
MANY = SessionLimits(alive=1_000_000, total=1_000_000)
SPENT = Usage(input_tokens=100, output_tokens=10, requests=1)


async def reading(path: str, line: int) -> str:
    """Return one line of a file.

    Args:
        path: The file, relative to the workspace.
        line: Its number, from 1.

    """
    await asyncio.sleep(0)
    return f"{path}:{line}"


def reader(name: str, access: Access = Access.READ) -> Tool:
    """Return a tool of this name."""
    return tool(name=name, access=access)(reading)


def worker_with(
    count: int, *more: Tool, children: tuple[AgentDefinition, ...] = (), name: str = "worker"
) -> AgentDefinition:
    """Return the definition of an actor with *count* reading tools, and *more*."""
    tools = ToolSet(direct=(*(reader(f"read_{n}") for n in range(count)), *more))
    role = Role.BUILDER if children else Role.RUN
    return AgentDefinition(name, role, "Do what you are asked.", tools=tools, children=children)


WORKER = worker_with(11, reader("write_0", Access.WRITE))
TOOLS = {item.name: item for item in WORKER.tools.direct}


class Prepared:
    """A model that answers with the next of its *replies*."""

    def __init__(self) -> None:
        self.replies: deque[ModelReply] = deque()

    async def reply(self, _: object, __: Callable[[str], None]) -> ModelReply:
        """Return the next reply after one round of the event loop."""
        await asyncio.sleep(0)
        return self.replies.popleft()


class Held(Prepared):
    """A prepared model that answers only while its ``gate`` is open; ``asked`` tells that it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.asked = asyncio.Event()

    async def reply(self, request: object, delta: Callable[[str], None]) -> ModelReply:
        """Return the next reply once the gate is open."""
        self.asked.set()
        await self.gate.wait()
        return await super().reply(request, delta)


def saying(text: str = "done") -> ModelReply:
    """Return a reply that ends a turn."""
    return ModelReply(text, usage=SPENT)


def calling(numbers: Iterable[int], name: str = "read_1") -> ModelReply:
    """Return a reply with one call of the tool *name* for each of *numbers*, all different."""
    calls = tuple(ToolCall(f"c{n}", name, f'{{"path":"src/file.py","line":{n}}}') for n in numbers)
    return ModelReply("", calls, ReplyStop.TOOL_CALLS, SPENT)


@attrs.frozen
class Opened:
    """A live session with what the benchmark needs of its inside."""

    session: Session
    supervisor: Supervisor
    root: Member
    registry: Registry
    policy: Policy

    def spawn(self, definition: AgentDefinition) -> Member:
        """Start a child of the root that stays until the session is closed."""
        return self.supervisor.spawn(self.registry.resolve(definition), self.root, OWNER, keep=True)

    async def ask(self, member: Member, text: str) -> str:
        """Open a turn in *member* and return its answer."""
        accepted = TurnAccepted(self.supervisor.next_turn(), text, TurnOrigin.STEP, limits=LIMITS)
        turn = self.supervisor.accept(member, accepted)
        return (await self.supervisor.results.wait(member, turn)).output

    async def run(self) -> None:
        """Run one turn under the policy and all limits. Raises RuntimeError unless it completed without failures."""
        result = await self.session.run(Turn("Go on.", self.policy, limits=LIMITS))
        if result.failures or result.stop_reason.value != "completed":
            msg = f"the work was not done: {result}"
            raise RuntimeError(msg)


async def _read(events: AsyncIterator[Any]) -> None:
    async for _ in events:
        pass


@asynccontextmanager
async def opened(
    model: Any, definition: AgentDefinition = WORKER, *, watched: bool = True, store: str | Store = "memory:"
) -> AsyncIterator[Opened]:
    """Open a session of *definition*, with one live subscriber if it is *watched*; leaving closes it."""
    async with Agent(definition, RuntimeConfig(model, limits=MANY, store=store)) as agent:
        start = agent.start()
        async with start as session:
            supervisor = start.supervisor
            assert supervisor is not None
            subscriber = asyncio.create_task(_read(session.events())) if watched else None
            root = supervisor.members[definition.address]
            policy = Policy.deny(*(DENIED & set(root.resolved.names)))
            yield Opened(session, supervisor, root, start.registry, policy)
        if subscriber is not None:
            await subscriber
