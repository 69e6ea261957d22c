"""A child's outcome reaches the actor that owns the work, once, whatever that actor is doing."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from actors.messages import TurnOrigin
from actors.tools import tool
from orchestrator.journal.memory import MemoryStore
from orchestrator.journal.records import (
    ActorExited,
    ActorRestarted,
    ChildStatus,
    Drop,
    OutcomeDropped,
    OutcomeRecorded,
    TurnAccepted,
)
from orchestrator.models.function import FunctionModel, call
from orchestrator.runtime import SessionLimits
from orchestrator.turn import Turn
from tests.supervision.scene import agent, discharges, faults, heard, plays, scene, script
from tests.supervision.test_stopping import Blocked, background

if TYPE_CHECKING:
    from actors.ports import ModelRequest

MANY = SessionLimits(alive=32)


def told(texts: list[str]) -> Counter[str]:
    """How often each child is named in the notices among *texts*."""
    lines = [line for text in texts for line in text.splitlines() if line.startswith("[")]
    return Counter(line[1:].partition(" ")[0] for line in lines)


@pytest.mark.requirement("B48", "I10")
@pytest.mark.parametrize("steer", [False, True])
async def test_twenty_children_that_end_while_their_parent_is_inside_a_tool_are_each_told_of_once(
    *, steer: bool
) -> None:
    inside, leave = asyncio.Event(), asyncio.Event()

    @tool
    async def long() -> str:
        """Take a while."""
        inside.set()
        await leave.wait()
        return "over"

    last: list[str] = []

    async def worker(request: ModelRequest) -> str:
        await inside.wait()
        return f"result of {request.actor}"

    def boss_play(request: ModelRequest) -> Any:
        last[:] = heard(request)
        return script(background(*["worker"] * 20), call("long"), "turn over")(request)

    boss = agent("boss", long, children=[agent("worker")], steer=steer)
    async with asyncio.timeout(5), scene(boss, FunctionModel({"boss": boss_play, "worker": worker}), limits=MANY) as it:
        running = asyncio.create_task(it.session.run("go"))
        await inside.wait()
        await it.until(lambda: len(it.supervisor.journal.state.outcomes) == 20)
        assert not running.done()
        leave.set()
        await running
        await it.quiet()
        names = [f"worker-{number:04d}" for number in range(2, 22)]
        assert told(last) == Counter(names)
        outcomes = await it.records(OutcomeRecorded)
        assert all(f"turn {outcome.turn}]" in "".join(last) for outcome in outcomes)
        assert "result of boss/worker-0002" in "".join(last)
        assert set(discharges(await it.entries()).values()) == {1}
        assert faults(await it.entries()) == []


@pytest.mark.requirement("B48")
async def test_a_child_that_was_open_when_the_session_closed_is_told_of_once_after_the_resume() -> None:
    store, worker = MemoryStore(), Blocked()
    last: list[str] = []
    boss = agent("boss", children=[agent("worker")])

    def boss_play(request: ModelRequest) -> Any:
        last[:] = heard(request)
        return script(background("worker"))(request)

    async with asyncio.timeout(5):
        async with scene(boss, FunctionModel({"boss": boss_play, "worker": worker}), store=store) as it:
            await it.session.run("go")
            await worker.entered.wait()
            before = it.supervisor.members["boss/worker-0002"].actor.state.turn
        model = FunctionModel({"boss": boss_play, "worker": script("result")})
        async with scene(boss, model, store=store, handle=it.session.snapshot()) as again:
            assert again.supervisor.members["boss/worker-0002"].actor.state.turn == before
            await again.quiet()
            assert told(last) == Counter(["worker-0002"])
            assert faults(await again.entries()) == []
        async with scene(boss, model, store=store, handle=it.session.snapshot()) as third:
            await third.session.run("anything new?")
            assert told(last) == Counter(["worker-0002"])


@pytest.mark.requirement("B48")
async def test_a_notice_whose_first_delivery_is_refused_comes_later_and_harms_nobody() -> None:
    entered, leave, leaf = asyncio.Event(), asyncio.Event(), Blocked()
    last: list[str] = []

    async def boss_play(request: ModelRequest) -> Any:
        last[:] = heard(request)
        if len(request.history) == 1:
            return background("middle")
        if not leave.is_set():
            entered.set()
            await leave.wait()
        return "ok"

    middle = agent("middle", children=[agent("leaf")])
    boss = agent("boss", children=[middle], steer=True)
    gate = asyncio.Event()

    async def middle_play(request: ModelRequest) -> Any:
        if len(request.history) == 1:
            return background("leaf")
        await gate.wait()
        return "middle is done"

    model = FunctionModel({"boss": boss_play, "middle": middle_play, "leaf": leaf})
    async with asyncio.timeout(5), scene(boss, model, limits=SessionLimits(mailbox=1)) as it:
        running = asyncio.create_task(it.session.run("go"))
        await asyncio.gather(entered.wait(), leaf.entered.wait())
        await it.session.send("fills the mailbox")
        gate.set()
        await it.until(lambda: bool(it.supervisor.journal.state.outcomes))
        leaf.go_on.set()
        leave.set()
        await running
        await it.quiet()
        assert await it.records(ActorRestarted) == []
        assert told(last)["middle-0002"] >= 1
        await it.session.run("next")
        assert faults(await it.entries()) == []


@pytest.mark.requirement("B50")
async def test_notices_of_a_tree_go_to_the_owner_of_the_work_and_never_to_another_session() -> None:
    leaf = agent("leaf")
    boss = agent("boss", children=[agent("job"), agent("middle", children=[leaf])])
    store = MemoryStore()
    async with asyncio.timeout(60):
        for _ in range(50):
            start = asyncio.Event()
            got: dict[str, list[str]] = {}

            def watched(name: str, *answers: Any, got: dict[str, list[str]] = got) -> Any:
                def play(request: ModelRequest) -> Any:
                    got[name] = heard(request)
                    return script(*answers)(request)

                return play

            async def together(_: ModelRequest, start: asyncio.Event = start) -> str:
                await start.wait()
                return "done"

            model = FunctionModel(
                {
                    "boss": watched("boss", background("job", "middle")),
                    "middle": watched("middle", background("leaf")),
                    "job": together,
                    "leaf": together,
                }
            )
            stranger = agent("stranger")
            async with (
                scene(stranger, plays(stranger=["ok"]), store=store) as other,
                scene(boss, model, store=store) as it,
            ):
                await it.session.run("go")
                start.set()
                await it.quiet()
                await it.session.run("next")
                leafs = [a.rpartition("/")[2] for a in it.supervisor.journal.state.actors if "/leaf" in a]
                assert told(got["boss"]).keys() == {"job-0002", "middle-0003"}
                assert told(got["middle"]) == Counter(leafs)
                assert not [e for e in await other.entries() if isinstance(e.record, TurnAccepted)]
                assert faults(await it.entries()) == []


@pytest.mark.requirement("B50", "I10")
async def test_an_outcome_whose_owner_does_not_wake_for_it_becomes_a_dead_letter_and_the_owner_leaves() -> None:
    leaf = Blocked()
    middle = agent("middle", children=[agent("leaf")], wake=False)
    boss = agent("boss", children=[middle])
    model = FunctionModel({"boss": script(background("middle")), "middle": script(background("leaf")), "leaf": leaf})
    async with asyncio.timeout(5), scene(boss, model) as it:
        await it.session.run("go")
        await leaf.entered.wait()
        leaf.go_on.set()
        await it.quiet()
        assert list(it.supervisor.members) == ["boss"]
        assert [drop.why for drop in await it.records(OutcomeDropped)] == [Drop.DEAD_LETTER]
        assert faults(await it.entries()) == []


@pytest.mark.requirement("I10")
async def test_an_explicit_stop_of_one_child_is_cancelled_and_silent() -> None:
    worker = Blocked()
    texts: list[str] = []

    def boss_play(request: ModelRequest) -> Any:
        texts[:] = heard(request)
        return script(background("worker"), call("stop_child", child="worker-0002"), "stopped it")(request)

    boss = agent("boss", children=[agent("worker")])
    async with asyncio.timeout(5), scene(boss, FunctionModel({"boss": boss_play, "worker": worker})) as it:
        assert (await it.session.run("go")).output == "stopped it"
        await it.quiet()
        await it.session.run("next")
        assert texts == ["go", "next"]
        assert [outcome.status for outcome in await it.records(OutcomeRecorded)] == [ChildStatus.CANCELLED]
        assert [drop.why for drop in await it.records(OutcomeDropped)] == [Drop.SUPPRESSED]


async def test_what_a_child_says_does_not_make_it_failed() -> None:
    boss = agent("boss", children=[agent("worker")])
    model = plays(boss=[call("delegate", child="worker", task="x")], worker=["there was an error in row 3, fixed"])
    async with asyncio.timeout(5), scene(boss, model) as it:
        result = await it.session.run("go")
        assert result.failures == ()
        assert [outcome.status for outcome in await it.records(OutcomeRecorded)] == [ChildStatus.COMPLETED]


async def test_a_childs_id_is_its_address_and_its_number_in_the_session() -> None:
    boss = agent("boss", children=[agent("Research APIs")])
    async with asyncio.timeout(5), scene(boss, plays(boss=[background(*["Research APIs"] * 3)])) as it:
        await it.session.run("go")
        await it.quiet()
        assert [path.rpartition("-")[2] for path in it.supervisor.journal.state.children["boss"]] == [
            "0002",
            "0003",
            "0004",
        ]


@pytest.mark.requirement("I10")
async def test_an_outcome_that_was_collected_is_not_told_of_again() -> None:
    texts: list[str] = []

    def boss_play(request: ModelRequest) -> Any:
        texts[:] = heard(request)
        return script(
            background("worker"), call("collect_child", child="worker-0002"), lambda r: r.history[-1].results[0].text
        )(request)

    boss = agent("boss", children=[agent("worker")])
    async with asyncio.timeout(5), scene(boss, plays(boss=boss_play, worker=["the result"])) as it:
        assert (await it.session.run("go")).output == "the result"
        await it.quiet()
        await it.session.run("next")
        assert texts == ["go", "next"]
        assert faults(await it.entries()) == []


@pytest.mark.requirement("I10")
async def test_two_collectors_of_one_child_get_its_outcome_once() -> None:
    worker = Blocked("precious")
    both = [call("collect_child", call_id=name, child="worker-0002") for name in "ab"]
    boss = agent("boss", children=[agent("worker")])
    texts: list[str] = []

    def answers(request: ModelRequest) -> str:
        texts.extend(result.text for result in request.history[-1].results)  # type: ignore[union-attr]  # of two calls
        return "ok"

    model = FunctionModel({"boss": script(background("worker"), both, answers), "worker": worker})
    async with asyncio.timeout(5), scene(boss, model) as it:
        running = asyncio.create_task(it.session.run("go"))
        await worker.entered.wait()
        worker.go_on.set()
        await running
        assert sorted(text == "precious" for text in texts) == [False, True]
        assert faults(await it.entries()) == []


async def test_notices_that_came_of_notices_wait_and_wake_nobody() -> None:
    boss = agent("boss", children=[agent("middle", children=[agent("leaf")])])
    leaf = Blocked()
    model = FunctionModel({"boss": script(background("middle")), "middle": script(background("leaf")), "leaf": leaf})
    async with asyncio.timeout(5), scene(boss, model) as it:
        await it.session.run("go")
        await leaf.entered.wait()
        leaf.go_on.set()
        await it.quiet()
        notices = [
            e for e in await it.entries() if isinstance(e.record, TurnAccepted) and e.record.origin is TurnOrigin.NOTICE
        ]
        assert [entry.actor for entry in notices] == ["boss", "boss/middle-0002"]
        await it.session.run("next")
        assert faults(await it.entries()) == []


@pytest.mark.requirement("I10")
async def test_the_turn_tree_is_over_when_every_actor_has_left_delivered_or_not() -> None:
    boss = agent("boss", children=[agent("worker")], wake=False)
    async with asyncio.timeout(5), scene(boss, plays(boss=[background("worker")], worker=["result"])) as it:
        await it.session.run("go")
        await it.quiet()
        assert [e.actor for e in await it.entries() if isinstance(e.record, ActorExited)] == ["boss/worker-0002"]
        assert [owed.text for owed in it.supervisor.journal.state.owed("boss")] == ["result"]
        assert not any(actor.waiting for actor in it.supervisor.journal.state.actors.values())
        await it.session.run("next")
        assert faults(await it.entries()) == []


@pytest.mark.requirement("B69")
async def test_fifty_sends_at_once_are_each_on_record_once_in_accepted_order() -> None:
    entered = asyncio.Event()
    texts: list[str] = []

    @tool
    async def look(n: int) -> str:
        """Look."""
        return str(n)

    def play(request: ModelRequest) -> Any:
        texts[:] = heard(request)
        entered.set()
        return [call("look", n=1), call("look", n=2)] if len(request.history) % 4 == 1 else "ok"

    async with asyncio.timeout(5), scene(agent("boss", look), plays(boss=play)) as it:
        deliveries = await asyncio.gather(*(it.session.send(Turn(f"message {n}")) for n in range(50)))
        await it.quiet()
        accepted = [record.text for record in await it.records(TurnAccepted)]
        assert accepted == [f"message {n}" for n in range(50)]
        assert texts == accepted
        assert len({delivery.turn for delivery in deliveries}) == 50
        assert faults(await it.entries()) == []


@pytest.mark.requirement("B69")
async def test_two_sessions_of_one_definition_count_and_end_apart() -> None:
    boss = agent("boss")
    async with (
        asyncio.timeout(5),
        scene(boss, plays(boss=["one"])) as left,
        scene(boss, plays(boss=[call("get_api_spec", tool_name="delegate"), "two"])) as right,
    ):
        one, two = await asyncio.gather(left.session.run("go"), right.session.run("go"))
        assert (one.output, one.usage.requests, one.usage.calls) == ("one", 1, 0)
        assert (two.output, two.usage.requests, two.usage.calls) == ("two", 2, 1)
