"""A session: one run at a time, messages steer, start or queue, each turn ends once, nothing is left at the end."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from actors import Access, ActorStopped, Grants, Limits, MailboxFull, StopReason, Usage
from actors.messages import ModelReply, Results, TurnOrigin
from orchestrator import (
    Agent,
    Delta,
    Policy,
    RuntimeConfig,
    SessionBusy,
    SessionClosed,
    SessionHandle,
    SessionLimits,
    Stop,
    Turn,
    TurnRefused,
)
from orchestrator.errors import SessionIdle
from orchestrator.events import Gap
from orchestrator.journal.records import Entry, TurnAccepted, TurnEnded, TurnRejected
from orchestrator.runtime import Observability
from orchestrator.testing import FunctionModel, ManualClock, call
from tests.core.stage import Gate, Ledger, agent, calls, made, over, paired, said, staged, written

if TYPE_CHECKING:
    from actors.ports import ModelRequest
    from orchestrator import Session


REASONS = (StopReason.COMPLETED, StopReason.CANCELLED, StopReason.CANCELLED, StopReason.FAILED)


def held(*script: Any, **config: Any) -> tuple[Agent, Any, Gate]:
    """An agent whose first call waits at a gate."""
    gate = Gate()
    runner, model = staged(agent(made("hold", gate.wait)), call("hold"), *script, **config)
    return runner, model, gate


async def test_of_fifty_concurrent_runs_one_wins_and_the_others_are_told_at_once() -> None:
    runner, model, gate = held("done")
    async with asyncio.timeout(5), runner, runner.start() as session:
        runs = [asyncio.ensure_future(session.run("go")) for _ in range(50)]
        await gate.entered.wait()
        lost = [run for run in runs if run.done()]
        assert len(lost) == 49
        assert {type(run.exception()) for run in lost} == {SessionBusy}
        gate.leave.set()
        (won,) = [await run for run in runs if run not in lost]
        assert len(await written(session, TurnAccepted)) == 1
    assert won.output == "done"
    model.check()


async def test_a_run_that_lost_took_nothing_and_may_come_again() -> None:
    runner, _, gate = held("done", "again")
    async with asyncio.timeout(5), runner, runner.start() as session:
        first = asyncio.ensure_future(session.run("go"))
        await gate.entered.wait()
        with pytest.raises(SessionBusy, match="a run is in flight"):
            await session.run("me too")
        gate.leave.set()
        await first
        assert (await session.run("me too")).output == "again"


async def test_a_message_to_a_busy_session_steers_it_after_the_batch_and_one_to_an_idle_one_starts_a_turn() -> None:
    runner, model, gate = held("done", "second")
    async with asyncio.timeout(5), runner, runner.start() as session:
        run = asyncio.ensure_future(session.run("go"))
        await gate.entered.wait()
        steered = await session.send("use b")
        gate.leave.set()
        result = await run
        assert (steered.how, steered.turn) == ("steered", result.turn)
        assert said(model.requests[1]) == ["go", "use b"]
        assert isinstance(model.requests[1].history[-2], Results)
        started = await session.send("next")
        assert (started.how, (await over(session, started.turn)).output) == ("started", "second")


async def test_a_turn_sent_to_a_busy_session_queues_and_runs_after_it() -> None:
    runner, model, gate = held("one", "two")
    async with asyncio.timeout(5), runner, runner.start() as session:
        run = asyncio.ensure_future(session.run("first"))
        await gate.entered.wait()
        queued = await session.send(Turn("second"))
        gate.leave.set()
        assert (await run).output == "one"
        assert (queued.how, (await over(session, queued.turn)).output) == ("queued", "two")
    assert said(model.requests[-1]) == ["first", "second"]


@pytest.mark.requirement("I6")
async def test_a_turn_started_by_a_message_is_no_wider_than_the_last_one() -> None:
    ledger = Ledger()
    tools = (ledger.tool("put", Access.WRITE), ledger.tool("mail", Access.WRITE))
    runner, _ = staged(agent(*tools), "ok", [call("put"), call("mail")], "two")
    async with asyncio.timeout(5), runner, runner.start() as session:
        await session.run(Turn("go", Policy.deny("mail"), Grants(access=Access.READ)))
        sent = await session.send("and now write")
        await over(session, sent.turn)
        accepted = await written(session, TurnAccepted)
    assert ledger.lines == []
    assert [(turn.origin, turn.policy, turn.grants) for turn in accepted] == [
        (origin, Policy.deny("mail"), Grants(access=Access.READ)) for origin in (TurnOrigin.RUN, TurnOrigin.SEND)
    ]


async def test_waiting_for_a_turn_when_none_is_in_flight_is_refused() -> None:
    runner, _ = staged(agent(), "ok")
    async with asyncio.timeout(5), runner, runner.start() as session:
        with pytest.raises(SessionIdle, match="give run"):
            await session.run()


async def test_a_full_mailbox_refuses_a_message_by_type_and_still_takes_a_stop() -> None:
    runner, _, gate = held("one", limits=SessionLimits(mailbox=2))
    async with asyncio.timeout(5), runner, runner.start() as session:
        run = asyncio.ensure_future(session.run("go"))
        await gate.entered.wait()
        await session.send("a")
        await session.send("b")
        for message in ("c", Turn("d")):
            with pytest.raises(MailboxFull, match="2 messages wait"):
                await session.send(message)
        await session.send(Stop())
        result = await run
    assert result.stop_reason is StopReason.CANCELLED


@pytest.mark.requirement("I14")
async def test_each_accepted_turn_ends_with_one_terminal_record_however_it_ends() -> None:
    def play(request: ModelRequest) -> object:
        text = said(request)[-1]
        if text == "crash":
            message = "bug"
            raise ValueError(message)
        return [call("hold")] if text == "hold" and not isinstance(request.history[-1], Results) else text

    gate = Gate()
    config = RuntimeConfig(FunctionModel({"boss": play}))  # type: ignore[dict-item]
    async with asyncio.timeout(5), Agent(agent(made("hold", gate.wait)), config) as runner, runner.start() as session:
        await session.run("fine")
        run = asyncio.ensure_future(session.run("hold"))
        await gate.entered.wait()
        await session.send(Turn("queued"))
        await session.send(Stop("tree"))
        assert (await run).stop_reason is StopReason.CANCELLED
        with pytest.raises(TurnRefused):
            await session.run(Turn("bad", Policy.deny("nothing")))
        crashed = await session.run("crash")
        assert crashed.stop_reason is StopReason.FAILED
        with pytest.raises(ActorStopped):
            await session.run("gone")
        accepted, ended = await written(session, TurnAccepted), await written(session, TurnEnded)
        rejected = await written(session, TurnRejected)
    assert sorted(turn.turn for turn in accepted) == sorted(turn.turn for turn in ended)
    assert (
        len({turn.turn for turn in accepted} | {turn.turn for turn in rejected}) == len(accepted) + len(rejected) == 5
    )
    reasons = {turn.turn: turn.reason for turn in ended}
    assert sorted(reasons.values()) == sorted([*REASONS])


async def test_a_caller_that_gives_up_stops_its_turn_and_the_session_goes_on() -> None:
    runner, model, gate = held("done")
    async with asyncio.timeout(5), runner, runner.start() as session:
        run = asyncio.ensure_future(session.run("go"))
        await gate.entered.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert (await session.run("again")).output == "done"
        ended = await written(session, TurnEnded)
    assert [turn.reason for turn in ended] == [StopReason.CANCELLED, StopReason.COMPLETED]
    assert paired(model.requests[-1].history)


async def test_events_come_in_order_from_any_cursor_and_end_when_the_session_does() -> None:
    runner, _ = staged(agent(), "hello", "again")
    async with asyncio.timeout(5), runner:
        async with runner.start() as session:
            whole, live = session.events(0), session.events()
            await session.run("go")
            late = session.events(3)
            await session.run("go")
        streams = [[event async for event in stream] for stream in (whole, late, live)]
    numbers = [[event.seq for event in events if isinstance(event, Entry)] for events in streams]
    last = numbers[0][-1]
    assert numbers == [list(range(1, last + 1)), list(range(4, last + 1)), list(range(numbers[2][0], last + 1))]
    assert [event.text for event in streams[0] if isinstance(event, Delta)] == ["hello", "again"]


async def test_a_slow_reader_gets_a_gap_with_the_numbers_and_never_slows_the_session() -> None:
    runner, _ = staged(agent(), "one", "two", observability=Observability(buffer=3))
    async with asyncio.timeout(5), runner:
        async with runner.start() as session:
            stream = session.events()
            first = session._supervisor.journal.seq + 1
            await session.run("go")
            await session.run("go")
        told = [event async for event in stream]
    entries = [event.seq for event in told if isinstance(event, Entry)]
    (gap,) = [event for event in told if isinstance(event, Gap)]
    assert len(told) == 4
    assert gap.first == entries[-1] + 1 == first + len(entries)
    assert gap.last > gap.first


async def test_a_handle_is_plain_versioned_data_that_reads_back() -> None:
    runner, _ = staged(agent(), "ok")
    async with asyncio.timeout(5), runner, runner.start() as session:
        handle = session.snapshot()
    assert msgspec.json.decode(str(handle), type=SessionHandle) == handle
    assert handle.version == 1
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"session":"s","store":"memory:","fingerprint":"f","more":1}', type=SessionHandle)


@pytest.mark.requirement("I11")
async def test_after_close_no_task_is_left_and_nothing_is_taken_any_more() -> None:
    before = asyncio.all_tasks()
    runner, _, gate = held("done")
    async with asyncio.timeout(5), runner:
        async with runner.start() as session:
            run = asyncio.ensure_future(session.run("go"))
            await gate.entered.wait()
        assert (await run).stop_reason is StopReason.SUSPENDED
        for attempt in (session.run("more"), session.send("more"), session.run()):
            with pytest.raises(SessionClosed):
                await attempt
        await session.close()
    gc.collect()
    assert asyncio.all_tasks() <= before | {run}


@pytest.mark.requirement("I11")
async def test_what_does_not_yield_at_close_is_named_as_abandoned() -> None:
    gate = Gate()

    async def stubborn(_: object, __: object) -> str:
        gate.entered.set()
        while not gate.leave.is_set():
            try:
                await gate.leave.wait()
            except asyncio.CancelledError:
                continue
        return "at last"

    runner, _ = staged(agent(made("stubborn", stubborn)), call("stubborn"), limits=SessionLimits(grace_s=0.01))
    async with asyncio.timeout(5), runner:
        async with runner.start() as session:
            run = asyncio.ensure_future(session.run("go"))
            await gate.entered.wait()
        result = await run
        gate.leave.set()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait(left)
    assert result.diagnostics[-1].startswith("abandoned: ")


@pytest.mark.requirement("I11")
async def test_a_close_that_is_cancelled_goes_on_and_a_second_one_returns_when_all_is_done() -> None:
    gate = Gate()

    async def slow_to_leave(_: object, __: object) -> str:
        gate.entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await gate.leave.wait()
            raise
        return "never"

    before = asyncio.all_tasks()
    runner, _ = staged(agent(made("slow", slow_to_leave)), call("slow"), "resumed")
    async with asyncio.timeout(8), runner:
        start = runner.start()
        session = await start.__aenter__()
        run = asyncio.ensure_future(session.run("go"))
        await gate.entered.wait()
        closing = asyncio.ensure_future(session.close())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing])
        gate.leave.set()
        await session.close()
        await asyncio.wait([run])
        assert asyncio.all_tasks() - before <= {run}
        assert (await asyncio.wait_for(_resumed(runner, session), 2)) is not None


async def _resumed(runner: Agent, session: Session) -> object:
    async with runner.start(session.snapshot()) as again:
        return again


async def test_a_turn_ends_after_its_seconds_whatever_it_waits_for() -> None:
    clock = ManualClock()
    runner, _, gate = held("never", observability=Observability(clock))
    async with asyncio.timeout(5), runner, runner.start() as session:
        run = asyncio.ensure_future(session.run(Turn("go", limits=Limits(seconds=20))))
        await gate.entered.wait()
        clock.advance(19.9)
        assert not run.done()
        clock.advance(0.2)
        result = await run
    assert (result.stop_reason, result.output) == (StopReason.TIMED_OUT, "")
    assert "20 s" in result.diagnostics[0]


async def test_a_result_says_what_failed_what_was_spent_and_which_definition_ran() -> None:
    ledger = Ledger()
    definition = agent(ledger.tool("look"), ledger.tool("put", Access.WRITE))
    reply = ModelReply("", calls(call("look"), call("put")).calls, usage=Usage(10, 2, 5, 1, money=0.25))
    runner, _ = staged(definition, reply, ModelReply("ok", usage=Usage(20, 0, 5, 1, money=0.25)))
    async with asyncio.timeout(5), runner, runner.start() as session:
        result = await session.run(Turn("go", Policy.deny("put")))
    assert result.usage == Usage(30, 2, 10, 2, 2, 0.5)
    assert (result.fingerprint, len(result.failures)) == (definition.fingerprint, 1)
    assert result.failures[0].startswith("put: put is not available to boss in this turn")


def test_a_stop_knows_two_scopes() -> None:
    with pytest.raises(ValueError, match="'turn' or 'tree'"):
        Stop("all")


async def test_run_without_a_turn_returns_the_last_result_that_nobody_waited_for_once() -> None:
    runner, _ = staged(agent(), "first", "second")
    async with asyncio.timeout(5), runner, runner.start() as session:
        stream = session.events()
        delivered = await session.send("go")
        async for event in stream:
            if isinstance(event, Entry) and isinstance(event.record, TurnEnded):
                break
        result = await session.run()
        assert (result.turn, result.output) == (delivered.turn, "first")
        with pytest.raises(SessionIdle):
            await session.run()
        assert (await session.run("again")).output == "second"
