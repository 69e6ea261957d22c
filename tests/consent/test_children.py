"""A child's question shows its whole path, its answer opens the child again, and nobody else is touched."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from actors.grants import Budget, Grants
from actors.messages import StopReason
from orchestrator import Policy, Turn
from orchestrator.errors import AnswerRefused
from orchestrator.journal.consent import ApprovalAsked
from orchestrator.journal.memory import MemoryStore
from orchestrator.journal.records import ActorRestarted, OutcomeRecorded, TurnEnded
from orchestrator.models.function import call
from orchestrator.runtime import OWNER, Principal
from orchestrator.turn import Stop
from tests.consent.office import (
    Person,
    answered,
    approve,
    at_the_desk,
    codes,
    handed_down,
    last,
    never,
    no,
    office,
    paying,
    reject,
    tree,
    yes,
)
from tests.core.stage import Gate, Ledger, made
from tests.supervision.scene import Scene, agent, faults, heard, plays

PAY = call("pay", to="A", amount=10)
G = "boss/c-0002/g-0003"


async def settled(it: Scene) -> None:
    """Wait until nothing moves, and hold the journal to what must be true of it."""
    await it.quiet()
    assert faults(await it.entries()) == []


@pytest.mark.requirement("B65", "I8")
async def test_a_grandchilds_question_shows_path_and_arguments_and_its_answer_resumes_it() -> None:
    ledger = Ledger()
    async with asyncio.timeout(5), office(tree(paying(ledger)), plays(**handed_down(PAY))) as it:
        result = await it.session.run("go")
        assert (result.stop_reason, result.pending) == (StopReason.SUSPENDED, ("a0001",))
        question = it.supervisor.approvals.question("a0001")
        assert (question.actor, question.tool, question.arguments) == (G, "pay", '{"amount":10,"to":"A"}')
        delivery = await it.session.send(approve("a0001"))
        assert delivery.turn == it.supervisor.journal.state.approvals["a0001"].asked.turn
        await settled(it)
        assert [(end.output) for end in await it.records(TurnEnded)] == ["pay ran"] * 3
    assert ledger.lines == ["pay amount=10 to=A"]


@pytest.mark.requirement("B65")
async def test_run_after_an_answer_to_a_grandchild_waits_for_the_end_of_the_whole_turn() -> None:
    ledger, gate = Ledger(), Gate()
    boss = tree(paying(ledger), made("wait", gate.wait))
    async with asyncio.timeout(5), office(boss, plays(**handed_down(PAY, call("wait")))) as it:
        await it.session.run("go")
        await it.session.send(approve("a0001"))
        await gate.entered.wait()
        running = asyncio.ensure_future(it.session.run())
        await it.until(lambda: True)
        gate.leave.set()
        result = await running
        assert (result.stop_reason, result.output) == (StopReason.COMPLETED, "left")


@pytest.mark.requirement("B65")
async def test_a_no_resumes_the_grandchild_which_may_ask_again_and_get_a_yes() -> None:
    ledger = Ledger()
    async with asyncio.timeout(5), office(tree(paying(ledger)), plays(**handed_down(PAY, PAY))) as it:
        await it.session.run("go")
        await it.session.send(reject("a0001", reason="ask me tomorrow"))
        await it.quiet()
        assert codes(await answered(it, G)) == ["approval_rejected"]
        assert it.supervisor.approvals.pending() == ("a0002",)
        await it.session.send(approve("a0002"))
        await settled(it)
        assert codes(await answered(it, G)) == ["approval_rejected", "ok"]
    assert ledger.lines == ["pay amount=10 to=A"]


@pytest.mark.requirement("B65")
@pytest.mark.parametrize("first", [yes, no], ids=["yes", "no"])
async def test_in_place_the_decision_of_one_sibling_does_not_touch_the_other(first: Any) -> None:
    ledger, person = Ledger(), Person(first, yes)
    boss = agent("boss", children=[agent("c", paying(ledger)), agent("d", paying(ledger, "send"))])
    batch = [call("delegate", child="c", task="pay"), call("delegate", child="d", task="send")]
    model = plays(boss=[batch, "both"], c=[PAY, last], d=[call("send", to="B", amount=1), last])
    async with asyncio.timeout(5), office(boss, model, approver=at_the_desk(person)) as it:
        assert (await it.session.run("go")).output == "both"
        assert [q.actor for q in person.asked] == ["boss/c-0002", "boss/d-0003"]
        assert codes(await answered(it, "boss/d-0003", "send")) == ["ok"]
        assert codes(await answered(it, "boss/c-0002")) == (["ok"] if first is yes else ["approval_rejected"])


@pytest.mark.requirement("B65", "I10")
@pytest.mark.parametrize("order", [("a0001", "a0002"), ("a0002", "a0001")])
async def test_parked_siblings_are_answered_in_any_order(order: tuple[str, str]) -> None:
    ledger = Ledger()
    boss = agent("boss", children=[agent("c", paying(ledger)), agent("d", paying(ledger, "send"))])
    batch = [call("delegate", child="c", task="pay"), call("delegate", child="d", task="send")]
    model = plays(boss=[batch, "both"], c=[PAY, last], d=[call("send", to="B", amount=1), last])
    async with asyncio.timeout(5), office(boss, model) as it:
        assert (await it.session.run("go")).pending == ("a0001", "a0002")
        await it.session.send(approve(order[0]))
        await it.quiet()
        assert len(ledger.lines) == 1
        assert it.supervisor.approvals.pending() == (order[1],)
        await it.session.send(approve(order[1]))
        await settled(it)
        assert [end.output for end in await it.records(TurnEnded)][-1] == "both"
    assert sorted(ledger.lines) == ["pay amount=10 to=A", "send amount=1 to=B"]


@pytest.mark.requirement("I10", "I14")
async def test_a_child_that_is_answered_and_ends_while_its_parent_still_works_is_not_lost() -> None:
    ledger, gate = Ledger(), Gate()
    boss = agent("boss", made("wait", gate.wait, timeout_s=None), children=[agent("c", paying(ledger))])
    batch = [call("delegate", child="c", task="pay"), call("wait")]
    model = plays(boss=[batch, "both"], c=[PAY, last])
    async with asyncio.timeout(5), office(boss, model) as it:
        await it.session.send("go")
        await it.until(lambda: it.supervisor.approvals.pending() == ("a0001",))
        await it.until(lambda: it.supervisor.members["boss/c-0002"].actor.parked)
        await it.session.send(approve("a0001"))
        await it.until(lambda: "boss/c-0002" not in it.supervisor.members)
        gate.leave.set()
        await settled(it)
        assert [end.output for end in await it.records(TurnEnded)] == ["pay ran", "both"]
        assert len(await it.records(OutcomeRecorded)) == 1
    assert ledger.lines == ["pay amount=10 to=A"]


@pytest.mark.requirement("B65")
async def test_a_background_child_asks_while_its_parent_is_done_and_reports_after_the_answer() -> None:
    ledger = Ledger()
    boss = agent("boss", children=[agent("c", paying(ledger))])
    seen: list[str] = []

    def noticed(request: Any) -> str:
        seen.extend(heard(request)[-1:])
        return "noticed"

    start = call("delegate", child="c", task="pay", background=True)
    async with asyncio.timeout(5), office(boss, plays(boss=[start, "started", noticed], c=[PAY, "paid it"])) as it:
        assert (await it.session.run("go")).output == "started"
        await it.quiet()
        assert it.supervisor.approvals.pending() == ("a0001",)
        assert it.supervisor.approvals.question("a0001").actor == "boss/c-0002"
        await it.session.send(approve("a0001"))
        await settled(it)
    assert ledger.lines == ["pay amount=10 to=A"]
    assert "paid it" in seen[0]


@pytest.mark.requirement("B65", "I7")
async def test_without_an_approver_a_grandchild_is_told_so_at_once() -> None:
    ledger = Ledger()
    async with asyncio.timeout(5), office(tree(paying(ledger)), plays(**handed_down(PAY)), approver=None) as it:
        result = await it.session.run("go")
        assert result.stop_reason is StopReason.COMPLETED
        assert codes(await answered(it, G)) == ["approval_unavailable"]
        assert await it.records(ApprovalAsked) == []
        with pytest.raises(AnswerRefused):
            await it.session.send(approve("a0001"))
    assert ledger.lines == []


@pytest.mark.requirement("I8", "I14")
async def test_the_stop_of_a_parked_turn_stops_the_children_that_it_waits_for() -> None:
    ledger = Ledger()
    async with asyncio.timeout(5), office(tree(paying(ledger)), plays(**handed_down(PAY))) as it:
        await it.session.run("go")
        await it.session.send(Stop())
        await it.quiet()
        with pytest.raises(AnswerRefused) as caught:
            await it.session.send(approve("a0001"))
        await settled(it)
        assert caught.value.code == "closed"
        assert [end.reason for end in await it.records(TurnEnded)] == [StopReason.CANCELLED] * 3
    assert ledger.lines == []


async def test_the_stop_of_a_parked_turn_leaves_a_parked_background_child_alone() -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger, "send"), children=[agent("c", paying(ledger))])
    start = call("delegate", child="c", task="pay", background=True)
    model = plays(boss=[start, call("send", to="B", amount=1), "ok"], c=[PAY, last])
    async with asyncio.timeout(5), office(boss, model) as it:
        assert (await it.session.run("go")).stop_reason is StopReason.SUSPENDED
        await it.quiet()
        await it.session.send(Stop())
        await it.quiet()
        (approval,) = it.supervisor.approvals.pending()
        assert it.supervisor.approvals.question(approval).actor == "boss/c-0002"
        await it.session.send(approve(approval))
        await it.quiet()
    assert ledger.lines == ["pay amount=10 to=A"]


@pytest.mark.requirement("I14", "I11")
async def test_the_stop_of_a_parked_tree_ends_every_turn_of_it_once() -> None:
    ledger = Ledger()
    async with asyncio.timeout(5), office(tree(paying(ledger)), plays(**handed_down(PAY))) as it:
        await it.session.run("go")
        await it.session.send(Stop(scope="tree"))
        await settled(it)
        assert [end.reason for end in await it.records(TurnEnded)] == [StopReason.CANCELLED] * 3
        assert it.supervisor.approvals.pending() == ()
    assert ledger.lines == []


@pytest.mark.requirement("I14")
async def test_a_parked_child_is_stopped_by_its_parent() -> None:
    ledger = Ledger()
    boss = agent("boss", children=[agent("c", paying(ledger))])
    start = call("delegate", child="c", task="pay", background=True)
    model = plays(boss=[start, "started", call("stop_child", child="c-0002"), "stopped"], c=[PAY, last])
    async with asyncio.timeout(5), office(boss, model) as it:
        await it.session.run("go")
        await it.quiet()
        assert (await it.session.run("stop it")).output == "stopped"
        await settled(it)
        assert it.supervisor.approvals.pending() == ()
        assert len(await it.records(TurnEnded)) == 3
    assert ledger.lines == []


@pytest.mark.requirement("I8", "I10")
async def test_a_parked_tree_is_resumed_from_its_journal_and_answered_there() -> None:
    ledger, store = Ledger(), MemoryStore()
    boss, model = tree(paying(ledger)), plays(**handed_down(PAY))
    async with asyncio.timeout(5):
        async with office(boss, model, store=store) as it:
            await it.session.run("go")
            handle = it.session.snapshot()
        async with office(boss, model, store=store, handle=handle) as it:
            assert (await it.session.run()).pending == ("a0001",)
            await it.quiet()
            await it.session.send(approve("a0001"))
            await settled(it)
            assert [end.output for end in await it.records(TurnEnded)] == ["pay ran"] * 3
    assert ledger.lines == ["pay amount=10 to=A"]


async def test_a_parent_pays_for_a_parked_delegation_once() -> None:
    ledger = Ledger()
    boss = agent("boss", children=[agent("c", paying(ledger))])
    grants = Grants(OWNER.authorities, OWNER.access, OWNER.roots, Budget(calls=6))
    model = plays(boss=[call("delegate", child="c", task="pay"), last], c=[PAY, last])
    async with asyncio.timeout(5), office(boss, model, principal=Principal(grants=grants)) as it:
        await it.session.run("go")
        left = it.supervisor.members["boss"].account.left("calls")
        for _ in range(3):
            it.supervisor.woken("boss")
            await it.quiet()
        assert it.supervisor.members["boss"].account.left("calls") == left
        await it.session.send(approve("a0001"))
        await settled(it)
        assert [end.output for end in await it.records(TurnEnded)] == ["pay ran"] * 2


@pytest.mark.requirement("I6", "B65")
async def test_a_parents_policy_is_no_part_of_what_its_childs_yes_is_bound_to() -> None:
    ledger = Ledger()
    boss = tree(paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(**handed_down(PAY))) as it:
        await it.session.run(Turn("go", policy=Policy.deny("ask_person")))
        await it.session.send(approve("a0001"))
        await settled(it)
    assert ledger.lines == ["pay amount=10 to=A"]


@pytest.mark.requirement("I14")
@pytest.mark.parametrize("scope", ["turn", "tree"])
async def test_a_stop_while_a_person_is_asked_about_a_grandchild_ends_all_three_turns(scope: str) -> None:
    ledger, person = Ledger(), Person(never)
    boss, model = tree(paying(ledger)), plays(**handed_down(PAY))
    async with asyncio.timeout(5), office(boss, model, approver=at_the_desk(person)) as it:
        await it.session.send("go")
        await person.came.wait()
        await it.session.send(Stop(scope=scope))
        await settled(it)
        assert [end.reason for end in await it.records(TurnEnded)] == [StopReason.CANCELLED] * 3
        assert it.supervisor.approvals.pending() == ()
        assert person.withdrawn == 1
    assert ledger.lines == []


async def test_a_child_that_crashed_while_it_asked_asks_the_same_question_under_its_new_incarnation() -> None:
    ledger, person = Ledger(), Person(never, yes)
    boss, model = tree(paying(ledger)), plays(**handed_down(PAY))
    async with asyncio.timeout(5), office(boss, model, approver=at_the_desk(person)) as it:
        await it.session.send("go")
        await person.came.wait()
        (task,) = [task for task in it.supervisor.tasks if task.get_name() == G]
        task.cancel()
        await settled(it)
        assert [question.approval for question in person.asked] == ["a0001", "a0001"]
        assert len(await it.records(ActorRestarted)) == 1
    assert ledger.lines == ["pay amount=10 to=A"]
