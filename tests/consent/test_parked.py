"""Nobody at the desk: the turn is parked, its actor does nothing, and an answer opens the same turn again."""

from __future__ import annotations

import asyncio
import gc
import warnings
from typing import Any

import pytest

from actors import Access
from actors.messages import Limits, StopReason, ToolCall, TurnOrigin
from actors.tools import Approval
from orchestrator import Turn
from orchestrator.approver import Approver
from orchestrator.errors import AnswerRefused, SessionIdle
from orchestrator.journal.consent import ApprovalAsked, ApprovalLapsed
from orchestrator.journal.memory import MemoryStore
from orchestrator.journal.records import TurnAccepted, TurnEnded, TurnParked
from orchestrator.models.function import call
from orchestrator.runtime import SessionLimits
from orchestrator.testing import ManualClock
from orchestrator.turn import Stop
from tests.consent.office import KEY, answered, approve, codes, office, paying, reject
from tests.core.stage import Gate, Ledger, made
from tests.supervision.scene import agent, faults, heard, plays


def pay(amount: float = 10, to: str = "A") -> ToolCall:
    """A call that needs a yes."""
    return call("pay", to=to, amount=amount)


@pytest.mark.requirement("B65", "I7")
async def test_a_turn_that_waits_is_suspended_with_the_question_and_runs_nothing() -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[pay(), "paid"])) as it:
        result = await it.session.run("go")
        assert (result.stop_reason, result.pending) == (StopReason.SUSPENDED, ("a0001",))
        assert ledger.lines == []
        (asked,) = await it.records(ApprovalAsked)
        assert (asked.tool, asked.version, asked.arguments, asked.target) == ("pay", "1", '{"amount":10,"to":"A"}', "A")
        assert await it.records(TurnEnded) == []
        assert [record.turn for record in await it.records(TurnParked)] == [result.turn]
        assert it.supervisor.tasks == set()


@pytest.mark.requirement("I8", "I14")
async def test_a_yes_opens_the_same_turn_again_and_the_call_runs_once_with_what_was_shown() -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[pay(), "paid"])) as it:
        parked = await it.session.run("go")
        old = it.supervisor.members["boss"].capability
        delivery = await it.session.send(approve("a0001"))
        assert (delivery.how, delivery.turn) == ("answered", parked.turn)
        await it.quiet()
        assert ledger.lines == ["pay amount=10 to=A"]
        (end,) = await it.records(TurnEnded)
        assert (end.turn, end.reason, end.output) == (parked.turn, StopReason.COMPLETED, "paid")
        assert old is None
        entries = await it.entries()
    assert faults(entries) == []


async def test_the_capability_is_dead_while_the_turn_is_parked() -> None:
    ledger, gate = Ledger(), Gate()
    held: list[Any] = []

    async def keep(_: object, __: object) -> str:
        held.append(it.supervisor.members["boss"].capability)
        return await gate.wait()

    boss = agent("boss", made("keep", keep), paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[call("keep"), pay(), "paid"])) as it:
        running = asyncio.ensure_future(it.session.run("go"))
        await gate.entered.wait()
        gate.leave.set()
        assert (await running).stop_reason is StopReason.SUSPENDED
        (capability,) = held
        assert capability.revoked
        refused = await capability.call(call("keep", call_id="late"))
        assert refused.denial.code == "capability_revoked"
        assert len(held) == 1


@pytest.mark.requirement("I8")
async def test_a_no_with_a_reason_is_an_answer_that_the_model_reads_and_nothing_runs() -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[pay(), "then not"])) as it:
        await it.session.run("go")
        await it.session.send(reject("a0001", reason="A is no customer", by="eve"))
        await it.quiet()
        (result,) = await answered(it, "boss")
        assert codes([result]) == ["approval_rejected"]
        assert "A is no customer" in result.text
        assert ledger.lines == []
        assert [end.output for end in await it.records(TurnEnded)] == ["then not"]


