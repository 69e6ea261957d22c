"""A session cut off after any one of its records is resumed to its end, and nothing happens twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from actors.grants import Access
from actors.messages import Limits, StopReason
from actors.tools import tool
from orchestrator.journal.fold import fold
from orchestrator.journal.memory import MemoryStore
from orchestrator.journal.records import CallIntended, TurnAccepted, TurnEnded, decode
from orchestrator.models.function import FunctionModel, call
from orchestrator.turn import Turn
from tests.supervision.scene import agent, cut, faults, heard, plays, scene, script
from tests.supervision.test_stopping import Blocked, background

if TYPE_CHECKING:
    from actors.definition import AgentDefinition
    from actors.ports import ModelRequest
    from actors.tools import Tool


def writer(ledger: list[str]) -> Tool:
    """A tool whose effect is a line of *ledger*."""

    @tool(access=Access.WRITE)
    async def write(line: str) -> str:
        """Write a line."""
        ledger.append(line)
        return f"wrote {line}"

    return write


def task(request: ModelRequest) -> str:
    """What the actor was started with."""
    return heard(request)[0]


def by_task(request: ModelRequest) -> Any:
    """A worker that writes its task and answers with it."""
    return script(call("write", line=task(request)), f"did {task(request)}")(request)


def foreground(ledger: list[str]) -> tuple[AgentDefinition, FunctionModel]:
    """Two children awaited at once, a write before and after."""
    both = [call("delegate", child="worker", task=name) for name in ("a", "b")]
    boss = agent("boss", writer(ledger), children=[agent("worker", writer(ledger))])
    answers = [call("write", line="before"), both, call("write", line="after"), "done"]
    return boss, FunctionModel({"boss": script(*answers), "worker": by_task})


def behind(ledger: list[str]) -> tuple[AgentDefinition, FunctionModel]:
    """Children in the background, one of which has a child of its own; one is collected."""
    leaf = agent("leaf", writer(ledger))
    boss = agent("boss", children=[agent("worker", writer(ledger), children=[leaf])])
    model = FunctionModel(
        {
            "boss": script(delegated("a", "b"), call("collect_child", child="worker-0002"), "turn over"),
            "worker": lambda request: script(
                call("write", line=task(request)),
                call("delegate", child="leaf", task=f"{task(request)} leaf", background=True),
            )(request),
            "leaf": by_task,
        }
    )
    return boss, model


def delegated(*tasks: str) -> list[Any]:
    return [call("delegate", child="worker", task=task, background=True) for task in tasks]


def stopped(ledger: list[str]) -> tuple[AgentDefinition, FunctionModel]:
    """A child that is stopped explicitly while it works."""
    boss = agent("boss", children=[agent("worker", writer(ledger))])
    worker = Blocked()
    stop = call("stop_child", child="worker-0002")
    return boss, FunctionModel({"boss": script(delegated("a"), stop, "stopped"), "worker": worker})


async def whole(definition: AgentDefinition, model: FunctionModel) -> tuple[MemoryStore, Any]:
    """Run the workload to its end once; return its store and handle."""
    store = MemoryStore()
    async with scene(definition, model, store=store) as it:
        await it.session.run("go")
        await it.quiet()
    return store, it.session.snapshot()


async def resumed(build: Any, store: MemoryStore, handle: Any, length: int) -> list[str]:
    """Resume from the first *length* records; return what is wrong at the end."""
    records = [decode(data) for data in store.shelves[handle.session].records[:length]]
    before = [
        f"{e.record.arguments}" for e in records if isinstance(e.record, CallIntended) and e.record.tool == "write"
    ]
    ledger: list[str] = []
    definition, model = build(ledger)
    left = cut(store, handle.session, length)
    try:
        async with asyncio.timeout(2), scene(definition, model, store=left, handle=handle) as it:
            if it.supervisor.journal.state.actors["boss"].waiting:
                await it.session.run()
            await it.quiet()
            for _ in range(3):  # what came of notices waits for the next turn, at each level
                await it.session.run(Turn("anything left?"))
                await it.quiet()
            wrong = faults(await it.entries())
            children = {path for path in it.supervisor.members if path != "boss"}
            wrong += [f"left alive: {sorted(children)}"] if children else []
    except Exception as error:  # noqa: BLE001  # the table shows every length that fails, and how
        return [repr(error)]
    happened = Counter(before) + Counter(f'{{"line":"{line}"}}' for line in ledger)
    return wrong + [f"{line} happened {times} times" for line, times in happened.items() if times > 1]


@pytest.mark.requirement("I9", "I10", "I14", "B48")
@pytest.mark.parametrize("build", [foreground, behind, stopped])
async def test_a_session_cut_off_after_any_record_comes_to_its_end_with_nothing_twice(build: Any) -> None:
    async with asyncio.timeout(60):
        store, handle = await whole(*build([]))
        records = store.shelves[handle.session].records
        assert len(records) > 10
        found = {}
        for length in range(1, len(records) + 1):
            wrong = await resumed(build, store, handle, length)
            if wrong:
                found[length, type(decode(records[length - 1]).record).__name__] = wrong
    assert found == {}


async def reached(store: MemoryStore, handle: Any) -> int:
    """How many records are in the store."""
    return len(await store.read(handle.session))


class Hanging:
    """A playbook that waits for ever; ``entered`` tells when."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()

    async def __call__(self, _: ModelRequest) -> str:
        self.entered.set()
        await asyncio.Event().wait()
        return "never"


