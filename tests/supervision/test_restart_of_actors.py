"""A crashed actor is restarted within its intensity, then given up; whoever waits is answered."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from actors.errors import ActorStopped
from actors.messages import Outcome, StopReason, ToolCall
from actors.tools import tool
from orchestrator.errors import OrchestratorError
from orchestrator.journal.memory import MemoryStore
from orchestrator.journal.records import ActorExited, ActorRestarted, ActorSpawned, TurnAccepted, TurnEnded
from orchestrator.models.function import FunctionModel, call
from orchestrator.runtime import SessionLimits
from orchestrator.testing import ManualClock
from orchestrator.turn import Stop, Turn
from tests.supervision.scene import agent, faults, heard, plays, scene, script

if TYPE_CHECKING:
    from actors.ports import ModelRequest
    from orchestrator.journal.records import Entry


class Buggy:
    """A playbook that raises a bug the first *times* it is asked, then answers ``fine``."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.asked = 0

    def __call__(self, _: ModelRequest) -> str:
        self.asked += 1
        if self.left:
            self.left -= 1
            msg = "a bug"
            raise RuntimeError(msg)
        return "fine"


@pytest.mark.requirement("I1")
@pytest.mark.parametrize("crashes", [1, 2, 3])
async def test_a_crashing_actor_is_restarted_within_its_intensity_and_the_turn_goes_on(crashes: int) -> None:
    play = Buggy(crashes)
    async with asyncio.timeout(5), scene(agent("boss"), plays(boss=play), clock=ManualClock()) as it:
        result = await it.session.run("go")
        assert (result.output, result.stop_reason) == ("fine", StopReason.COMPLETED)
        assert [record.incarnation for record in await it.records(ActorRestarted)] == list(range(2, crashes + 2))
        assert "a bug" in (await it.records(ActorRestarted))[0].reason
        assert len(it.supervisor.members) == 1
        assert faults(await it.entries()) == []


@pytest.mark.requirement("I14")
async def test_the_fourth_crash_within_the_window_ends_the_actor_and_answers_who_waits() -> None:
    async with asyncio.timeout(5), scene(agent("boss"), plays(boss=Buggy(99)), clock=ManualClock()) as it:
        result = await it.session.run("go")
        assert result.stop_reason is StopReason.FAILED
        assert "crashed too often" in result.diagnostics[0]
        assert len(await it.records(ActorRestarted)) == 3
        assert len(await it.records(ActorExited)) == 1
        assert it.supervisor.members == {}
        with pytest.raises(ActorStopped, match="crashed too often"):
            await it.session.run("again")
        assert faults(await it.entries()) == []


async def test_an_actor_that_is_given_up_takes_no_turn_while_its_children_are_stopped() -> None:
    def play(request: ModelRequest) -> Any:
        if len(request.history) == 1:
            return call("delegate", child="worker", task="x", background=True)
        msg = "a bug"
        raise RuntimeError(msg)

    async def work(_: ModelRequest) -> str:
        await asyncio.Event().wait()
        return "never"

    boss = agent("boss", children=[agent("worker")])
    async with asyncio.timeout(5), scene(boss, plays(boss=play, worker=work), clock=ManualClock()) as it:
        assert (await it.session.run("go")).stop_reason is StopReason.FAILED
        with pytest.raises(ActorStopped, match="crashed too often"):
            await it.session.send("again")
        await it.quiet()
        assert it.supervisor.members == {}
        assert faults(await it.entries()) == []


async def test_crashes_that_are_far_apart_never_end_the_actor() -> None:
    clock = ManualClock()

    def play(request: ModelRequest) -> str:
        if len(crashed) < len(heard(request)):
            crashed.append(clock.now())
            clock.advance(6)
            msg = "a bug"
            raise RuntimeError(msg)
        return "fine"

    crashed: list[float] = []
    async with asyncio.timeout(5), scene(agent("boss"), plays(boss=play), clock=clock) as it:
        for number in range(6):
            assert (await it.session.run(f"turn {number}")).stop_reason is StopReason.COMPLETED
        assert len(await it.records(ActorRestarted)) == 6


async def test_turns_that_wait_behind_a_crash_run_after_the_restart_in_order() -> None:
    entered, go_on = asyncio.Event(), asyncio.Event()
    asked: list[str] = []

    async def play(request: ModelRequest) -> str:
        asked.append(heard(request)[-1])
        if len(asked) == 1:
            entered.set()
            await go_on.wait()
            msg = "a bug"
            raise RuntimeError(msg)
        return "fine"

    async with asyncio.timeout(5), scene(agent("boss"), plays(boss=play)) as it:
        for number in range(4):
            await it.session.send(Turn(f"turn {number}"))
        await entered.wait()
        go_on.set()
        await it.quiet()
        assert asked == ["turn 0", "turn 0", "turn 1", "turn 2", "turn 3"]
        assert faults(await it.entries()) == []