async def test_run_waits_for_a_turn_that_an_answer_has_opened_again() -> None:
    ledger, gate = Ledger(), Gate()
    boss = agent("boss", paying(ledger), made("wait", gate.wait))
    async with asyncio.timeout(5), office(boss, plays(boss=[pay(), call("wait"), "paid"])) as it:
        await it.session.run("go")
        again = await it.session.run()
        assert (again.stop_reason, again.pending) == (StopReason.SUSPENDED, ("a0001",))
        await it.session.send(approve("a0001"))
        await gate.entered.wait()
        running = asyncio.ensure_future(it.session.run())
        await asyncio.sleep(0)
        gate.leave.set()
        assert (await running).output == "paid"
        with pytest.raises(SessionIdle):
            await it.session.run()


async def test_a_steering_message_to_a_parked_turn_is_taken_up_after_the_answer() -> None:
    ledger = Ledger()
    seen: list[list[str]] = []

    def last(request: Any) -> str:
        seen.append(heard(request))
        return "done"

    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[pay(), last])) as it:
        parked = await it.session.run("go")
        delivery = await it.session.send("and be polite")
        assert (delivery.how, delivery.turn) == ("steered", parked.turn)
        assert seen == []
        await it.session.send(approve("a0001"))
        await it.quiet()
    assert seen == [["go", "and be polite"]]
    assert ledger.lines == ["pay amount=10 to=A"]


async def test_a_second_run_while_parked_waits_behind_it_and_both_turns_end() -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[pay(), "first", "second"])) as it:
        first = await it.session.run("go")
        second = asyncio.ensure_future(it.session.run("and then"))
        await it.until(lambda: len(it.supervisor.journal.state.actors["boss"].waiting) == 2)
        await it.quiet()
        assert not second.done()
        await it.session.send(approve("a0001"))
        assert (await second).output == "second"
        ends = await it.records(TurnEnded)
        assert [(end.turn, end.output) for end in ends] == [(first.turn, "first"), ((await second).turn, "second")]
        assert ledger.lines == ["pay amount=10 to=A"]


async def test_of_a_batch_with_one_parked_the_others_keep_their_results_and_run_once() -> None:
    ledger = Ledger()
    boss = agent("boss", ledger.tool("look"), paying(ledger, parallel_safe=True))
    batch = [call("look", n=1), pay(), call("look", n=2)]
    async with asyncio.timeout(5), office(boss, plays(boss=[batch, "done"])) as it:
        assert (await it.session.run("go")).pending == ("a0001",)
        assert ledger.lines == ["look n=1", "look n=2"]
        await it.session.send(approve("a0001"))
        await it.quiet()
        assert ledger.lines == ["look n=1", "look n=2", "pay amount=10 to=A"]
        entries = await it.entries()
    assert faults(entries) == []


async def test_calls_in_order_wait_behind_the_one_that_is_parked() -> None:
    ledger = Ledger()
    boss = agent("boss", ledger.tool("note", Access.WRITE), paying(ledger))
    batch = [call("note", n=1), pay(), call("note", n=2)]
    async with asyncio.timeout(5), office(boss, plays(boss=[batch, "done"])) as it:
        await it.session.run("go")
        assert ledger.lines == ["note n=1"]
        await it.session.send(approve("a0001"))
        await it.quiet()
    assert ledger.lines == ["note n=1", "pay amount=10 to=A", "note n=2"]


async def test_two_questions_of_one_batch_are_answered_one_by_one_in_any_order() -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger, parallel_safe=True))
    async with asyncio.timeout(5), office(boss, plays(boss=[[pay(1), pay(2)], "done"])) as it:
        assert (await it.session.run("go")).pending == ("a0001", "a0002")
        await it.session.send(approve("a0002"))
        await it.quiet()
        assert ledger.lines == ["pay amount=2 to=A"]
        assert (await it.session.run()).pending == ("a0001",)
        await it.session.send(reject("a0001"))
        await it.quiet()
        assert ledger.lines == ["pay amount=2 to=A"]
        (end,) = await it.records(TurnEnded)
        assert end.reason is StopReason.COMPLETED