async def crash_in_request(store: MemoryStore, handle: Any) -> MemoryStore:
    """Resume, get as far as a model request, and crash there: what is in the store then."""
    hanging = Hanging()
    async with scene(agent("boss"), plays(boss=hanging), store=store, handle=handle):
        await hanging.entered.wait()
        length = await reached(store, handle)
    return cut(store, handle.session, length)


async def begun() -> tuple[MemoryStore, Any]:
    """A session that crashed in its first model request."""
    store, hanging = MemoryStore(), Hanging()
    async with scene(agent("boss"), plays(boss=hanging), store=store) as it:
        running = asyncio.create_task(it.session.run("go"))
        await hanging.entered.wait()
        length = len(await it.entries())
    await running
    return cut(store, it.session.snapshot().session, length), it.session.snapshot()


async def test_a_crash_in_a_model_request_asks_again_and_a_second_one_at_the_same_place_fails_the_turn() -> None:
    async with asyncio.timeout(5):
        store, handle = await begun()
        async with scene(
            agent("boss"), plays(boss=["done"]), store=cut(store, handle.session, 99), handle=handle
        ) as it:
            assert (await it.session.run()).output == "done"
        store = await crash_in_request(store, handle)
        async with scene(agent("boss"), plays(boss=["done"]), store=store, handle=handle) as it:
            result = await it.session.run()
            assert result.stop_reason is StopReason.FAILED
            assert "twice at the same place" in result.diagnostics[0]
            assert faults(await it.entries()) == []
            assert (await it.session.run("again")).output == "done"


async def test_closing_in_a_model_request_is_no_crash_and_does_not_count_as_one() -> None:
    hanging, store = Hanging(), MemoryStore()
    async with asyncio.timeout(5):
        async with scene(agent("boss"), plays(boss=hanging), store=store) as it:
            running = asyncio.create_task(it.session.run("go"))
            await hanging.entered.wait()
        await running
        handle = it.session.snapshot()
        store = await crash_in_request(store, handle)
        async with scene(agent("boss"), plays(boss=["done"]), store=store, handle=handle) as again:
            assert (await again.session.run()).output == "done"


async def test_a_turn_whose_last_call_is_sealed_at_its_limit_of_repeats_ends_once() -> None:
    ledger: list[str] = []
    boss = agent("boss", writer(ledger))
    model = plays(boss=[call("write", line="a"), call("write", line="b"), "done"])
    store = MemoryStore()
    async with asyncio.timeout(5):
        async with scene(boss, model, store=store) as it:
            await it.session.run(Turn("go", limits=Limits(repeats=1)))
            entries = await it.entries()
        last = max(entry.seq for entry in entries if isinstance(entry.record, CallIntended))
        left = cut(store, it.session.snapshot().session, last)
        async with scene(boss, model, store=left, handle=it.session.snapshot()) as again:
            await again.quiet()
            assert [end.reason for end in await again.records(TurnEnded)] == [StopReason.REPEATED_CALLS]
            state = fold(await again.entries())
            texts = [getattr(item, "text", "") for item in state.actors["boss"].loop.history]
            assert texts.count("go") == 1
            assert faults(await again.entries()) == []


async def test_what_an_actor_spent_before_a_crash_is_still_spent_after_the_resume() -> None:
    from actors.grants import Budget, Grants
    from orchestrator.agent import Agent
    from orchestrator.runtime import OWNER, Principal, RuntimeConfig

    @tool
    async def look(n: int) -> str:
        """Look."""
        return str(n)

    grants = Grants(OWNER.authorities, OWNER.access, OWNER.roots, Budget(calls=2))
    store, boss = MemoryStore(), agent("boss", look)
    model = plays(boss=[[call("look", n=1), call("look", n=2)], "first", call("look", n=3), "second"])
    agent_of = Agent(boss, RuntimeConfig(model, principal=Principal(grants=grants), store=store))
    async with asyncio.timeout(5):
        async with agent_of.start() as session:
            assert (await session.run("go")).failures == ()
        async with agent_of.start(session.snapshot()) as session:
            result = await session.run("more")
            assert len(result.failures) == 1
            assert "budget" in result.failures[0]


@pytest.mark.requirement("I1")
async def test_a_background_child_resumes_as_running_with_its_id_and_turn_under_a_new_lease() -> None:
    store, worker = MemoryStore(), Blocked()
    boss = agent("boss", children=[agent("worker")])
    async with asyncio.timeout(5):
        async with scene(
            boss, FunctionModel({"boss": script(background("worker")), "worker": worker}), store=store
        ) as it:
            await it.session.run("go")
            await worker.entered.wait()
            length, handle = len(await it.entries()), it.session.snapshot()
            task = it.supervisor.journal.state.actors["boss/worker-0002"].task
        left = cut(store, handle.session, length)
        model = plays(boss=[background("worker")], worker=["done"])
        async with scene(boss, model, store=left, handle=handle) as again:
            await again.quiet()
            assert list(again.supervisor.journal.state.actors) == ["boss", "boss/worker-0002"]
            accepted = [
                e.record.turn for e in await again.entries() if isinstance(e.record, TurnAccepted) and e.actor != "boss"
            ]
            assert accepted == [task]
            assert faults(await again.entries()) == []
