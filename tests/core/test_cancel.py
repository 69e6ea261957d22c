"""Stopping: no model request follows, every open call is answered, late results change nothing."""

from __future__ import annotations

import asyncio

import pytest

from actors import Access, Grants, Role, StopReason
from actors.messages import CallFinished, Outcome
from orchestrator import Agent, RuntimeConfig, SessionLimits, Stop, Turn
from orchestrator.journal.records import EffectSettled, TurnEnded
from orchestrator.runtime import Observability
from orchestrator.testing import FunctionModel, ManualClock, call
from tests.core.stage import Gate, Ledger, agent, made, over, paired, results, staged, written


@pytest.mark.requirement("B26", "I15")
async def test_after_a_cancel_each_open_call_has_one_result_and_the_conversation_goes_on() -> None:
    slow, done = Gate(), asyncio.Event()

    async def fast(_: object, __: object) -> str:
        done.set()
        return "real"

    tools = (made("slow", slow.wait), made("fast", fast))
    batch = [call("slow", call_id="a"), call("slow", call_id="b", n=2), call("fast", call_id="c")]
    runner, model = staged(agent(*tools), batch, "went on")
    async with asyncio.timeout(5), runner, runner.start() as session:
        run = asyncio.ensure_future(session.run("go"))
        await asyncio.gather(slow.entered.wait(), done.wait())
        stops = [await session.send(Stop()), await session.send(Stop())]
        assert (await run).stop_reason is StopReason.CANCELLED
        slow.leave.set()
        assert (await session.run("go on")).output == "went on"
        finished = await written(session, CallFinished)
    assert stops[0].how == "stopping"
    answered = results(model.requests[1])
    assert [(item.call_id, item.outcome) for item in answered] == [
        ("a", Outcome.CANCELLED),
        ("b", Outcome.CANCELLED),
        ("c", Outcome.OK),
    ]
    assert answered[2].text == "real"
    assert paired(model.requests[1].history)
    assert len({record.result.call_id for record in finished}) == len(finished)


@pytest.mark.requirement("B26")
async def test_calls_that_had_not_begun_when_a_turn_was_stopped_never_do_and_are_answered() -> None:
    gate, ledger = Gate(), Ledger()
    tools = (made("slow", gate.wait, Access.WRITE), ledger.tool("put", Access.WRITE))
    runner, model = staged(agent(*tools), [call("slow", call_id="a"), call("put", call_id="b")], "ok")
    async with asyncio.timeout(5), runner, runner.start() as session:
        run = asyncio.ensure_future(session.run("go"))
        await gate.entered.wait()
        await session.send(Stop())
        await run
        await session.run("go on")
    assert ledger.lines == []
    answered = results(model.requests[1])
    assert [(item.call_id, item.outcome) for item in answered] == [("a", Outcome.UNKNOWN), ("b", Outcome.CANCELLED)]


@pytest.mark.requirement("B44")
@pytest.mark.parametrize("access", [Access.READ, Access.WRITE])
async def test_a_tool_that_turns_its_cancellation_into_an_answer_does_not_keep_the_turn_alive(access: Access) -> None:
    gate = Gate()

    async def sneaky(_: object, __: object) -> str:
        try:
            return await gate.wait()
        except asyncio.CancelledError:
            return "cancelled"

    runner, model = staged(agent(made("sneaky", sneaky, access)), call("sneaky"), "next")
    async with asyncio.timeout(5), runner, runner.start() as session:
        run = asyncio.ensure_future(session.run("go"))
        await gate.entered.wait()
        await session.send(Stop())
        result = await run
        assert len(model.requests) == 1
        assert result.stop_reason is StopReason.CANCELLED
        assert (await session.run("more")).output == "next"
    assert paired(model.requests[1].history)


class Stubborn:
    """A tool that goes on waiting after its first *most* cancellations."""

    def __init__(self, most: int) -> None:
        self.entered = asyncio.Event()
        self.leave = asyncio.Event()
        self.ended = asyncio.Event()
        self.shaken = asyncio.Event()
        self.most = most
        self.calls = 0
        self.cancelled = 0

    async def run(self, _: object, __: object) -> str:
        """Wait, and swallow cancellations; a second call does not wait."""
        self.calls += 1
        if self.calls > 1:
            return "ran again"
        self.entered.set()
        try:
            while not self.leave.is_set():
                try:
                    await self.leave.wait()
                except asyncio.CancelledError:
                    self.cancelled += 1
                    self.shaken.set()
                    if self.cancelled > self.most:
                        raise
        finally:
            self.ended.set()
        return "at last"


@pytest.mark.requirement("B44")
async def test_a_second_stop_forces_a_tool_that_swallowed_the_first() -> None:
    tool = Stubborn(1)
    runner, model = staged(
        agent(made("stubborn", tool.run)), call("stubborn"), observability=Observability(ManualClock())
    )
    async with asyncio.timeout(5), runner, runner.start() as session:
        run = asyncio.ensure_future(session.run("go"))
        await tool.entered.wait()
        await session.send(Stop())
        await session.send(Stop())
        await tool.shaken.wait()
        if not tool.ended.is_set():
            await session.send(Stop())
        assert (await run).stop_reason is StopReason.CANCELLED
    assert len(model.requests) == 1


