"""Where consent is tested: tools that need a person's yes, sessions with an approver, and people who answer."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from actors import Access
from actors.messages import CallFinished, Results
from actors.tools import Approval
from orchestrator.agent import Agent
from orchestrator.approver import Answer, Approver, Verdict
from orchestrator.journal.memory import MemoryStore
from orchestrator.models.function import call
from orchestrator.runtime import Observability, RuntimeConfig
from tests.supervision.scene import Scene, agent, script

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from actors import AgentDefinition, Tool
    from actors.messages import ToolResult
    from actors.ports import Model
    from orchestrator.approver import Asker, Question
    from orchestrator.clock import Clock
    from orchestrator.session import SessionHandle
    from tests.core.stage import Ledger

KEY = "key-of-the-approver-77c1"
PAY = (
    '{"additionalProperties":false,"properties":{"amount":{"type":["number","string"]},"to":{"type":"string"}},'
    '"required":["amount","to"],"type":"object"}'
)


def paying(ledger: Ledger, name: str = "pay", **declared: Any) -> Tool:
    """A tool that pays, once a person has said yes to the very call."""
    more: dict[str, Any] = {"approval": Approval.EACH_CALL, "schema": PAY, "targets": {"to"}, **declared}
    return ledger.tool(name, more.pop("access", Access.EXTERNAL), **more)


@asynccontextmanager
async def office(
    definition: AgentDefinition,
    model: Model,
    *,
    handle: SessionHandle | None = None,
    clock: Clock | None = None,
    **config: Any,
) -> AsyncIterator[Scene]:
    """Open a session with an approver whose key is `KEY`; leaving the block closes it. The store stays open.

    ``config`` are further fields of `RuntimeConfig`.
    """
    store = config.setdefault("store", MemoryStore())
    config.setdefault("approver", Approver(KEY))
    about = Observability() if clock is None else Observability(clock=clock)
    owner = Agent(definition, RuntimeConfig(model, observability=about, **config))
    start = owner.start(handle)
    async with start as session:
        assert start.supervisor is not None
        yield Scene(owner, session, start.supervisor, store)


def approve(approval: str, **more: Any) -> Answer:
    """A yes with the right key."""
    return Answer(approval, Verdict.APPROVE, more.pop("key", KEY), **more)


def reject(approval: str, **more: Any) -> Answer:
    """A no with the right key."""
    return Answer(approval, Verdict.REJECT, more.pop("key", KEY), **more)


class Person:
    """Somebody who is asked at once: says the next of *says* to each question, and keeps every question."""

    def __init__(self, *says: Callable[[Question], Any]) -> None:
        self.asked: list[Question] = []
        self.says = list(says)
        self.withdrawn = 0
        self.came = asyncio.Event()

    async def ask(self, question: Question) -> Answer | None:
        """Answer, at once or when the test lets go."""
        self.asked.append(question)
        self.came.set()
        try:
            said = self.says.pop(0)(question)
            answer: Answer | None = await said if inspect.isawaitable(said) else said
        except asyncio.CancelledError:
            self.withdrawn += 1
            raise
        return answer


async def never(_: Question) -> None:
    """Think about it for good."""
    await asyncio.Event().wait()


def yes(question: Question) -> Answer:
    """Say yes."""
    return approve(question.approval)


def no(question: Question) -> Answer:
    """Say no."""
    return reject(question.approval)


def at_the_desk(person: Asker, **more: Any) -> Approver:
    """An approver who is asked at once."""
    return Approver(KEY, person, **more)


async def answered(it: Scene, path: str, tool: str = "pay") -> list[ToolResult]:
    """The recorded results of the calls of *tool* by the actor *path*, in order."""
    return [
        entry.record.result
        for entry in await it.entries()
        if entry.actor == path and isinstance(entry.record, CallFinished) and entry.record.result.name == tool
    ]


def codes(results: list[ToolResult]) -> list[str]:
    """What each result is: a denial's code, or its outcome."""
    return [result.outcome.value if result.denial is None else result.denial.code for result in results]


def tree(*tools: Tool) -> AgentDefinition:
    """Boss → c → g; only g has *tools*."""
    return agent("boss", children=[agent("c", children=[agent("g", *tools)])])


def handed_down(*of_g: Any) -> dict[str, Callable[[Any], Any]]:
    """The scripts of a tree in which boss and c hand the task down, and g says *of_g*."""

    def down(child: str) -> Callable[[Any], Any]:
        return script(call("delegate", child=child, task="go"), last)

    return {"boss": down("c"), "c": down("g"), "g": script(*of_g, last)}


def last(request: Any) -> str:
    """The last result that a model was told."""
    told = [item.results[-1].text for item in request.history if isinstance(item, Results)]
    return told[-1] if told else "nothing"
