"""What the tests of the kernel are played on: agents with a ledger of effects, sessions, and what they wrote down."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from actors import Access, AgentDefinition, Role, Tool, ToolSet
from actors.messages import ModelReply, ReplyStop, Results, Said, ToolCall
from orchestrator import Agent, RuntimeConfig
from orchestrator.journal.records import Entry, TurnEnded
from orchestrator.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from actors.messages import Item, ToolResult
    from actors.ports import ModelRequest
    from orchestrator import Session

R = TypeVar("R")
OPEN_SCHEMA = '{"type":"object"}'


class Ledger:
    """What really happened, in order: tools write here, and nothing else does."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def tool(self, name: str, access: Access = Access.READ, *, answer: Any = None, **declared: Any) -> Tool:
        """A tool that writes its name and arguments down and returns *answer*, by default ``name ran``."""

        async def run(_: object, arguments: Any) -> Any:
            self.lines.append(
                f"{name} {' '.join(f'{key}={value}' for key, value in sorted(arguments.items()))}".strip()
            )
            return f"{name} ran" if answer is None else answer

        return made(name, run, access, **declared)


def made(name: str, run: Callable[[Any, Any], Awaitable[Any]], access: Access = Access.READ, **declared: Any) -> Tool:
    """A tool around *run* that takes any object."""
    schema = declared.pop("schema", OPEN_SCHEMA)
    return Tool(name, declared.pop("description", "Does it."), schema, access=access, run=run, **declared)


class Gate:
    """A tool's place to wait: *entered* is set by the tool, *leave* by the test."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.leave = asyncio.Event()

    async def wait(self, _: object = None, __: object = None) -> str:
        """Tell that the tool is in, and wait to be let go."""
        self.entered.set()
        await self.leave.wait()
        return "left"


def agent(*tools: Tool, name: str = "boss", role: Role = Role.BUILDER, **more: Any) -> AgentDefinition:
    """A definition with these direct tools."""
    return AgentDefinition(name, role, tools=ToolSet(direct=tools), **more)


def staged(definition: AgentDefinition, *script: Any, **config: Any) -> tuple[Agent, ScriptedModel]:
    """An agent that plays *script*, and the model that has it; scripts of others by their names in ``others``."""
    model = ScriptedModel(**{definition.name: script}, **config.pop("others", {}))
    return Agent(definition, RuntimeConfig(model, **config)), model


def raw(name: str, arguments: str, call_id: str = "") -> ToolCall:
    """A call whose argument text is exactly *arguments*."""
    return ToolCall(call_id, name, arguments)


def calls(*made_calls: ToolCall, stop: ReplyStop = ReplyStop.TOOL_CALLS) -> ModelReply:
    """A reply of calls."""
    return ModelReply("", made_calls, stop)


def results(request: ModelRequest) -> tuple[ToolResult, ...]:
    """The results that stand last in the history of *request*."""
    return next(item.results for item in reversed(request.history) if isinstance(item, Results))


def said(request: ModelRequest) -> list[str]:
    """What the user's side of *request* says."""
    return [item.text for item in request.history if isinstance(item, Said)]


def names(request: ModelRequest) -> list[str]:
    """The tools offered in *request*."""
    return [tool.name for tool in request.tools]


def paired(history: tuple[Item, ...]) -> bool:
    """Whether each reply with calls is followed directly by one result for each call, in order, all ids distinct."""
    ids: list[str] = []
    for place, item in enumerate(history):
        if isinstance(item, ModelReply) and item.calls:
            wanted = [call.id for call in item.calls]
            ids.extend(wanted)
            follows = history[place + 1] if place + 1 < len(history) else None
            if not isinstance(follows, Results) or [result.call_id for result in follows.results] != wanted:
                return False
        elif isinstance(item, Results) and not (place and isinstance(history[place - 1], ModelReply)):
            return False
    return len(set(ids)) == len(ids)


async def over(session: Session, turn: str) -> TurnEnded:
    """Return the end of *turn* once it has one, as a subscriber sees it."""
    async for event in session.events(0):
        if isinstance(event, Entry) and isinstance(event.record, TurnEnded) and event.record.turn == turn:
            return event.record
    message = f"the session was closed before {turn} ended"
    raise AssertionError(message)


async def written(session: Session, kind: type[R]) -> list[R]:
    """The records of one kind that *session* has written so far."""
    entries = await session._supervisor.journal.read(0)
    return [entry.record for entry in entries if isinstance(entry.record, kind)]