@pytest.mark.requirement("I8", "I14")
async def test_a_parked_session_is_closed_and_resumed_and_the_answer_still_counts_once() -> None:
    ledger, store = Ledger(), MemoryStore()
    boss, model = agent("boss", paying(ledger)), plays(boss=[pay(), "paid"])
    async with asyncio.timeout(5):
        async with office(boss, model, store=store) as it:
            parked = await it.session.run("go")
            handle = it.session.snapshot()
        async with office(boss, model, store=store, handle=handle) as it:
            assert (await it.session.run()).pending == ("a0001",)
            assert len(await it.records(ApprovalAsked)) == 1
            await it.session.send(approve("a0001"))
            await it.quiet()
            assert ledger.lines == ["pay amount=10 to=A"]
        async with office(boss, model, store=store, handle=handle) as it:
            await it.quiet()
            entries = await it.entries()
    assert ledger.lines == ["pay amount=10 to=A"]
    assert faults(entries) == []
    assert [e.record.turn for e in entries if isinstance(e.record, TurnEnded)] == [parked.turn]


async def test_an_answer_between_the_asking_and_the_parking_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[pay(), "paid"])) as it:
        obtain = it.supervisor.approvals.obtain

        async def answered_at_once(*call: Any) -> bool:
            in_place = await obtain(*call)
            it.supervisor.approvals.answer(approve("a0001"))
            return in_place

        monkeypatch.setattr(it.supervisor.approvals, "obtain", answered_at_once)
        await it.session.run("go")
        await it.quiet()
        assert ledger.lines == ["pay amount=10 to=A"]
        assert [end.output for end in await it.records(TurnEnded)] == ["paid"]


async def test_an_answer_while_the_parking_is_being_written_opens_the_turn_again() -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[pay(), "paid"])) as it:
        await it.session.send("go")
        await it.until(lambda: it.supervisor.members["boss"].actor.parked)
        it.supervisor.approvals.answer(approve("a0001"))
        await it.quiet()
        assert ledger.lines == ["pay amount=10 to=A"]
        assert [end.output for end in await it.records(TurnEnded)] == ["paid"]


@pytest.mark.requirement("I11")
async def test_a_turn_that_is_opened_again_in_the_moment_of_the_closing_leaves_nothing_behind() -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        async with asyncio.timeout(5), office(boss, plays(boss=[pay(), "paid"])) as it:
            await it.session.run("go")
            it.supervisor.woken("boss")
            await it.supervisor.stops.all()
        del it
        gc.collect()
    assert [str(warning.message) for warning in caught] == []
    assert ledger.lines == []


@pytest.mark.requirement("I14")
async def test_the_stop_of_a_parked_turn_ends_it_and_its_question_is_closed() -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[pay(), "again"])) as it:
        await it.session.run("go")
        await it.session.send(Stop())
        await it.quiet()
        (end,) = await it.records(TurnEnded)
        assert end.reason is StopReason.CANCELLED
        assert it.supervisor.approvals.pending() == ()
        with pytest.raises(AnswerRefused) as caught:
            await it.session.send(approve("a0001"))
        assert caught.value.code == "closed"
        assert (await it.session.run("more")).output == "again"
        assert ledger.lines == []


async def test_waiting_for_a_person_holds_no_model_slot() -> None:
    ledger = Ledger()
    worker = agent("worker", paying(ledger))
    boss = agent("boss", children=[worker])
    start = call("delegate", child="worker", task="pay", background=True)
    model = plays(boss=[start, "one", "two"], worker=[pay(), "paid"])
    async with asyncio.timeout(5), office(boss, model, limits=SessionLimits(model_requests=1)) as it:
        await it.session.run("go")
        await it.until(lambda: it.supervisor.approvals.pending() == ("a0001",))
        await it.quiet()
        assert (await it.session.run("more")).output == "two"


async def test_a_question_that_nobody_answers_lapses_and_is_no_refusal() -> None:
    ledger, clock = Ledger(), ManualClock()
    boss = agent("boss", paying(ledger))
    model = plays(boss=[pay(), pay(), "paid"])
    approver = Approver(KEY, expires_s=60)
    async with asyncio.timeout(5), office(boss, model, clock=clock, approver=approver) as it:
        await it.session.run("go")
        clock.advance(59)
        await it.quiet()
        assert await it.records(ApprovalLapsed) == []
        clock.advance(1)
        await it.quiet()
        (lapsed,) = await answered(it, "boss")
        assert codes([lapsed]) == ["approval_expired"]
        assert lapsed.denial is not None
        assert lapsed.denial.retryable == "later"
        assert "said no" not in lapsed.text
        assert it.supervisor.approvals.pending() == ("a0002",)
        await it.session.send(approve("a0002"))
        await it.quiet()
        assert codes(await answered(it, "boss")) == ["approval_expired", "ok"]
    assert ledger.lines == ["pay amount=10 to=A"]


