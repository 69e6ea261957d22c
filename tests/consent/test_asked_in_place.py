"""Somebody is at the desk: the call waits in place, and goes on with the answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from actors.messages import Limits, StopReason
from orchestrator import Turn
from orchestrator.errors import AnswerRefused, TransitionRefused
from orchestrator.journal.consent import ApprovalAnswered, ApprovalAsked
from orchestrator.journal.records import ActorRestarted, TurnEnded
from orchestrator.models.function import call
from orchestrator.runtime import SessionLimits
from orchestrator.testing import ManualClock
from orchestrator.turn import Stop, Transition
from tests.consent.office import (
    Person,
    answered,
    approve,
    at_the_desk,
    codes,
    handed_down,
    never,
    no,
    office,
    paying,
    reject,
    tree,
    yes,
)
from tests.core.stage import Gate, Ledger, made
from tests.supervision.scene import agent, plays

if TYPE_CHECKING:
    from orchestrator.approver import Answer

PAY = call("pay", to="A", amount=10)


@pytest.mark.requirement("I8", "B65")
async def test_a_yes_in_place_runs_the_call_and_the_turn_is_never_parked() -> None:
    ledger, person = Ledger(), Person(yes)
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[PAY, "paid"]), approver=at_the_desk(person)) as it:
        result = await it.session.run("go")
        assert (result.stop_reason, result.output) == (StopReason.COMPLETED, "paid")
    (question,) = person.asked
    assert (question.actor, question.tool, question.arguments) == ("boss", "pay", '{"amount":10,"to":"A"}')
    assert question.session == it.session.snapshot().session
    assert ledger.lines == ["pay amount=10 to=A"]


async def test_a_no_in_place_runs_nothing() -> None:
    ledger, person = Ledger(), Person(no)
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[PAY, "not"]), approver=at_the_desk(person)) as it:
        assert (await it.session.run("go")).output == "not"
        assert codes(await answered(it, "boss")) == ["approval_rejected"]
    assert ledger.lines == []


@pytest.mark.requirement("I8")
async def test_of_an_answer_at_the_desk_and_one_by_message_the_first_counts() -> None:
    ledger, gate = Ledger(), Gate()

    async def later(question: Any) -> Answer:
        await gate.wait()
        return reject(question.approval)

    person = Person(later)
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[PAY, "paid"]), approver=at_the_desk(person)) as it:
        running = asyncio.ensure_future(it.session.run("go"))
        await gate.entered.wait()
        await it.session.send(approve("a0001"))
        gate.leave.set()
        assert (await running).output == "paid"
        with pytest.raises(AnswerRefused) as caught:
            await it.session.send(reject("a0001"))
        assert caught.value.code == "answered"
        (answer,) = await it.records(ApprovalAnswered)
        assert answer.approved
    assert ledger.lines == ["pay amount=10 to=A"]


async def test_an_answer_by_message_withdraws_the_question_at_the_desk() -> None:
    ledger, person = Ledger(), Person(never)
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[PAY, "paid"]), approver=at_the_desk(person)) as it:
        running = asyncio.ensure_future(it.session.run("go"))
        await person.came.wait()
        await it.session.send(approve("a0001"))
        assert (await running).output == "paid"
        await asyncio.sleep(0)
        assert person.withdrawn == 1


@pytest.mark.requirement("I11")
async def test_closing_withdraws_the_question_and_leaves_no_task() -> None:
    ledger, person = Ledger(), Person(never)
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5):
        before = asyncio.all_tasks()
        async with office(boss, plays(boss=[PAY, "paid"]), approver=at_the_desk(person)) as it:
            await it.session.send("go")
            await person.came.wait()
        assert person.withdrawn == 1
        assert asyncio.all_tasks() == before
    assert ledger.lines == []


async def test_a_stop_while_a_person_thinks_ends_the_turn_and_withdraws_the_question() -> None:
    ledger, person = Ledger(), Person(never)
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[PAY, "paid"]), approver=at_the_desk(person)) as it:
        running = asyncio.ensure_future(it.session.run("go"))
        await person.came.wait()
        await it.session.send(Stop())
        assert (await running).stop_reason is StopReason.CANCELLED
        await it.quiet()
        await asyncio.sleep(0)
        assert person.withdrawn == 1
        with pytest.raises(AnswerRefused) as caught:
            await it.session.send(approve("a0001"))
        assert caught.value.code == "closed"
    assert ledger.lines == []


async def nothing(_: Any) -> None:
    """Have no answer to give."""


def broken(_: Any) -> Answer:
    """Fail as a dialogue does whose window is gone."""
    message = "the window is gone"
    raise OSError(message)


def gone(_: Any) -> Answer:
    """End as cancelled, although nobody asked for it."""
    raise asyncio.CancelledError


def wrong_key(question: Any) -> Answer:
    """Say yes with another key."""
    return approve(question.approval, key="guessed")


def other_question(_: Any) -> Answer:
    """Answer what was not asked."""
    return approve("a0099")


def bad_edit(question: Any) -> Answer:
    """Edit the arguments to what the tool does not take."""
    return approve(question.approval, arguments='{"to":"A"}')


def bad_rule(question: Any) -> Answer:
    """Make a rule of what the call does not have."""
    return approve(question.approval, always=("colour",))


@pytest.mark.requirement("B65", "I7")
@pytest.mark.parametrize(
    "say", [nothing, broken, gone, wrong_key, other_question, bad_edit, bad_rule], ids=lambda say: say.__name__
)
async def test_what_is_no_answer_is_neither_a_yes_nor_a_crash_and_the_turn_goes_on(say: Any) -> None:
    ledger, person = Ledger(), Person(say, yes)
    boss = agent("boss", paying(ledger))
    model = plays(boss=[PAY, PAY, "paid"])
    async with asyncio.timeout(5), office(boss, model, approver=at_the_desk(person)) as it:
        assert (await it.session.run("go")).output == "paid"
        assert codes(await answered(it, "boss")) == ["approval_expired", "ok"]
        assert await it.records(ActorRestarted) == []
        assert [record.approval for record in await it.records(ApprovalAsked)] == ["a0001", "a0002"]
    assert ledger.lines == ["pay amount=10 to=A"]


async def test_a_person_who_takes_too_long_lets_the_question_lapse() -> None:
    ledger, clock, person = Ledger(), ManualClock(), Person(never)
    boss = agent("boss", paying(ledger))
    approver = at_the_desk(person, expires_s=60)
    async with (
        asyncio.timeout(5),
        office(boss, plays(boss=[PAY, "not now"]), clock=clock, approver=approver) as it,
    ):
        running = asyncio.ensure_future(it.session.run("go"))
        await person.came.wait()
        clock.advance(60)
        assert (await running).output == "not now"
        (result,) = await answered(it, "boss")
        assert codes([result]) == ["approval_expired"]
        with pytest.raises(AnswerRefused) as caught:
            await it.session.send(approve("a0001"))
        assert caught.value.code in ("closed", "expired")
    assert ledger.lines == []


async def test_an_answer_after_the_expiry_by_the_wall_clock_is_refused() -> None:
    ledger, clock, person = Ledger(), ManualClock(), Person(never)
    boss = agent("boss", paying(ledger))
    approver = at_the_desk(person, expires_s=60)
    async with asyncio.timeout(5), office(boss, plays(boss=[PAY, "no"]), clock=clock, approver=approver) as it:
        running = asyncio.ensure_future(it.session.run("go"))
        await person.came.wait()
        clock.jump(61)
        with pytest.raises(AnswerRefused) as caught:
            await it.session.send(approve("a0001"))
        assert caught.value.code == "expired"
        clock.advance(60)
        await running
    assert ledger.lines == []


async def test_the_time_that_a_person_takes_counts_against_no_turn_that_waits() -> None:
    ledger, clock, person = Ledger(), ManualClock(), Person(never)
    boss = tree(paying(ledger))
    model = plays(**handed_down(PAY))
    async with asyncio.timeout(5), office(boss, model, clock=clock, approver=at_the_desk(person)) as it:
        running = asyncio.ensure_future(it.session.run(Turn("go", limits=Limits(seconds=10))))
        await person.came.wait()
        clock.advance(4000)
        await it.session.send(approve("a0001"))
        result = await running
        assert (result.stop_reason, result.output) == (StopReason.COMPLETED, "pay ran")


async def test_the_time_after_the_answer_counts_again_where_it_stood() -> None:
    ledger, clock, person, gates = Ledger(), ManualClock(), Person(never), (Gate(), Gate())
    waits = [made(f"wait{n}", gate.wait, timeout_s=None) for n, gate in enumerate(gates)]
    boss = agent("boss", paying(ledger), *waits)
    model = plays(boss=[call("wait0"), PAY, call("wait1"), "paid"])
    async with asyncio.timeout(5), office(boss, model, clock=clock, approver=at_the_desk(person)) as it:
        running = asyncio.ensure_future(it.session.run(Turn("go", limits=Limits(seconds=10))))
        await gates[0].entered.wait()
        clock.advance(8)
        gates[0].leave.set()
        await person.came.wait()
        clock.advance(500)
        await it.session.send(approve("a0001"))
        await gates[1].entered.wait()
        clock.advance(1.5)
        assert not running.done()
        clock.advance(1)
        assert (await running).stop_reason is StopReason.TIMED_OUT


async def test_the_time_that_a_person_takes_does_not_count_for_whoever_collects_the_child() -> None:
    ledger, clock, person, gate = Ledger(), ManualClock(), Person(never), Gate()
    boss = agent("boss", children=[agent("worker", paying(ledger), made("wait", gate.wait, timeout_s=None))])
    start = call("delegate", child="worker", task="pay", background=True)
    collect = call("collect_child", child="worker-0002")
    model = plays(boss=[start, collect, "collected"], worker=[call("wait"), PAY, "paid"])
    async with asyncio.timeout(5), office(boss, model, clock=clock, approver=at_the_desk(person)) as it:
        running = asyncio.ensure_future(it.session.run(Turn("go", limits=Limits(seconds=10))))
        await it.until(lambda: bool(it.supervisor.waits._waits))
        gate.leave.set()
        await person.came.wait()
        clock.advance(4000)
        await it.session.send(approve("a0001"))
        assert (await running).output == "collected"


async def test_a_person_who_thinks_holds_no_model_slot() -> None:
    ledger, person = Ledger(), Person(never)
    boss = agent("boss", children=[agent("worker", paying(ledger))])
    start = call("delegate", child="worker", task="pay", background=True)
    model = plays(boss=[start, "one", "two"], worker=[PAY, "paid"])
    limits = SessionLimits(model_requests=1)
    async with asyncio.timeout(5), office(boss, model, limits=limits, approver=at_the_desk(person)) as it:
        await it.session.run("go")
        await person.came.wait()
        assert (await it.session.run("more")).output == "two"


async def test_two_calls_of_one_batch_wait_side_by_side_each_for_its_own_answer() -> None:
    ledger, person = Ledger(), Person(never, never)
    boss = agent("boss", paying(ledger, parallel_safe=True))
    batch = [call("pay", to="A", amount=1), call("pay", to="B", amount=2)]
    async with asyncio.timeout(5), office(boss, plays(boss=[batch, "done"]), approver=at_the_desk(person)) as it:
        running = asyncio.ensure_future(it.session.run("go"))
        await it.until(lambda: len(person.asked) == 2 or it.supervisor.approvals.pending() == ("a0001", "a0002"))
        await it.session.send(approve("a0002"))
        await it.session.send(reject("a0001"))
        await running
        assert codes(await answered(it, "boss")) in (["ok", "approval_rejected"], ["approval_rejected", "ok"])
        (end,) = await it.records(TurnEnded)
        assert end.reason is StopReason.COMPLETED
    assert ledger.lines == ["pay amount=2 to=B"]


async def test_an_answer_is_no_transition_and_a_session_without_states_takes_none() -> None:
    boss = agent("boss")
    async with asyncio.timeout(5), office(boss, plays(boss=["ok"])) as it:
        with pytest.raises(TransitionRefused):
            await it.session.send(Transition("Anywhere"))
        assert (await it.session.run("go")).output == "ok"
