"""The floor: one long-lived asyncio actor that does the work of a turn and nothing else.

A deque as mailbox, a future for each answer, one policy check a call, one encoded event a step into a list. No limits,
no supervision, no schema, no subscriber. It asks the same models and runs the same tools as the library does.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

from actors.messages import ModelReply, ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from actors.tools import Tool

__all__ = ["FloorActor"]


class Step(msgspec.Struct, frozen=True):
    """The event of one step."""

    actor: str
    turn: int
    reply: ModelReply


ENCODE = msgspec.json.Encoder().encode


def ignore(_: str) -> None:
    """Take a piece of text and do nothing with it."""


class FloorActor:
    """An actor that lives as one task until `end`. Without a *model* it answers each question with the question."""

    def __init__(self, name: str, model: Any, tools: Mapping[str, Tool], denied: frozenset[str]) -> None:
        self.name = name
        self.model = model
        self.tools = tools
        self.denied = denied
        self.mail: deque[tuple[str, asyncio.Future[str] | None]] = deque()
        self.events: list[bytes] = []
        self.history: list[Any] = []
        self.turns = 0
        self.waiter: asyncio.Future[None] | None = None
        self.loop = asyncio.get_running_loop()
        self.task = self.loop.create_task(self.live())

    def tell(self, text: str, answer: asyncio.Future[str] | None = None) -> None:
        """Put *text* into the mailbox and wake the reader."""
        self.mail.append((text, answer))
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def ask(self, text: str) -> asyncio.Future[str]:
        """Return the future of the answer to *text*."""
        answer: asyncio.Future[str] = self.loop.create_future()
        self.tell(text, answer)
        return answer

    async def end(self) -> None:
        """Cancel the task and return when it is gone."""
        self.task.cancel()
        await asyncio.wait((self.task,))

    async def live(self) -> None:
        """Take mail for ever."""
        while True:
            if not self.mail:
                self.waiter = self.loop.create_future()
                await self.waiter
                self.waiter = None
            text, answer = self.mail.popleft()
            output = text if self.model is None else await self.turn(text)
            if answer is not None:
                answer.set_result(output)

    async def turn(self, text: str) -> str:
        """Ask the model and run its calls until it gives a text."""
        self.turns += 1
        history = self.history
        history.append(text)
        while True:
            reply = await self.model.reply(self, ignore)
            history.append(reply)
            self.events.append(ENCODE(Step(self.name, self.turns, reply)))
            if not reply.calls:
                return str(reply.text)
            if len(reply.calls) == 1:
                history.append((await self.call(reply.calls[0]),))
                continue
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self.call(call)) for call in reply.calls]
            history.append(tuple(task.result() for task in tasks))

    async def call(self, call: ToolCall) -> str:
        """Check the policy and run one tool."""
        if call.name in self.denied:
            return f"{call.name} is denied"
        run = self.tools[call.name].run
        assert run is not None
        return str(await run(None, msgspec.json.decode(call.arguments)))  # type: ignore[arg-type]  # no tool here asks for its context