async def test_a_yes_that_came_in_time_is_too_old_after_its_expiry() -> None:
    ledger, clock, store = Ledger(), ManualClock(), MemoryStore()
    boss, model = agent("boss", paying(ledger)), plays(boss=[pay(), "then not"])
    approver = Approver(KEY, expires_s=60)
    async with asyncio.timeout(5):
        async with office(boss, model, clock=clock, approver=approver, store=store) as it:
            await it.session.run("go")
            handle = it.session.snapshot()
            it.supervisor.closing = True
            it.supervisor.approvals.answer(approve("a0001"))
        clock.advance(61)
        async with office(boss, model, clock=clock, approver=approver, store=store, handle=handle) as it:
            await it.quiet()
            assert codes(await answered(it, "boss")) == ["approval_expired"]
    assert ledger.lines == []


async def test_a_parked_turn_outlives_its_seconds() -> None:
    ledger, clock = Ledger(), ManualClock()
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[pay(), "paid"]), clock=clock) as it:
        await it.session.run(Turn("go", limits=Limits(seconds=10)))
        clock.advance(3600)
        await it.quiet()
        await it.session.send(approve("a0001"))
        await it.quiet()
        (end,) = await it.records(TurnEnded)
        assert (end.reason, end.output) == (StopReason.COMPLETED, "paid")


async def test_the_seconds_that_a_turn_used_before_it_was_parked_are_not_given_back() -> None:
    ledger, clock, gates = Ledger(), ManualClock(), (Gate(), Gate())
    waits = [made(f"wait{n}", gate.wait, timeout_s=None) for n, gate in enumerate(gates)]
    boss = agent("boss", paying(ledger), *waits)
    model = plays(boss=[call("wait0"), pay(), call("wait1"), "paid"])
    async with asyncio.timeout(5), office(boss, model, clock=clock) as it:
        running = asyncio.ensure_future(it.session.run(Turn("go", limits=Limits(seconds=10))))
        await gates[0].entered.wait()
        clock.advance(8)
        gates[0].leave.set()
        assert (await running).stop_reason is StopReason.SUSPENDED
        await it.session.send(approve("a0001"))
        await gates[1].entered.wait()
        clock.advance(5)
        gates[1].leave.set()
        await it.quiet()
        (end,) = await it.records(TurnEnded)
        assert end.reason is StopReason.TIMED_OUT


async def test_a_question_to_a_person_is_answered_in_the_persons_words() -> None:
    boss = agent("boss")
    model = plays(boss=[call("ask_person", question="Which colour?"), "thanks"])
    async with asyncio.timeout(5), office(boss, model) as it:
        await it.session.run("go")
        await it.session.send(approve("a0001", reason="blue"))
        await it.quiet()
        (result,) = await answered(it, "boss", "ask_person")
        assert codes([result]) == ["ok"]
        assert "blue" in result.text


async def test_every_turn_that_waited_is_on_record_as_accepted_once() -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger, approval=Approval.EACH_CALL))
    async with asyncio.timeout(5), office(boss, plays(boss=[pay(), "paid"])) as it:
        await it.session.run("go")
        await it.session.send(approve("a0001"))
        await it.quiet()
        (accepted,) = await it.records(TurnAccepted)
        assert accepted.origin is TurnOrigin.RUN


async def test_a_question_has_one_deadline_however_often_its_turn_is_opened_and_none_after_the_answer() -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[pay(), "paid"])) as it:
        await it.session.run("go")
        armed = len(it.supervisor.deadlines._due)
        for _ in range(5):
            it.supervisor.woken("boss")
            await it.quiet()
        assert len(it.supervisor.deadlines._due) == armed == 1
        await it.session.send(approve("a0001"))
        await it.quiet()
        assert it.supervisor.deadlines._due == {}
    assert ledger.lines == ["pay amount=10 to=A"]