@pytest.mark.requirement("B44", "I11")
async def test_a_tool_that_never_yields_is_left_behind_by_name_within_twice_the_grace_time() -> None:
    clock, tool = ManualClock(), Stubborn(3)
    config = {"observability": Observability(clock), "limits": SessionLimits(grace_s=2.0)}
    runner, model = staged(
        agent(made("stubborn", tool.run, Access.WRITE)), call("stubborn", call_id="c"), "next", **config
    )
    async with asyncio.timeout(5), runner, runner.start() as session:
        run = asyncio.ensure_future(session.run("go"))
        await tool.entered.wait()
        await session.send(Stop())
        for seen in (1, 2):
            await tool.shaken.wait()
            tool.shaken.clear()
            assert tool.cancelled == seen
            assert not run.done()
            clock.advance(2)
        result = await run
        assert result.stop_reason is StopReason.CANCELLED
        assert "abandoned: boss" in result.diagnostics[-1]
        assert (await session.run("more")).output == "next"
        tool.leave.set()
        await tool.ended.wait()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        finished = await written(session, CallFinished)
        ended = await written(session, TurnEnded)
    assert len(model.requests) == 2
    assert paired(model.requests[1].history)
    assert len(finished) <= 1
    assert len(ended) == 2


@pytest.mark.requirement("B26", "I9")
async def test_the_late_result_of_an_abandoned_write_settles_its_effect_and_enters_no_history() -> None:
    clock, tool = ManualClock(), Stubborn(3)
    runner, model = staged(
        agent(made("put", tool.run, Access.WRITE)),
        call("put", a=1),
        call("put", a=1),
        "ok",
        "last",
        observability=Observability(clock),
    )
    async with asyncio.timeout(5), runner, runner.start() as session:
        run = asyncio.ensure_future(session.run("go"))
        await tool.entered.wait()
        await session.send(Stop())
        for seen in (1, 2):
            await tool.shaken.wait()
            tool.shaken.clear()
            assert tool.cancelled == seen
            clock.advance(2)
        await run
        await session.run("again")
        assert tool.calls == 1
        denial = results(model.requests[2])[0].denial
        assert denial is not None
        assert denial.code == "unresolved_effect"
        tool.leave.set()
        await tool.ended.wait()
        for _ in range(3):
            await asyncio.sleep(0)
        settled = await written(session, EffectSettled)
        await session.run("and")
    assert [record.happened for record in settled] == [True]
    assert paired(model.requests[-1].history)


@pytest.mark.requirement("B44")
async def test_no_model_request_follows_a_stop_that_comes_while_the_model_is_asked() -> None:
    entered = asyncio.Event()

    async def hangs(request: object) -> str:
        entered.set()
        await asyncio.Event().wait()
        return str(request)

    config = RuntimeConfig(FunctionModel({"boss": hangs}))
    async with asyncio.timeout(5), Agent(agent(), config) as runner, runner.start() as session:
        run = asyncio.ensure_future(session.run("go"))
        await entered.wait()
        entered.clear()
        await session.send(Stop())
        assert (await run).stop_reason is StopReason.CANCELLED
        assert not entered.is_set()


@pytest.mark.requirement("B44")
async def test_a_stop_that_overtakes_its_turn_is_remembered() -> None:
    gate, ledger = Gate(), Ledger()
    runner, model = staged(
        agent(made("hold", gate.wait), ledger.tool("put", Access.WRITE)), call("hold"), "one", call("put")
    )
    async with asyncio.timeout(5), runner, runner.start() as session:
        run = asyncio.ensure_future(session.run("go"))
        await gate.entered.wait()
        queued = await session.send(Turn("write"))
        session._supervisor.stops.turn(session._root, queued.turn, StopReason.CANCELLED, "not any more")
        gate.leave.set()
        await run
        await over(session, queued.turn)
        ended = await written(session, TurnEnded)
    assert [record.reason for record in ended] == [StopReason.COMPLETED, StopReason.CANCELLED]
    assert (ledger.lines, len(model.requests)) == ([], 2)


async def test_stopping_a_turn_leaves_background_children_and_stopping_the_tree_does_not() -> None:
    gates = [Gate(), Gate()]
    child = agent(made("work", gates[0].wait), name="c", role=Role.CHILD)
    boss = agent(made("hold", gates[1].wait), children=(child,), wake=False)
    script = [call("delegate", child="c", task="x", background=True), call("hold"), call("hold")]
    runner, _ = staged(boss, *script, others={"c": [call("work"), "never"]})
    async with asyncio.timeout(5), runner, runner.start() as session:
        run = asyncio.ensure_future(session.run("go"))
        await asyncio.gather(*(gate.entered.wait() for gate in gates))
        await session.send(Stop("turn"))
        await run
        assert list(session._supervisor.members) == ["boss", "boss/c-0002"]
        await session.send(Stop("tree"))
        assert list(session._supervisor.members) == ["boss"]


@pytest.mark.requirement("I6")
@pytest.mark.parametrize("grants", [Grants(), Grants(("children.start",))])
async def test_a_stopped_turn_leaves_no_right_behind_for_the_next(grants: Grants) -> None:
    gate, ledger = Gate(), Ledger()
    tools = (made("hold", gate.wait), ledger.tool("put", Access.WRITE))
    runner, _ = staged(agent(*tools), call("hold"), call("put"), "ok")
    async with asyncio.timeout(5), runner, runner.start() as session:
        run = asyncio.ensure_future(session.run("go"))
        await gate.entered.wait()
        old = session._root.capability
        await session.send(Stop())
        await run
        await session.run(Turn("read only", grants=grants))
        assert old is not None
        assert old.revoked
    assert ledger.lines == []
