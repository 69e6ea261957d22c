"""A process that asks a person and kills itself: ``python -m tests.consent.program``.

Its arguments are STORE LEDGER HANDLE PLACE ANSWER. It begins a session, or resumes the one whose handle is in the file
HANDLE; a child calls a tool that needs a yes. ANSWER ``yes`` answers what is pending. At PLACE the process sends itself
SIGKILL. The tool appends a line to LEDGER by itself, which is what the tests count.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from actors import Access, tool
from actors.tools import Approval
from orchestrator import Agent, RuntimeConfig
from orchestrator.approver import Approver
from orchestrator.models.function import call
from tests.consent.office import KEY, approve, last
from tests.crash.program import die, keep, known
from tests.supervision.scene import agent, plays

if TYPE_CHECKING:
    from actors import AgentDefinition
    from actors.ports import Model
    from orchestrator.supervisor import Supervisor


class Stage:
    """The workload, with the place at which the process dies."""

    def __init__(self, ledger: Path, place: str) -> None:
        self.ledger = ledger
        self.place = place

    def at(self, place: str) -> None:
        """Die if this is the place."""
        if place == self.place:
            die()

    def definition(self) -> AgentDefinition:
        """The boss waits for a child that pays."""

        @tool(access=Access.EXTERNAL, approval=Approval.EACH_CALL)
        async def pay(to: str, amount: int) -> str:
            """Pay somebody."""
            self.at("before the effect")
            with self.ledger.open("a") as file:
                file.write(f"{to} {amount}\n")
                file.flush()
            self.at("after the effect")
            return f"paid {to} {amount}"

        return agent("boss", children=[agent("worker", pay)])

    def model(self, *, replayed: bool) -> Model:
        """The playbook; after the first process it would pay somebody else, if it were asked again."""
        first = call("pay", to="B" if replayed else "A", amount=10)
        return plays(boss=[call("delegate", child="worker", task="pay"), last], worker=[first, last])

    async def drive(self, supervisor: Supervisor, session: Any, answer: str) -> None:
        """Run until the session asks, answer if that is wanted, and run on to the end or the next question."""
        waiting = supervisor.journal.state.actors["boss"].waiting
        if waiting or not supervisor.journal.state.turns:
            await session.run(None if waiting else "go")
        await self.quiet(supervisor)
        await supervisor.journal.sync()
        self.at("parked")
        if answer == "yes":
            for approval in supervisor.approvals.pending():
                if self.place == "answered":
                    supervisor.closing = True  # nobody is woken: the answer is on record, and no more
                supervisor.approvals.answer(approve(approval))
                await supervisor.journal.sync()
                self.at("answered")
        await self.quiet(supervisor)
        await supervisor.journal.sync()
        self.at("the end")

    async def quiet(self, supervisor: Supervisor) -> None:
        """Return when no actor is active."""
        while supervisor.tasks:
            await asyncio.wait(set(supervisor.tasks))


async def main(store: str, ledger: str, handle_file: str, place: str, answer: str) -> None:
    """Begin or resume, and go as far as there is a way."""
    handle = known(Path(handle_file))
    stage = Stage(Path(ledger), place)
    config = RuntimeConfig(stage.model(replayed=handle is not None), store=store, approver=Approver(KEY))
    async with Agent(stage.definition(), config) as owner:
        start = owner.start(handle)
        async with start as session:
            keep(Path(handle_file), session.snapshot())
            assert start.supervisor is not None
            await stage.drive(start.supervisor, session, answer)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
