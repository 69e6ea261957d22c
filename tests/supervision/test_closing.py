"""Closing: nothing is left running, open turns are parked, and what was parked goes on when it is resumed."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

import pytest

from actors.grants import Access
from actors.messages import StopReason
from actors.tools import tool
from orchestrator.journal.memory import MemoryStore
from orchestrator.journal.records import SessionParked
from orchestrator.models.function import FunctionModel, call
from orchestrator.runtime import SessionLimits
from orchestrator.turn import Turn
from tests.supervision.scene import agent, faults, plays, scene, script
from tests.supervision.test_stopping import Blocked, Stubborn, background

if TYPE_CHECKING:
    from actors.ports import ModelRequest

BRIEF = SessionLimits(grace_s=0.01)


def others() -> set[str]:
    """The names of the tasks that run beside this one."""
    return {task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()}


@pytest.mark.requirement("I11")
async def test_closing_in_mid_turn_leaves_no_task_and_answers_the_caller_as_suspended() -> None:
    inner = Blocked()
    boss = agent("boss", children=[agent("worker", children=[agent("leaf")])])
    deep: dict[str, Any] = {
        "boss": script(background("worker")),
        "worker": script(call("delegate", child="leaf", task="x")),
        "leaf": inner,
    }
    async with asyncio.timeout(5):
        before = others()
        async with scene(boss, FunctionModel(deep)) as it:
            await it.session.run("go")
            await inner.entered.wait()
            blocked = Blocked()
            it.supervisor.members["boss"].actor.model = plays(boss=blocked)
            running = asyncio.create_task(it.session.run("more"))
            await blocked.entered.wait()
        assert (await running).stop_reason is StopReason.SUSPENDED
        assert others() == before
        assert len((await it.records(SessionParked))[0].turns) == 3


@pytest.mark.requirement("I11")
async def test_closing_before_a_turn_has_taken_its_first_step_leaves_nothing() -> None:
    async with asyncio.timeout(5):
        before = others()
        async with scene(agent("boss"), plays(boss=["ok"])) as it:
            await it.session.send(Turn("go"))
        assert others() == before
    gc.collect()  # a coroutine that nobody awaited is told of here, not in a neighbour


@pytest.mark.requirement("I11")
async def test_only_what_does_not_yield_is_left_and_it_is_named() -> None:
    with Stubborn(99) as stubborn:
        async with asyncio.timeout(5):
            before = others()
            async with scene(agent("boss", stubborn.tool()), plays(boss=[call("stubborn")]), limits=BRIEF) as it:
                running = asyncio.create_task(it.session.run("go"))
                await stubborn.entered.wait()
            result = await running
            assert result.stop_reason is StopReason.SUSPENDED
            assert [line for line in result.diagnostics if "abandoned" in line and "boss" in line]
            assert others() - before == {"boss"}
            stubborn.go_on.set()
            await it.quiet()
            assert others() == before


@pytest.mark.requirement("I11")
async def test_a_caller_that_gives_up_closing_does_not_stop_the_closing() -> None:
    store = MemoryStore()
    with Stubborn(99) as stubborn:
        limits = SessionLimits(grace_s=0.02)
        async with asyncio.timeout(5):
            boss = agent("boss", stubborn.tool())
            async with scene(boss, plays(boss=[call("stubborn")]), store=store, limits=limits) as it:
                running = asyncio.create_task(it.session.run("go"))
                await stubborn.entered.wait()
                closing = asyncio.create_task(it.session.close())
                await asyncio.sleep(0)
                closing.cancel()
                await asyncio.gather(closing, return_exceptions=True)
                await it.session.close()
                async with asyncio.timeout(1):
                    assert (await running).stop_reason is StopReason.SUSPENDED
                assert store.shelves[it.session.snapshot().session].holder is None
                stubborn.go_on.set()
                await it.quiet()


@pytest.mark.requirement("B44")
@pytest.mark.parametrize("who", ["tool", "model"])
async def test_after_closing_began_no_model_is_asked_whoever_swallows_the_cancellation(who: str) -> None:
    asked: list[str] = []
    with Stubborn(1) as stubborn:

        async def play(request: ModelRequest) -> Any:
            asked.append(request.turn)
            if who == "model" and len(asked) == 1:
                stubborn.entered.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    return call("get_api_spec", tool_name="stubborn")
            return call("stubborn") if len(asked) == 1 else "never"

        async with asyncio.timeout(5):
            async with scene(agent("boss", stubborn.tool()), plays(boss=play), limits=BRIEF) as it:
                running = asyncio.create_task(it.session.run("go"))
                await stubborn.entered.wait()
                stubborn.go_on.clear()
                closing = asyncio.create_task(it.session.close())
                await asyncio.sleep(0)
                stubborn.go_on.set()
                await closing
            await running
            assert len(asked) == 1


@pytest.mark.requirement("I14")
@pytest.mark.parametrize("access", [Access.READ, Access.WRITE])
async def test_a_tool_that_swallows_the_closing_does_not_spoil_the_resume(access: Access) -> None:
    store = MemoryStore()
    with Stubborn(1) as stubborn:
        boss = agent("boss", stubborn.tool(access))
        async with asyncio.timeout(5):
            async with scene(boss, plays(boss=[call("stubborn")]), store=store) as it:
                running = asyncio.create_task(it.session.run("go"))
                await stubborn.entered.wait()
                closing = asyncio.create_task(it.session.close())
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                stubborn.go_on.set()
                await closing
            assert (await running).stop_reason is StopReason.SUSPENDED
            async with scene(
                boss, plays(boss=[call("stubborn"), "done"]), store=store, handle=it.session.snapshot()
            ) as again:
                assert (await again.session.run()).stop_reason is StopReason.COMPLETED
                assert faults(await again.entries()) == []


@pytest.mark.requirement("I9")
async def test_a_parked_turn_goes_on_under_its_id_and_runs_nothing_again_that_finished() -> None:
    ledger: list[str] = []
    blocked, store = Blocked(), MemoryStore()

    @tool(access=Access.WRITE)
    async def append(text: str) -> str:
        """Append to the ledger."""
        ledger.append(text)
        return text

    boss = agent("boss", append)
    async with asyncio.timeout(5):
        model = FunctionModel({"boss": script(call("append", text="1"), blocked)})
        async with scene(boss, model, store=store) as it:
            running = asyncio.create_task(it.session.run("go"))
            await blocked.entered.wait()
        parked = await running
        model = plays(boss=["never", call("append", text="2"), "done"])
        async with scene(boss, model, store=store, handle=it.session.snapshot()) as again:
            result = await again.session.run()
            assert (result.turn, result.output) == (parked.turn, "done")
            assert faults(await again.entries()) == []
    assert ledger == ["1", "2"]


@pytest.mark.requirement("B54")
@pytest.mark.parametrize("limit", [1, 3])
async def test_parents_that_wait_for_children_finish_under_any_limit_of_model_requests(limit: int) -> None:
    now = most = 0

    def counted(play: Any) -> Any:
        async def ask(request: ModelRequest) -> Any:
            nonlocal now, most
            now += 1
            most = max(most, now)
            for _ in range(3):
                await asyncio.sleep(0)
            now -= 1
            return play(request)

        return ask

    leaf = agent("leaf")
    child = agent("child", children=[leaf])
    parent = agent("parent", children=[child])
    boss = agent("boss", children=[parent])
    pair = [call("delegate", child="child", task=name) for name in "ab"]
    model = FunctionModel(
        {
            "boss": counted(script([call("delegate", child="parent", task=str(n)) for n in range(5)], "all done")),
            "parent": counted(script(pair, "parent done")),
            "child": counted(script(call("delegate", child="leaf", task="y"), "child done")),
            "leaf": counted(script("leaf done")),
        }
    )
    limits = SessionLimits(model_requests=limit)
    async with asyncio.timeout(10), scene(boss, model, limits=limits) as it:
        result = await it.session.run("go")
        assert (result.output, result.failures) == ("all done", ())
        assert most == limit
        assert faults(await it.entries()) == []
        assert list(it.supervisor.members) == ["boss"]
