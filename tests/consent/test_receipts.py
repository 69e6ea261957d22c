"""What a yes is bound to: one call of one actor in one session, its exact arguments, the terms it was asked under."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from orchestrator import Policy, Turn
from orchestrator.approver import Answer, Approver, Verdict, key_digest, new_key
from orchestrator.errors import AnswerRefused, HandleRefused
from orchestrator.journal.consent import ApprovalAnswered, ApprovalAsked, RuleMade
from orchestrator.journal.memory import MemoryStore
from orchestrator.models.function import call
from orchestrator.runtime import Principal
from tests.consent.office import KEY, PAY, answered, approve, codes, office, paying, reject
from tests.core.stage import Ledger, calls, raw
from tests.supervision.scene import agent, plays

if TYPE_CHECKING:
    from tests.supervision.scene import Scene

A10 = call("pay", to="A", amount=10)


def changed(it: Scene, approval: str = "a0001", **fields: Any) -> None:
    """Change what the journal says was asked, as a forger with a pen would."""
    state = it.supervisor.journal.state.approvals[approval]
    state.asked = msgspec.structs.replace(state.asked, **fields)


@pytest.mark.requirement("B63", "I8")
async def test_after_a_restart_the_approved_arguments_run_though_the_model_would_now_say_others() -> None:
    ledger, store = Ledger(), MemoryStore()
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5):
        async with office(boss, plays(boss=[A10, "x"]), store=store) as it:
            await it.session.run("go")
            handle = it.session.snapshot()
            it.supervisor.closing = True
            it.supervisor.approvals.answer(approve("a0001"))
        assert ledger.lines == []
        replayed = plays(boss=[call("pay", to="B", amount=10), call("pay", to="B", amount=10), "x"])
        async with office(boss, replayed, store=store, handle=handle) as it:
            await it.quiet()
            assert ledger.lines == ["pay amount=10 to=A"]
            assert it.supervisor.approvals.pending() == ("a0002",)
            assert it.supervisor.approvals.question("a0002").arguments == '{"amount":10,"to":"B"}'


@pytest.mark.requirement("B63", "I8")
async def test_a_yes_is_used_once_and_an_equal_second_call_asks_again() -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[A10, A10, "x"])) as it:
        await it.session.run("go")
        await it.session.send(approve("a0001"))
        await it.quiet()
        assert ledger.lines == ["pay amount=10 to=A"]
        assert it.supervisor.approvals.pending() == ("a0002",)
        with pytest.raises(AnswerRefused) as caught:
            await it.session.send(approve("a0001"))
        assert caught.value.code == "answered"
        assert ledger.lines == ["pay amount=10 to=A"]


@pytest.mark.requirement("I8")
async def test_a_used_yes_does_not_serve_a_call_that_is_given_its_id_again() -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    model = plays(boss=[calls(raw("pay", '{"to":"A","amount":10}', "same")), A10, "x"])
    async with asyncio.timeout(5), office(boss, model) as it:
        await it.session.run("go")
        capability = it.supervisor.opened(it.supervisor.members["boss"].actor, "t0001")
        it.supervisor.approvals.answer(approve("a0001"))
        await it.quiet()
        assert len(ledger.lines) == 1
        again = await capability.call(raw("pay", '{"to":"A","amount":10}', "same"))
        assert again is not None
        assert again.denial is not None
        assert again.denial.code in ("approval_used", "capability_revoked")
        live = it.supervisor.members["boss"].capability
        assert live is None
    assert ledger.lines == ["pay amount=10 to=A"]


CHANGES = [
    {"tool": "send"},
    {"version": "2"},
    {"revision": "0" * 16},
]


@pytest.mark.requirement("I8")
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
async def test_a_yes_for_another_tool_version_or_revision_is_a_mismatch(change: dict[str, str]) -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[A10, "x"])) as it:
        await it.session.run("go")
        changed(it, **change)
        await it.session.send(approve("a0001"))
        await it.quiet()
        assert codes(await answered(it, "boss")) == ["approval_mismatch"]
    assert ledger.lines == []


@pytest.mark.requirement("B63", "I8")
@pytest.mark.parametrize(
    "said, run",
    [
        ('{"to":"A","amount":10}', '{"to":"A","amount":10.0}'),
        ('{"to":"A","amount":10}', '{"to":"A","amount":"10"}'),
        ('{"to":"A","amount":10.0}', '{"to":"A","amount":10.01}'),
        ('{"to":"A","amount":10}', '{"to":"B","amount":10}'),
        ('{"to":"A","amount":10}', '{"to":"A ","amount":10}'),
        ('{"to":"A","amount":10}', '{"to":"\u0410","amount":10}'),
    ],
)
async def test_a_yes_to_these_arguments_is_a_mismatch_for_those(said: str, run: str) -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[calls(raw("pay", said)), "x"])) as it:
        await it.session.run("go")
        actor = it.supervisor.members["boss"].actor
        (pending,) = actor.state.pending
        other = msgspec.structs.replace(pending, arguments=run)
        actor.state = msgspec.structs.replace(actor.state, pending=(other,))
        await it.session.send(approve("a0001"))
        await it.quiet()
        assert codes(await answered(it, "boss")) == ["approval_mismatch"]
    assert ledger.lines == []


@pytest.mark.requirement("B63")
@pytest.mark.parametrize(
    "run", ['{"amount":10,"to":"A"}', ' { "to" : "A", "amount": 10 } ', '{"to":"\\u0041","amount":10}']
)
async def test_key_order_blanks_and_escapes_make_no_other_call(run: str) -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[A10, "x"])) as it:
        await it.session.run("go")
        actor = it.supervisor.members["boss"].actor
        (pending,) = actor.state.pending
        actor.state = msgspec.structs.replace(actor.state, pending=(msgspec.structs.replace(pending, arguments=run),))
        await it.session.send(approve("a0001"))
        await it.quiet()
    assert ledger.lines == ["pay amount=10 to=A"]


@pytest.mark.requirement("B63", "I8")
async def test_of_a_key_that_is_given_twice_the_value_that_is_shown_is_the_one_that_runs() -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    twice = calls(raw("pay", '{"to":"A","amount":10,"to":"B"}'))
    async with asyncio.timeout(5), office(boss, plays(boss=[twice, "x"])) as it:
        await it.session.run("go")
        assert it.supervisor.approvals.question("a0001").arguments == '{"amount":10,"to":"B"}'
        await it.session.send(approve("a0001"))
        await it.quiet()
    assert ledger.lines == ["pay amount=10 to=B"]


@pytest.mark.requirement("I8")
async def test_a_yes_of_one_session_is_nothing_in_another() -> None:
    ledger, store = Ledger(), MemoryStore()
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5):
        async with (
            office(boss, plays(boss=[A10, "x"]), store=store) as one,
            office(boss, plays(boss=[A10, "x"]), store=store) as two,
        ):
            await one.session.run("go")
            await two.session.run("go")
            await one.session.send(approve("a0001"))
            await one.quiet()
            await two.quiet()
            assert two.supervisor.approvals.pending() == ("a0001",)
            assert len(ledger.lines) == 1


@pytest.mark.requirement("I8")
@pytest.mark.parametrize("who", [Principal(name="other"), Principal(tenant="other")], ids=["principal", "tenant"])
async def test_another_principal_or_tenant_cannot_take_up_the_session_of_a_pending_yes(who: Principal) -> None:
    ledger, store = Ledger(), MemoryStore()
    boss, model = agent("boss", paying(ledger)), plays(boss=[A10, "x"])
    async with asyncio.timeout(5):
        async with office(boss, model, store=store) as it:
            await it.session.run("go")
            handle = it.session.snapshot()
        with pytest.raises(HandleRefused):
            async with office(boss, model, store=store, handle=handle, principal=who):
                pass
    assert ledger.lines == []


@pytest.mark.requirement("I8")
async def test_a_tool_that_is_declared_otherwise_cannot_take_up_a_pending_yes() -> None:
    ledger, store = Ledger(), MemoryStore()
    boss, model = agent("boss", paying(ledger)), plays(boss=[A10, "x"])
    newer = agent("boss", paying(ledger, version="2"))
    async with asyncio.timeout(5):
        async with office(boss, model, store=store) as it:
            await it.session.run("go")
            handle = it.session.snapshot()
        with pytest.raises(HandleRefused):
            async with office(newer, model, store=store, handle=handle):
                pass
    assert ledger.lines == []


async def test_the_revision_tells_policies_grants_and_definitions_apart() -> None:
    ledger = Ledger()
    turns = [Turn("go"), Turn("go", policy=Policy.deny("look")), Turn("go", policy=Policy.allow("pay", "look"))]
    seen = set()
    boss = agent("boss", paying(ledger), ledger.tool("look"))
    for turn in turns:
        async with asyncio.timeout(5), office(boss, plays(boss=[A10, "x"])) as it:
            await it.session.run(turn)
            (asked,) = await it.records(ApprovalAsked)
            seen.add(asked.revision)
    assert len(seen) == len(turns)


@pytest.mark.requirement("I8")
@pytest.mark.parametrize("key", ["", "wrong", KEY.upper(), f"{KEY} ", key_digest(KEY), "\ud800"])
async def test_an_answer_with_another_key_is_refused_and_leaves_no_record(key: str) -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[A10, "x"])) as it:
        await it.session.run("go")
        length = it.supervisor.journal.seq
        for answer in (approve("a0001", key=key), reject("a0001", key=key), approve("a0077", key=key)):
            with pytest.raises(AnswerRefused) as caught:
                await it.session.send(answer)
            assert caught.value.code == "wrong_key"
        assert it.supervisor.journal.seq == length
        await it.session.send(approve("a0001"))
        await it.quiet()
    assert ledger.lines == ["pay amount=10 to=A"]


async def test_an_answer_to_nothing_is_refused_as_unknown() -> None:
    boss = agent("boss")
    async with asyncio.timeout(5), office(boss, plays(boss=["x"])) as it:
        with pytest.raises(AnswerRefused) as caught:
            await it.session.send(approve("a0001"))
        assert (caught.value.code, caught.value.approval) == ("unknown", "a0001")


@pytest.mark.requirement("I8")
async def test_of_two_answers_at_once_one_counts() -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[A10, "x"])) as it:
        await it.session.run("go")
        said = (it.session.send(reject("a0001", by="ann")), it.session.send(approve("a0001", by="bob")))
        first, second = await asyncio.gather(*said, return_exceptions=True)
        assert not isinstance(first, BaseException)
        assert isinstance(second, AnswerRefused)
        assert "ann" in second.reason
        await it.quiet()
        (record,) = await it.records(ApprovalAnswered)
        assert (record.by, record.approved) == ("ann", False)
    assert ledger.lines == []


async def test_an_answer_under_a_changed_approver_needs_the_key_that_the_session_was_made_with() -> None:
    ledger, store = Ledger(), MemoryStore()
    boss, model = agent("boss", paying(ledger)), plays(boss=[A10, "x"])
    async with asyncio.timeout(5):
        async with office(boss, model, store=store) as it:
            await it.session.run("go")
            handle = it.session.snapshot()
        other = new_key()
        async with office(boss, model, store=store, handle=handle, approver=Approver(other)) as it:
            with pytest.raises(AnswerRefused) as caught:
                await it.session.send(approve("a0001", key=other))
            assert caught.value.code == "wrong_key"
    assert ledger.lines == []


@pytest.mark.requirement("B65", "I7")
async def test_a_session_made_without_an_approver_asks_nobody_when_it_is_resumed_with_one() -> None:
    ledger, store = Ledger(), MemoryStore()
    boss, model = agent("boss", paying(ledger)), plays(boss=["ready", A10, "x"])
    async with asyncio.timeout(5):
        async with office(boss, model, store=store, approver=None) as it:
            await it.session.run("go")
            handle = it.session.snapshot()
        async with office(boss, model, store=store, handle=handle) as it:
            await it.session.run("pay")
            assert codes(await answered(it, "boss")) == ["approval_unavailable"]
    assert ledger.lines == []


async def test_words_that_no_journal_can_hold_are_cleaned_and_the_answer_counts() -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[A10, "x"])) as it:
        await it.session.run("go")
        await it.session.send(approve("a0001", by="\ud800", reason="\udfff" * 3, always=("to",)))
        await it.quiet()
        (record,) = await it.records(ApprovalAnswered)
        (rule,) = await it.records(RuleMade)
        record.reason.encode()
        rule.by.encode()
    assert ledger.lines == ["pay amount=10 to=A"]


def test_an_approver_has_a_key_and_a_bearable_expiry() -> None:
    for key, expires in (("", 1.0), ("  ", 1.0), ("k", 0.0), ("k", -1.0), ("k", float("inf")), ("k", float("nan"))):
        with pytest.raises(ValueError, match="Approver"):
            Approver(key, expires_s=expires)
    assert len({new_key() for _ in range(50)}) == 50


def test_no_value_that_holds_the_key_shows_it() -> None:
    for value in (Approver(KEY), Answer("a0001", Verdict.APPROVE, KEY)):
        assert KEY not in repr(value)
        assert KEY not in str(value)
    assert "a0001" in repr(Answer("a0001", Verdict.APPROVE, KEY))


def test_the_schema_of_the_tool_that_pays_takes_what_these_tests_give_it() -> None:
    assert msgspec.json.decode(PAY)["required"] == ["amount", "to"]