async def test_every_turn_that_waits_is_answered_when_the_actor_is_given_up() -> None:
    async with asyncio.timeout(5), scene(agent("boss"), plays(boss=Buggy(99)), clock=ManualClock()) as it:
        root = it.supervisor.members["boss"]
        turns = [(await it.session.send(Turn(f"turn {number}"))).turn for number in range(5)]
        results = await asyncio.gather(*(it.supervisor.results.wait(root, turn) for turn in turns))
        assert {result.stop_reason for result in results} == {StopReason.FAILED}
        assert faults(await it.entries()) == []


async def test_a_childs_crash_reaches_its_parent_as_a_failure_and_nobody_else_is_restarted() -> None:
    boss = agent("boss", children=[agent("worker")])
    model = plays(
        boss=[call("delegate", child="worker", task="x"), lambda r: r.history[-1].results[0].text], worker=Buggy(99)
    )
    async with asyncio.timeout(5), scene(boss, model, clock=ManualClock()) as it:
        result = await it.session.run("go")
        assert result.stop_reason is StopReason.COMPLETED
        assert "failed" in result.output
        assert "crashed too often" in result.output
        assert {e.actor for e in await it.entries() if isinstance(e.record, ActorRestarted)} == {"boss/worker-0002"}
        assert list(it.supervisor.members) == ["boss"]
        assert faults(await it.entries()) == []


async def test_a_bug_of_a_tool_is_its_result_and_restarts_nobody() -> None:
    @tool
    async def broken() -> str:
        """Fail."""
        msg = "no such thing"
        raise KeyError(msg)

    async with asyncio.timeout(5), scene(agent("boss", broken), plays(boss=[call("broken")])) as it:
        result = await it.session.run("go")
        assert result.stop_reason is StopReason.COMPLETED
        assert result.failures == ("broken: KeyError: 'no such thing'",)
        assert await it.records(ActorRestarted) == []


@pytest.mark.requirement("I1")
async def test_after_a_restart_the_old_capability_is_dead_and_the_new_one_is_of_the_next_incarnation() -> None:
    @tool
    async def look() -> str:
        """Look."""
        return "seen"

    async def play(_: ModelRequest) -> str:
        capabilities.append(it.supervisor.members["boss"].capability)
        if len(capabilities) == 1:
            msg = "a bug"
            raise RuntimeError(msg)
        return "fine"

    capabilities: list[Any] = []
    async with asyncio.timeout(5), scene(agent("boss", look), plays(boss=play)) as it:
        await it.session.run("go")
        old, new = capabilities
        assert (old.incarnation, new.incarnation) == (1, 2)
        assert old.revoked
        answer = await old.call(ToolCall("late", "look"))
        assert (answer.outcome, answer.denial.code) == (Outcome.DENIED, "capability_revoked")


@pytest.mark.requirement("I1")
async def test_there_is_one_definition_a_fingerprint_and_one_actor_an_incarnation() -> None:
    worker = agent("worker")
    boss = agent("boss", children=[worker])
    twice = [call("delegate", child="worker", task="a"), call("delegate", child="worker", task="b")]
    async with asyncio.timeout(5), scene(boss, plays(boss=[twice], worker=Buggy(2)), clock=ManualClock()) as it:
        await it.session.run("go")
        entries = await it.entries()
        lives = [(e.actor, 1) for e in entries if isinstance(e.record, ActorSpawned)]
        lives += [(e.actor, e.record.incarnation) for e in entries if isinstance(e.record, ActorRestarted)]
        assert len(lives) == len(set(lives)) == 5
        resolved = {e.record.fingerprint for e in entries if isinstance(e.record, ActorSpawned)}
        assert resolved == {boss.fingerprint, worker.fingerprint}


@pytest.mark.requirement("B44")
async def test_a_stop_holds_when_the_model_answers_its_cancellation_with_a_bug() -> None:
    entered = asyncio.Event()
    asked: list[str] = []

    async def play(request: ModelRequest) -> str:
        asked.append(heard(request)[-1])
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            msg = "a bug while cleaning up"
            raise RuntimeError(msg) from None
        return "never"

    async with asyncio.timeout(5), scene(agent("boss"), plays(boss=play)) as it:
        running = asyncio.create_task(it.session.run("go"))
        await entered.wait()
        await it.session.send(Turn("waits"))
        await it.session.send(Stop("tree"))
        await it.quiet()
        assert asked == ["go"]
        assert (await running).stop_reason is StopReason.CANCELLED
        assert [end.reason for end in await it.records(TurnEnded)] == [StopReason.CANCELLED, StopReason.CANCELLED]


