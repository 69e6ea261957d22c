"""A process that kills itself: ``python -m tests.crash.program STORE LEDGER HANDLE PLACE``.

It begins a session, or resumes the one whose handle is in the file HANDLE, and runs it to its end; at PLACE it sends
itself SIGKILL. Its write tool appends a line to LEDGER by itself (O_APPEND and fsync), which is what the tests count.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from actors.grants import Access
from actors.messages import CallFinished, ModelReply
from actors.tools import tool
from orchestrator.agent import Agent
from orchestrator.models.function import FunctionModel, call
from orchestrator.runtime import RuntimeConfig
from orchestrator.session import SessionHandle
from tests.supervision.scene import agent, script

if TYPE_CHECKING:
    from actors.definition import AgentDefinition
    from actors.ports import ModelRequest
    from orchestrator.supervisor import Supervisor


def die() -> None:
    """End this process as no process ends by itself."""
    os.kill(os.getpid(), signal.SIGKILL)


class Stage:
    """The workload, with the place at which the process dies."""

    def __init__(self, ledger: Path, place: str) -> None:
        self.ledger = ledger
        self.place = place
        self.supervisor: Supervisor | None = None

    def at(self, place: str) -> None:
        """Die if this is the place."""
        if place == self.place:
            die()

    def write(self, line: str) -> None:
        """Append *line* to the ledger, durably."""
        file = os.open(self.ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, f"{line}\n".encode())
        os.fsync(file)
        os.close(file)

    def definition(self) -> AgentDefinition:
        """The boss writes, runs a batch, waits for one child and leaves another in the background."""

        @tool(access=Access.WRITE, parallel_safe=True)
        async def append(line: str) -> str:
            """Append a line."""
            self.at(f"before {line}")
            self.write(line)
            self.at(f"after {line}")
            return f"appended {line}"

        @tool(access=Access.WRITE, parallel_safe=True)
        async def hang(line: str) -> str:
            """Hang until the process dies, if it is to die here."""
            if self.place in ("hang", "hang again"):
                await finished.wait()
                die()
            return f"did not hang {line}"

        finished = asyncio.Event()
        self.finished = finished
        worker = agent("worker", append)
        return agent("boss", append, hang, children=[worker])

    def model(self) -> FunctionModel:
        """The playbook."""
        batch = [call("append", line="1"), call("append", line="2"), call("hang", line="3"), call("append", line="4")]
        children = [
            call("delegate", child="worker", task="front"),
            call("delegate", child="worker", task="behind", background=True),
        ]
        plan = script(call("append", line="first"), batch, children, call("append", line="last"), "done")

        async def boss(request: ModelRequest) -> Any:
            place = f"request {sum(isinstance(item, ModelReply) for item in request.history)}"
            if place == self.place and self.supervisor is not None:
                await self.supervisor.journal.sync()  # so that the place of the crash is on record
            self.at(place)
            return plan(request)

        def worker(request: ModelRequest) -> Any:
            task = request.history[0].text  # type: ignore[union-attr]  # a turn begins with what was said
            self.at(f"request of {task} {len(request.history)}")
            return script(call("append", line=task), f"did {task}")(request)

        return FunctionModel({"boss": boss, "worker": worker})

    def watch(self, supervisor: Supervisor) -> None:
        """Stand at the places inside the supervisor."""
        self.supervisor = supervisor
        ended, idle, append = supervisor.on_ended, supervisor.on_idle, supervisor.journal.append
        finished: set[str] = set()

        def on_ended(member: Any, accepted: Any, end: Any) -> None:
            ended(member, accepted, end)
            self.at(f"end of {accepted.text}")

        def on_idle(member: Any) -> None:
            self.at(f"delivery from {member.id}")
            idle(member)

        def recorded(actor: str, record: Any) -> None:
            append(actor, record)
            if isinstance(record, CallFinished) and record.result.text in {"appended 1", "appended 2", "appended 4"}:
                finished.add(record.result.text)
                if len(finished) == 3:
                    asyncio.get_running_loop().create_task(durable())

        async def durable() -> None:
            await supervisor.journal.sync()
            self.finished.set()

        supervisor.on_ended, supervisor.on_idle = on_ended, on_idle
        supervisor.bridge._journal = Watched(supervisor.journal, recorded)  # type: ignore[assignment]  # the barrier


class Watched:
    """The journal as the bridge sees it, with an ear at `append`."""

    def __init__(self, journal: Any, append: Any) -> None:
        self.journal = journal
        self.append = append

    def __getattr__(self, name: str) -> Any:
        return getattr(self.journal, name)


def known(file: Path) -> SessionHandle | None:
    """The handle in *file*, if there is one."""
    return msgspec.json.decode(file.read_bytes(), type=SessionHandle) if file.exists() else None


def keep(file: Path, handle: SessionHandle) -> None:
    """Write the handle down."""
    file.write_text(str(handle))


async def main(store: str, ledger: str, handle_file: str, place: str) -> None:
    """Begin or resume, and run to the end."""
    handle = known(Path(handle_file))
    stage = Stage(Path(ledger), place)
    async with Agent(stage.definition(), RuntimeConfig(stage.model(), store=store)) as owner:
        start = owner.start(handle)
        async with start as session:
            keep(Path(handle_file), session.snapshot())
            supervisor = start.supervisor
            assert supervisor is not None
            stage.watch(supervisor)
            waiting = handle is not None and supervisor.journal.state.actors["boss"].waiting
            turns = supervisor.journal.state.turns
            if waiting or not turns:
                await session.run(None if waiting else "go")
            while supervisor.tasks:
                await asyncio.wait(set(supervisor.tasks))
            await session.run("anything left?")
            while supervisor.tasks:
                await asyncio.wait(set(supervisor.tasks))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
