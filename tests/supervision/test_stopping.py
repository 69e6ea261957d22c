"""Stops: who is stopped, who is left alone, what is left behind, and that nothing goes on afterwards."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from actors.errors import MailboxFull
from actors.grants import Access
from actors.messages import Limits, Outcome, Results, StopReason
from actors.tools import tool
from orchestrator.errors import SessionClosed
from orchestrator.journal.memory import MemoryStore
from orchestrator.journal.records import ChildStatus, OutcomeDropped, OutcomeRecorded, TurnEnded
from orchestrator.models.function import FunctionModel, call
from orchestrator.runtime import SessionLimits
from orchestrator.testing import ManualClock
from orchestrator.turn import Stop, Turn
from tests.supervision.scene import agent, faults, heard, plays, scene, script

if TYPE_CHECKING:
    from typing import Self

    from actors.ports import ModelRequest
    from actors.tools import Tool


class Blocked:
    """A playbook that waits until it is let go; ``asked`` counts its requests."""

    def __init__(self, answer: str = "done") -> None:
        self.answer = answer
        self.entered, self.go_on = asyncio.Event(), asyncio.Event()
        self.asked = 0

    async def __call__(self, _: ModelRequest) -> str:
        self.asked += 1
        self.entered.set()
        await self.go_on.wait()
        return self.answer


class Stubborn:
    """A tool that does not give way: it swallows *swallowed* cancellations while it waits for ``go_on``.

    Leaving its ``with`` block lets it go, so that a failing test does not hang.
    """

    def __init__(self, swallowed: int) -> None:
        self.left = swallowed
        self.entered, self.go_on, self.over = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.swallowed = asyncio.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.go_on.set()

    def tool(self, access: Access = Access.READ, **declared: Any) -> Tool:
        """Return it as a tool."""

        @tool(name="stubborn", access=access, timeout_s=None, **declared)
        async def run() -> str:
            """Wait, whatever happens."""
            self.entered.set()
            while not self.go_on.is_set():
                try:
                    await self.go_on.wait()
                except asyncio.CancelledError:
                    self.left -= 1
                    self.swallowed.set()
                    if self.left < 0:
                        raise
            self.over.set()
            return "finished all the same"

        return run


def background(*names: str) -> list[Any]:
    return [call("delegate", child=name, task="x", background=True) for name in names]


@pytest.mark.requirement("I14")
async def test_stopping_the_turn_leaves_background_children_running() -> None:
    worker, wait = Blocked(), Blocked()
    boss = agent("boss", children=[agent("worker")])
    model = FunctionModel({"boss": script(background("worker"), wait), "worker": worker})
    async with asyncio.timeout(5), scene(boss, model) as it:
        running = asyncio.create_task(it.session.run("go"))
        await asyncio.gather(wait.entered.wait(), worker.entered.wait())
        delivery = await it.session.send(Stop())
        assert delivery.how == "stopping"
        assert (await running).stop_reason is StopReason.CANCELLED
        assert sorted(it.supervisor.members) == ["boss", "boss/worker-0002"]
        worker.go_on.set()
        wait.go_on.set()
        await it.quiet()
        assert (await it.records(OutcomeRecorded))[0].status is ChildStatus.COMPLETED
        assert (await it.session.run("still there?")).stop_reason is StopReason.COMPLETED
        assert faults(await it.entries()) == []


async def test_stopping_the_tree_ends_every_descendant_silently_and_the_session_lives_on() -> None:
    leaf = Blocked()
    middle = agent("middle", children=[agent("leaf")])
    boss = agent("boss", children=[middle])
    model = FunctionModel({"boss": script(background("middle")), "middle": script(background("leaf")), "leaf": leaf})
    async with asyncio.timeout(5), scene(boss, model) as it:
        await it.session.run("go")
        await leaf.entered.wait()
        await it.session.send(Stop("tree"))
        await it.quiet()
        assert list(it.supervisor.members) == ["boss"]
        assert leaf.asked == 1
        cancelled = [o for o in await it.records(OutcomeRecorded) if o.status is ChildStatus.CANCELLED]
        assert [outcome.child for outcome in cancelled] == ["boss/middle-0002/leaf-0003"]
        assert {drop.turn for drop in await it.records(OutcomeDropped)} >= {cancelled[0].turn}
        assert (await it.session.run("next")).stop_reason is StopReason.COMPLETED
        assert faults(await it.entries()) == []


@pytest.mark.requirement("I14")
async def test_after_a_stop_of_the_tree_no_actor_asks_a_model_or_starts_a_child() -> None:
    asked: list[str] = []
    first = Blocked()

    async def boss_play(_: ModelRequest) -> Any:
        asked.append("boss")
        if len(asked) == 1:
            return call("delegate", child="first", task="x")
        return background("second")

    boss = agent("boss", children=[agent("first"), agent("second")])
    model = FunctionModel({"boss": boss_play, "first": first, "second": Blocked()})
    async with asyncio.timeout(5), scene(boss, model) as it:
        running = asyncio.create_task(it.session.run("go"))
        await first.entered.wait()
        await it.session.send(Stop("tree"))
        assert (await running).stop_reason is StopReason.CANCELLED
        assert asked == ["boss"]
        assert list(it.supervisor.members) == ["boss"]


@pytest.mark.requirement("I14")
async def test_a_stop_of_the_tree_also_ends_a_child_that_is_just_being_started() -> None:
    late = Blocked()
    boss = agent("boss", children=[agent("late")])
    model = FunctionModel({"boss": script(call("delegate", child="late", task="x")), "late": late})
    async with asyncio.timeout(5), scene(boss, model) as it:
        forward, stops = it.supervisor.spawn, []

        def spawn(*given: Any, **named: Any) -> Any:
            member = forward(*given, **named)
            stops.append(asyncio.get_running_loop().create_task(it.session.send(Stop("tree"))))
            return member

        it.supervisor.spawn = spawn  # type: ignore[method-assign]  # the barrier
        assert (await it.session.run("go")).stop_reason is StopReason.CANCELLED
        await asyncio.gather(*stops)
        await it.quiet()
        assert list(it.supervisor.members) == ["boss"]
        assert faults(await it.entries()) == []


async def test_stopping_twice_cancels_each_child_once() -> None:
    worker = Blocked()
    boss = agent("boss", children=[agent("worker")])
    model = FunctionModel({"boss": script(background("worker")), "worker": worker})
    async with asyncio.timeout(5), scene(boss, model) as it:
        await it.session.run("go")
        await worker.entered.wait()
        await asyncio.gather(it.session.send(Stop("tree")), it.session.send(Stop("tree")))
        await it.quiet()
        assert [end.reason for end in await it.records(TurnEnded)] == [StopReason.COMPLETED, StopReason.CANCELLED]
        assert len(await it.records(OutcomeRecorded)) == 1
        assert faults(await it.entries()) == []


@pytest.mark.requirement("I11")
async def test_a_tool_that_swallows_one_cancellation_is_still_stopped_and_nothing_follows() -> None:
    asked: list[str] = []
    with Stubborn(1) as stubborn:
        clock = ManualClock()

        def play(request: ModelRequest) -> Any:
            asked.append(request.turn)
            return call("stubborn") if len(asked) == 1 else "never"

        async with asyncio.timeout(5), scene(agent("boss", stubborn.tool()), plays(boss=play), clock=clock) as it:
            running = asyncio.create_task(it.session.run("go"))
            await stubborn.entered.wait()
            await it.session.send(Stop())
            await stubborn.swallowed.wait()
            clock.advance(2.0)
            result = await running
            assert (result.stop_reason, result.diagnostics) == (StopReason.CANCELLED, ("stopped by a message",))
            assert len(asked) == 1


@pytest.mark.requirement("I11")
async def test_what_never_gives_way_is_left_behind_named_once_and_its_late_result_changes_nothing() -> None:
    clock = ManualClock()
    with Stubborn(99) as stubborn:
        model = plays(boss=[call("stubborn"), "second answer"])
        async with asyncio.timeout(5), scene(agent("boss", stubborn.tool()), model, clock=clock) as it:
            running = asyncio.create_task(it.session.run("go"))
            await stubborn.entered.wait()
            await it.session.send(Stop())
            await it.session.send(Stop())
            clock.advance(2.0)
            clock.advance(2.0)
            result = await running
            assert result.stop_reason is StopReason.CANCELLED
            assert sum("abandoned: boss in turn t0001" in line for line in result.diagnostics) == 1
            second = await it.session.run("next")
            assert second.output == "second answer"
            before = len(await it.entries())
            stubborn.go_on.set()
            await it.quiet()
            assert len(await it.entries()) == before
            assert faults(await it.entries()) == []
        assert stubborn.over.is_set()


@pytest.mark.requirement("I9")
async def test_a_write_left_behind_stays_unknown_until_its_late_result_settles_it() -> None:
    clock = ManualClock()
    with Stubborn(99) as stubborn:
        again = call("stubborn")
        model = plays(boss=[again, again, "noted", again, "fine"])
        async with asyncio.timeout(5), scene(agent("boss", stubborn.tool(Access.WRITE)), model, clock=clock) as it:
            running = asyncio.create_task(it.session.run("go"))
            await stubborn.entered.wait()
            await it.session.send(Stop())
            clock.advance(2.0)
            clock.advance(2.0)
            await running
            refused = await it.session.run("again")
            assert "may have happened" in refused.failures[0]
            stubborn.go_on.set()
            await stubborn.over.wait()
            await it.quiet()
            allowed = await it.session.run("and again")
            assert allowed.failures == ()


async def test_a_stop_that_overtakes_its_turn_is_remembered_and_the_model_is_not_asked() -> None:
    first = Blocked()
    async with asyncio.timeout(5), scene(agent("boss"), plays(boss=first)) as it:
        running = asyncio.create_task(it.session.run("first"))
        await first.entered.wait()
        await it.session.send(Turn("second"))
        await it.session.send(Stop("tree"))
        await running
        await it.quiet()
        assert first.asked == 1
        assert [end.reason for end in await it.records(TurnEnded)] == [StopReason.CANCELLED] * 2


async def test_a_turns_time_limit_ends_it_as_timed_out_and_stops_the_child_it_waits_for() -> None:
    clock, worker = ManualClock(), Blocked()
    boss = agent("boss", children=[agent("worker")])
    model = FunctionModel({"boss": script(call("delegate", child="worker", task="x")), "worker": worker})
    async with asyncio.timeout(5), scene(boss, model, clock=clock) as it:
        running = asyncio.create_task(it.session.run(Turn("go", limits=Limits(seconds=10))))
        await worker.entered.wait()
        clock.jump(3600)
        assert not running.done()
        clock.advance(10)
        assert (await running).stop_reason is StopReason.TIMED_OUT
        await it.quiet()
        assert list(it.supervisor.members) == ["boss"]
        assert faults(await it.entries()) == []


@pytest.mark.requirement("I10")
async def test_a_foreground_outcome_that_a_stop_overtakes_is_discharged_once_all_the_same() -> None:
    boss = agent("boss", children=[agent("worker")])
    texts: list[str] = []

    def boss_play(request: ModelRequest) -> Any:
        texts.append("\n".join(heard(request)))
        return call("delegate", child="worker", task="x") if len(texts) == 1 else "ok"

    async with asyncio.timeout(5), scene(boss, plays(boss=boss_play, worker=["precious"])) as it:
        forward, stops = it.supervisor.on_ended, []

        def on_ended(member: Any, accepted: Any, end: Any) -> None:
            forward(member, accepted, end)
            if member.path != "boss":
                stops.append(asyncio.get_running_loop().create_task(it.session.send(Stop())))

        it.supervisor.on_ended = on_ended
        assert (await it.session.run("go")).stop_reason is StopReason.CANCELLED
        await asyncio.gather(*stops)
        await it.session.run("next")
        assert faults(await it.entries()) == []


async def test_a_tool_that_swallows_its_time_limit_leaves_the_rest_of_the_turn_unharmed() -> None:
    clock = ManualClock()
    with Stubborn(1) as stubborn:
        slow = stubborn.tool()
        import attrs

        async def play(request: ModelRequest) -> Any:
            if len(request.history) == 1:
                return call("stubborn")
            raise asyncio.CancelledError

        async with (
            asyncio.timeout(5),
            scene(agent("boss", attrs.evolve(slow, timeout_s=5.0)), plays(boss=play), clock=clock) as it,
        ):
            running = asyncio.create_task(it.session.run("go"))
            await stubborn.entered.wait()
            clock.advance(5)
            stubborn.go_on.set()
            async with asyncio.timeout(2):
                assert (await running).stop_reason is StopReason.FAILED


@pytest.mark.requirement("B56")
async def test_a_full_mailbox_refuses_by_type_counts_each_refusal_and_takes_a_stop() -> None:
    blocked = Blocked()
    limits = SessionLimits(mailbox=50)
    async with asyncio.timeout(10), scene(agent("boss"), plays(boss=blocked), limits=limits) as it:
        running = asyncio.create_task(it.session.run("go"))
        await blocked.entered.wait()
        for number in range(5000):
            if number < 50:
                await it.session.send(Turn("a turn") if number % 2 else "a message")
                continue
            with pytest.raises(MailboxFull) as refusal:
                await it.session.send(Turn("a turn") if number % 2 else "a message")
            assert (refusal.value.actor, refusal.value.capacity) == ("boss", 50)
        actor = it.supervisor.members["boss"].actor
        assert actor.mailbox.refused == 4950
        assert len(actor.mailbox) + len(actor.state.steered) == 50
        await it.session.send(Stop("tree"))
        blocked.go_on.set()
        assert (await running).stop_reason is StopReason.CANCELLED
        await it.quiet()
        assert blocked.asked == 1
        assert (await it.session.run("room again")).stop_reason is StopReason.COMPLETED
        assert faults(await it.entries()) == []


def pairs(request: ModelRequest) -> list[str]:
    """The ids of calls and results in the history, as they follow each other."""
    return [result.call_id for item in request.history if isinstance(item, Results) for result in item.results]


@pytest.mark.requirement("I15")
async def test_after_a_stop_in_a_batch_finished_calls_keep_their_results_and_the_others_are_cancelled() -> None:
    entered = asyncio.Event()

    @tool
    async def quick(n: int) -> str:
        """Answer."""
        return f"quick {n}"

    @tool
    async def hang() -> str:
        """Wait for ever."""
        entered.set()
        await asyncio.Event().wait()
        return "never"

    seen: list[Any] = []

    def play(request: ModelRequest) -> Any:
        seen.append(request)
        if len(seen) == 1:
            return [call("quick", call_id="a", n=1), call("hang", call_id="b"), call("quick", call_id="c", n=2)]
        return "ok"

    async with asyncio.timeout(5), scene(agent("boss", quick, hang), plays(boss=play)) as it:
        running = asyncio.create_task(it.session.run("go"))
        await entered.wait()
        await asyncio.sleep(0)
        await it.session.send(Stop())
        await running
        await it.session.run("next")
        assert pairs(seen[-1]) == ["a", "b", "c"]
        outcomes = [r.outcome for item in seen[-1].history if isinstance(item, Results) for r in item.results]
        assert outcomes == [Outcome.OK, Outcome.CANCELLED, Outcome.OK]


async def test_a_closed_session_takes_nothing_and_answers_every_late_caller_by_type() -> None:
    store = MemoryStore()
    async with asyncio.timeout(5):
        async with scene(agent("boss"), plays(boss=["ok"]), store=store) as it:
            await it.session.run("go")
        for late in (it.session.run("late"), it.session.send("late"), it.session.send(Stop())):
            with pytest.raises(SessionClosed):
                await late
        await it.session.close()