class SlowReading(MemoryStore):
    """A store whose `read` waits until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.reading, self.go_on = asyncio.Event(), asyncio.Event()

    async def read(self, session: str, after: int = 0, limit: int | None = None) -> tuple[bytes, ...]:
        """Read what is there, then wait."""
        found = await super().read(session, after, limit)
        self.reading.set()
        await self.go_on.wait()
        return found


async def test_a_message_that_arrives_while_an_actor_is_being_restarted_is_not_lost() -> None:
    store = SlowReading()
    texts: list[list[str]] = []

    def play(request: ModelRequest) -> str:
        texts.append(heard(request))
        if len(texts) == 1:
            msg = "a bug"
            raise RuntimeError(msg)
        return "fine"

    async with asyncio.timeout(5), scene(agent("boss"), plays(boss=play), store=store) as it:
        running = asyncio.create_task(it.session.run("go"))
        await store.reading.wait()
        await it.session.send("and this")
        store.go_on.set()
        await running
        await it.quiet()
        assert "and this" in texts[-1]
        assert faults(await it.entries()) == []


async def test_a_stop_that_arrives_while_an_actor_is_being_restarted_ends_the_turn() -> None:
    store = SlowReading()
    play = Buggy(1)
    async with asyncio.timeout(5), scene(agent("boss"), plays(boss=play), store=store) as it:
        running = asyncio.create_task(it.session.run("go"))
        await store.reading.wait()
        await it.session.send(Stop())
        store.go_on.set()
        async with asyncio.timeout(1):
            assert (await running).stop_reason is StopReason.CANCELLED
        assert play.asked == 1


@pytest.mark.requirement("I14", "I10")
async def test_an_actor_given_up_takes_no_notice_into_a_turn_that_never_ends() -> None:
    ended = asyncio.Event()

    async def boss_play(request: ModelRequest) -> Any:
        if len(request.history) == 1:
            return call("delegate", child="worker", task="x", background=True)
        await ended.wait()
        msg = "a bug"
        raise RuntimeError(msg)

    boss = agent("boss", children=[agent("worker")])
    model = FunctionModel({"boss": boss_play, "worker": script("done")})
    async with asyncio.timeout(5), scene(boss, model, clock=ManualClock()) as it:
        forward = it.supervisor.on_idle

        def on_idle(member: Any) -> None:
            forward(member)
            if member.path != "boss":
                ended.set()

        it.supervisor.on_idle = on_idle
        assert (await it.session.run("go")).stop_reason is StopReason.FAILED
        await it.quiet()
        assert faults(await it.entries()) == []


async def test_a_session_whose_root_was_given_up_is_refused_by_type_when_it_is_resumed() -> None:
    store, boss = MemoryStore(), agent("boss")
    async with asyncio.timeout(5):
        async with scene(boss, plays(boss=Buggy(99)), store=store, clock=ManualClock()) as it:
            await it.session.run("go")
            handle = it.session.snapshot()
        with pytest.raises((OrchestratorError, ActorStopped)):
            async with scene(boss, plays(), store=store, handle=handle):
                pass


@pytest.mark.parametrize("where", ["tool", "model"])
async def test_a_cancellation_that_nobody_asked_for_fails_the_child_and_reaches_its_parent(where: str) -> None:
    @tool
    async def stray() -> str:
        """Cancel the task that runs this."""
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.Event().wait()
        return "never"

    async def play(_: ModelRequest) -> Any:
        if where == "tool":
            return call("stray")
        assert stray.run is not None
        return await stray.run(None, {})  # type: ignore[arg-type]  # it takes no context

    boss = agent("boss", children=[agent("worker", stray)])
    model = FunctionModel({"boss": script(call("delegate", child="worker", task="x", background=True)), "worker": play})
    async with asyncio.timeout(5), scene(boss, model, clock=ManualClock()) as it:
        await it.session.run("go")
        async with asyncio.timeout(2):
            await it.quiet()
        notices = [record for record in await it.records(TurnAccepted) if record.notices]
        assert len(notices) == 1
        assert "failed" in notices[0].text
        assert faults(await it.entries()) == []


def incarnations(entries: tuple[Entry, ...]) -> int:
    """How many times any actor was restarted."""
    return sum(isinstance(entry.record, ActorRestarted) for entry in entries)


async def test_an_actor_without_restarts_is_given_up_at_once() -> None:
    from orchestrator.restart import RestartKind
    from orchestrator.runtime import Restart

    limits = SessionLimits(restart=Restart(RestartKind.TEMPORARY))
    async with asyncio.timeout(5), scene(agent("boss"), plays(boss=Buggy(1)), limits=limits) as it:
        assert (await it.session.run("go")).stop_reason is StopReason.FAILED
        assert incarnations(await it.entries()) == 0
