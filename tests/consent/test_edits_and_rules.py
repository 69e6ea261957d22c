"""A person's edit of a call, and standing rules: checked like any call, recorded, of exact scope."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from actors import Access
from actors.grants import Grants
from actors.messages import Outcome
from orchestrator import Turn
from orchestrator.errors import AnswerRefused
from orchestrator.journal.consent import ApprovalAnswered, ApprovalAsked, RuleMade
from orchestrator.journal.memory import MemoryStore
from orchestrator.journal.records import CallIntended
from orchestrator.models.function import call
from orchestrator.runtime import OWNER, Principal
from tests.consent.office import Person, answered, approve, at_the_desk, codes, never, office, paying, reject
from tests.core.stage import Ledger, calls, raw
from tests.supervision.scene import agent, plays

if TYPE_CHECKING:
    from pathlib import Path

A10 = call("pay", to="A", amount=10)


@pytest.mark.requirement("I8")
async def test_edited_arguments_are_what_runs_recorded_and_shown_as_edited() -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[A10, "x"])) as it:
        await it.session.run("go")
        await it.session.send(approve("a0001", arguments='{ "to": "A", "amount": 9 }', by="ann"))
        await it.quiet()
        (record,) = await it.records(ApprovalAnswered)
        assert (record.edited, record.arguments, record.by) == (True, '{"amount":9,"to":"A"}', "ann")
        (asked,) = await it.records(ApprovalAsked)
        assert asked.arguments == '{"amount":10,"to":"A"}'
        (result,) = await answered(it, "boss")
        assert 'as a person edited them: {"amount":9,"to":"A"}' in result.text.replace('{ "to": "A", "amount": 9 }', "")
        (intent,) = await it.records(CallIntended)
        assert intent.arguments == '{"amount":9,"to":"A"}'
    assert ledger.lines == ["pay amount=9 to=A"]


@pytest.mark.requirement("I8", "I7")
@pytest.mark.parametrize(
    "text", ["[]", "nothing", '{"to":"A"}', '{"to":"A","amount":null}', '{"to":"A","amount":1,"more":1}', '"\ud800"']
)
async def test_an_edit_that_the_schema_refuses_does_not_count_and_the_question_stays(text: str) -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[A10, "x"])) as it:
        await it.session.run("go")
        with pytest.raises(AnswerRefused) as caught:
            await it.session.send(approve("a0001", arguments=text))
        assert caught.value.code == "invalid_arguments"
        assert it.supervisor.approvals.pending() == ("a0001",)
        await it.quiet()
    assert ledger.lines == []


@pytest.mark.requirement("I8", "I7")
async def test_an_edit_that_leads_out_of_the_workspace_is_refused_at_the_run(tmp_path: Path) -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[A10, "x"]), workspace=tmp_path) as it:
        await it.session.run("go")
        await it.session.send(approve("a0001", arguments='{"to":"../A","amount":10}'))
        await it.quiet()
        assert codes(await answered(it, "boss")) == ["path_outside_workspace"]
        with pytest.raises(AnswerRefused):
            await it.session.send(approve("a0001"))
    assert ledger.lines == []


@pytest.mark.requirement("I8", "I7")
async def test_an_edit_that_leads_out_of_the_granted_roots_is_refused_at_the_run(tmp_path: Path) -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    principal = Principal(grants=Grants(OWNER.authorities, OWNER.access, ("mine",)))
    model = plays(boss=[call("pay", to="mine/a", amount=1), "x"])
    async with asyncio.timeout(5), office(boss, model, workspace=tmp_path, principal=principal) as it:
        await it.session.run("go")
        await it.session.send(approve("a0001", arguments='{"to":"other/a","amount":1}'))
        await it.quiet()
        assert codes(await answered(it, "boss")) == ["path_outside_workspace"]
    assert ledger.lines == []


@pytest.mark.requirement("I8")
async def test_an_edit_counts_for_its_own_call_only() -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[A10, A10, "x"])) as it:
        await it.session.run("go")
        await it.session.send(approve("a0001", arguments='{"to":"B","amount":1}'))
        await it.quiet()
        assert it.supervisor.approvals.question("a0002").arguments == '{"amount":10,"to":"A"}'
        await it.session.send(approve("a0002"))
        await it.quiet()
    assert ledger.lines == ["pay amount=1 to=B", "pay amount=10 to=A"]


@pytest.mark.requirement("I8")
async def test_an_edit_survives_the_end_of_the_session_before_it_ran() -> None:
    ledger, store = Ledger(), MemoryStore()
    boss, model = agent("boss", paying(ledger)), plays(boss=[A10, "x"])
    async with asyncio.timeout(5):
        async with office(boss, model, store=store) as it:
            await it.session.run("go")
            handle = it.session.snapshot()
            it.supervisor.closing = True
            it.supervisor.approvals.answer(approve("a0001", arguments='{"to":"B","amount":1}'))
        assert ledger.lines == []
        async with office(boss, model, store=store, handle=handle) as it:
            await it.quiet()
    assert ledger.lines == ["pay amount=1 to=B"]


async def spending(rule: tuple[str, ...], *following: Any, **declared: Any) -> tuple[Ledger, list[str], Any]:
    """Approve A,10 with a rule, then make the *following* calls; return what ran, what is asked, and the rules."""
    ledger = Ledger()
    boss = agent("boss", paying(ledger, **declared))
    script = [A10, *following, "x"]
    async with asyncio.timeout(5), office(boss, plays(boss=script)) as it:
        await it.session.run("go")
        await it.session.send(approve("a0001", always=rule, by="ann"))
        await it.quiet()
        pending = [it.supervisor.approvals.question(name).arguments for name in it.supervisor.approvals.pending()]
        return ledger, pending, await it.records(RuleMade)


@pytest.mark.requirement("I8")
async def test_a_rule_covers_calls_with_the_approved_value_and_says_who_made_it() -> None:
    ledger, pending, (rule,) = await spending(("to",), call("pay", to="A", amount=99))
    assert ledger.lines == ["pay amount=10 to=A", "pay amount=99 to=A"]
    assert pending == []
    assert (rule.tool, rule.version, rule.fields, rule.by) == ("pay", "1", (("to", '"A"'),), "ann")


@pytest.mark.requirement("I8")
@pytest.mark.parametrize("amount", ["10.0", '"10"', "11", "1e1"])
async def test_a_rule_for_ten_does_not_cover_ten_written_otherwise(amount: str) -> None:
    ledger, pending, _ = await spending(("amount",), calls(raw("pay", f'{{"to":"B","amount":{amount}}}')))
    assert ledger.lines == ["pay amount=10 to=A"]
    assert len(pending) == 1


@pytest.mark.requirement("I8")
async def test_a_rule_of_two_fields_needs_both_values() -> None:
    ledger, pending, _ = await spending(("to", "amount"), A10, call("pay", to="A", amount=11))
    assert ledger.lines == ["pay amount=10 to=A", "pay amount=10 to=A"]
    assert pending == ['{"amount":11,"to":"A"}']


async def test_a_rule_for_a_field_that_the_call_does_not_have_does_not_count() -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[A10, "x"])) as it:
        await it.session.run("go")
        with pytest.raises(AnswerRefused) as caught:
            await it.session.send(approve("a0001", always=("to", "colour")))
        assert caught.value.code == "invalid_rule"
        assert "colour" in caught.value.reason
        assert await it.records(RuleMade) == []
        assert it.supervisor.approvals.pending() == ("a0001",)


@pytest.mark.requirement("I8")
async def test_a_rule_holds_for_the_edited_value_that_was_approved() -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    model = plays(boss=[A10, call("pay", to="B", amount=10), A10, "x"])
    async with asyncio.timeout(5), office(boss, model) as it:
        await it.session.run("go")
        await it.session.send(approve("a0001", arguments='{"to":"B","amount":10}', always=("to",)))
        await it.quiet()
        assert ledger.lines == ["pay amount=10 to=B", "pay amount=10 to=B"]
        assert [it.supervisor.approvals.question(a).arguments for a in it.supervisor.approvals.pending()] == [
            '{"amount":10,"to":"A"}'
        ]


@pytest.mark.requirement("I8")
async def test_a_rule_of_one_definition_does_not_cover_another_ones_tool_of_that_name() -> None:
    ledger = Ledger()
    worker = agent("worker", paying(ledger))
    boss = agent("boss", paying(ledger), children=[worker])
    model = plays(boss=[A10, call("delegate", child="worker", task="pay"), "x"], worker=[A10, "y"])
    async with asyncio.timeout(5), office(boss, model) as it:
        await it.session.run("go")
        await it.session.send(approve("a0001", always=("to", "amount")))
        await it.quiet()
        assert ledger.lines == ["pay amount=10 to=A"]
        (pending,) = it.supervisor.approvals.pending()
        assert it.supervisor.approvals.question(pending).actor == "boss/worker-0002"


@pytest.mark.requirement("I8", "I7")
async def test_a_rule_opens_no_other_gate() -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger), ledger.tool("look"))
    model = plays(boss=[A10, "x", A10, "y"])
    async with asyncio.timeout(5), office(boss, model) as it:
        await it.session.run("go")
        await it.session.send(approve("a0001", always=("to", "amount")))
        await it.quiet()
        result = await it.session.run(Turn("again", grants=Grants(access=Access.READ)))
        assert codes(await answered(it, "boss")) == ["ok", "access_exceeded"]
        assert len(result.failures) == 1
    assert ledger.lines == ["pay amount=10 to=A"]


async def test_a_rejection_makes_no_rule() -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[A10, A10, "x"])) as it:
        await it.session.run("go")
        await it.session.send(reject("a0001", always=("to",)))
        await it.quiet()
        assert await it.records(RuleMade) == []
        assert it.supervisor.approvals.pending() == ("a0002",)
        (result,) = await answered(it, "boss")
        assert result.outcome is Outcome.DENIED


@pytest.mark.requirement("I8")
async def test_a_rule_is_still_there_after_a_resume_and_still_of_the_same_scope() -> None:
    ledger, store = Ledger(), MemoryStore()
    boss = agent("boss", paying(ledger))
    model = plays(boss=[A10, "x", call("pay", to="A", amount=11), call("pay", to="B", amount=11), "y"])
    async with asyncio.timeout(5):
        async with office(boss, model, store=store) as it:
            await it.session.run("go")
            await it.session.send(approve("a0001", always=("to",)))
            await it.quiet()
            handle = it.session.snapshot()
        async with office(boss, model, store=store, handle=handle) as it:
            result = await it.session.run("more")
            assert it.supervisor.approvals.question(*result.pending).arguments == '{"amount":11,"to":"B"}'
    assert ledger.lines == ["pay amount=10 to=A", "pay amount=11 to=A"]


@pytest.mark.requirement("I8")
async def test_a_no_to_the_very_call_outweighs_a_rule_that_was_made_meanwhile() -> None:
    ledger, person = Ledger(), Person(never, never)
    boss = agent("boss", paying(ledger, parallel_safe=True))
    batch = [call("pay", to="A", amount=1), call("pay", to="A", amount=2)]
    approver = at_the_desk(person)
    async with asyncio.timeout(5), office(boss, plays(boss=[batch, "x"]), approver=approver) as it:
        await it.session.send("go")
        await it.until(lambda: it.supervisor.approvals.pending() == ("a0001", "a0002"))
        await it.session.send(approve("a0002", always=("to",)))
        await it.session.send(reject("a0001"))
        await it.quiet()
        assert sorted(codes(await answered(it, "boss"))) == ["approval_rejected", "ok"]
    assert ledger.lines == ["pay amount=2 to=A"]
