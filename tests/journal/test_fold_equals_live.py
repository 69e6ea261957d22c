"""Replaying any prefix of a journal gives the state that the live session had then."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.grants import Access
from actors.messages import Limits
from actors.tools import tool
from orchestrator.journal.fold import apply, fold
from orchestrator.journal.journal import Journal
from orchestrator.journal.records import decode
from orchestrator.journal.state import ActorState, OwedOutcome, SessionState
from orchestrator.models.function import FunctionModel, call
from orchestrator.testing import ManualClock
from orchestrator.turn import Stop, Turn
from tests.supervision.scene import agent, scene

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.ports import ModelRequest
    from actors.tools import Tool
    from orchestrator.supervisor import Supervisor

FOLDED_ONLY = {"loop", "ended", "last_fact", "crash_mark", "stuck"}


def plain(value: Any) -> Any:
    """A state as data; without what only a fold keeps."""
    if isinstance(value, ActorState):
        return {name: plain(getattr(value, name)) for name in ActorState.__slots__ if name not in FOLDED_ONLY}
    if isinstance(value, OwedOutcome):
        return {name: getattr(value, name) for name in OwedOutcome.__slots__}
    if isinstance(value, SessionState):
        return {name: plain(part) for name, part in vars(value).items()}
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list) else value


class Shadow:
    """Folds every record as it is appended, and compares with the live session just before the next one."""

    def __init__(self) -> None:
        self.supervisor: Supervisor | None = None
        self.state = SessionState()
        self.compared = 0

    def compare(self, journal: Journal) -> None:
        """Hold the fold of all records so far to the live state."""
        if self.supervisor is None or journal is not self.supervisor.journal:
            return
        assert plain(self.state) == plain(journal.state)
        for path, member in self.supervisor.members.items():
            assert self.state.actors[path].loop == member.actor.state, path
        self.compared += 1

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Stand before every append."""
        forward = Journal.append

        def append(journal: Journal, actor: str, record: Any) -> None:
            self.compare(journal)
            forward(journal, actor, record)
            data = journal._log.shelf.records[-1]  # type: ignore[attr-defined]  # a memory log
            apply(self.state, decode(data))

        monkeypatch.setattr(Journal, "append", append)


def toolset(gate: asyncio.Event) -> tuple[Tool, ...]:
    """One tool that reads, one that writes, one that fails, one that waits for the gate."""

    @tool
    async def look(n: int) -> str:
        """Look."""
        return f"saw {n}"

    @tool(access=Access.WRITE)
    async def write(n: int) -> str:
        """Write."""
        return f"wrote {n}"

    @tool
    async def fail(n: int) -> str:
        """Fail."""
        msg = f"fault {n}"
        raise ValueError(msg)

    @tool(access=Access.WRITE)
    async def wait(n: int) -> str:
        """Wait."""
        await gate.wait()
        return f"waited {n}"

    return look, write, fail, wait


names = st.sampled_from(["look", "write", "fail", "wait", "absent", "delegate", "delegate-behind", "list_children"])
batches = st.lists(names, min_size=0, max_size=3)
answers = st.lists(batches, max_size=3)
actions = st.lists(
    st.sampled_from(["run", "turn", "steer", "stop", "tree", "open", "tick", "crash"]), min_size=1, max_size=8
).filter(lambda steps: steps.count("crash") <= 3)  # within the intensity


def playbook(boss: list[list[str]], worker: list[list[str]], crashes: list[bool]) -> Callable[[ModelRequest], Any]:
    """Answer by plan: the n-th batch to the n-th question of an actor; crash when told to."""

    def play(request: ModelRequest) -> Any:
        if crashes:
            crashes.pop()
            msg = "a bug"
            raise RuntimeError(msg)
        plan = boss if request.agent == "boss" else worker
        number = len([item for item in request.history if type(item).__name__ == "ModelReply"])
        batch = plan[number] if number < len(plan) else []
        calls = [told(name, number) for name in batch if request.agent == "boss" or not name.startswith("delegate")]
        return calls or ("1" if number % 3 == 2 else "text")

    return play


def told(name: str, number: int) -> Any:
    if name.startswith("delegate"):
        return call("delegate", child="worker", task=f"task {number}", background=name != "delegate")
    return call(name) if name == "list_children" else call(name, n=number)


@pytest.mark.requirement("I15")
@given(boss=answers, worker=answers, steps=actions, schema=st.sampled_from(["", '{"type":"integer"}']))
@settings(max_examples=60)
async def test_every_prefix_of_a_random_sessions_journal_folds_to_the_live_state(
    boss: list[list[str]], worker: list[list[str]], steps: list[str], schema: str
) -> None:
    gate, clock = asyncio.Event(), ManualClock()
    crashes: list[bool] = []
    tools = toolset(gate)
    definition = agent("boss", *tools, children=[agent("worker", *tools, output=schema)], output=schema)
    shadow = Shadow()
    with pytest.MonkeyPatch.context() as monkeypatch:
        shadow.watch(monkeypatch)
        model = FunctionModel({}, default=playbook(boss, worker, crashes))
        async with asyncio.timeout(10), scene(definition, model, clock=clock) as it:
            shadow.supervisor = it.supervisor
            for step in steps:
                await act(it.session, step, gate, crashes)
                for _ in range(4):
                    await asyncio.sleep(0)
            gate.set()
            await it.quiet()
            shadow.compare(it.supervisor.journal)
            assert plain(fold(await it.entries())) == plain(shadow.state)
    assert shadow.compared > 0


async def act(session: Any, step: str, gate: asyncio.Event, crashes: list[bool]) -> None:
    """Do one thing to the session."""
    if step in ("run", "turn"):
        await session.send(Turn(step, limits=Limits(steps=4)))
    elif step == "steer":
        await session.send("by the way")
    elif step in ("stop", "tree"):
        await session.send(Stop("turn" if step == "stop" else "tree"))
    elif step == "open":
        gate.set()
    elif step == "crash":
        crashes.append(True)
