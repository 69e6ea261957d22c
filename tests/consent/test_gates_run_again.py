"""Between the question and the run things change: every gate is asked again after the answer, and nothing runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from actors import Access, AgentDefinition, Role, ToolSet
from actors.grants import Grants
from actors.states import StateChart, WorkflowState
from actors.tools import Approval
from orchestrator import Turn
from orchestrator.errors import AnswerRefused
from orchestrator.journal.memory import MemoryStore
from orchestrator.journal.records import LoanEnded
from orchestrator.loans import lend_to
from orchestrator.models.function import call
from orchestrator.runtime import OWNER, Principal
from orchestrator.standing import AccessCheck, Standing
from orchestrator.turn import Transition
from tests.consent.office import Person, answered, approve, at_the_desk, codes, never, office, paying
from tests.core.stage import Ledger, made
from tests.supervision.scene import Scene, agent, plays

A10 = call("pay", to="A", amount=10)


class Account:
    """The host's record of the caller, which the test changes."""

    def __init__(self) -> None:
        self.standing = Standing("local")
        self.checks: list[AccessCheck] = []

    async def __call__(self, check: AccessCheck) -> Standing:
        """Look the caller up."""
        self.checks.append(check)
        return self.standing


def staged(ledger: Ledger) -> AgentDefinition:
    """A boss whose paying belongs to one state."""
    chart = StateChart((WorkflowState("Review", ("pay",)), WorkflowState("Done", ())))
    return AgentDefinition("boss", Role.BUILDER, tools=ToolSet(direct=(paying(ledger),), states=chart))


async def asked(it: Scene, turn: Any = "go") -> None:
    """Start a turn and wait until it asks."""
    await it.session.send(turn)
    await it.until(lambda: it.supervisor.approvals.pending() == ("a0001",))


PLACES = ["parked", "in place"]


def desk(place: str) -> dict[str, Any]:
    """The approver of a place."""
    return {} if place == "parked" else {"approver": at_the_desk(Person(never, never))}


@pytest.mark.requirement("I8", "I7")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("to", ["Done", "Review"])
async def test_a_workflow_that_moved_meanwhile_makes_the_approved_call_stale(place: str, to: str) -> None:
    ledger = Ledger()
    async with asyncio.timeout(5), office(staged(ledger), plays(boss=[A10, "x"]), **desk(place)) as it:
        await asked(it)
        await it.session.send(Transition(to))
        await it.session.send(approve("a0001"))
        await it.quiet()
        assert codes(await answered(it, "boss")) == ["stale_state"]
    assert ledger.lines == []


@pytest.mark.requirement("I8", "I7")
@pytest.mark.parametrize("place", PLACES)
async def test_a_loan_that_ended_meanwhile_gives_the_approved_call_nothing(place: str) -> None:
    ledger = Ledger()
    tool = paying(ledger, access=Access.WRITE, authorities={"workspace.write"})
    worker = AgentDefinition("worker", Role.FIXER, tools=ToolSet(direct=(tool,)))
    boss = agent("boss", children=[worker])
    start = call("delegate", child="worker", task="pay", background=True)
    model = plays(boss=[start, "started"], worker=[call("ask_person", question="?"), A10, "x"])
    approver = desk(place)
    async with asyncio.timeout(5), office(boss, model, **approver) as it:
        await asked(it)
        members = it.supervisor.members
        borrower = members["boss/worker-0002"]
        grants = Grants(("workspace.write",), Access.WRITE, (".",))
        turn = it.supervisor.journal.state.actors[borrower.path].waiting[0].turn
        loan = lend_to(it.supervisor.journal, members["boss"], borrower, grants, turn)
        await it.session.send(approve("a0001"))
        await it.until(lambda: it.supervisor.approvals.pending() == ("a0002",))
        it.supervisor.journal.append(borrower.path, LoanEnded(loan, "taken back"))
        await it.session.send(approve("a0002"))
        await it.quiet()
        assert codes(await answered(it, borrower.path)) == ["grant_expired"]
    assert ledger.lines == []


@pytest.mark.requirement("I8", "I6")
@pytest.mark.parametrize(
    "grants, code",
    [
        (Grants(OWNER.authorities, Access.READ, (".",)), "access_exceeded"),
        (Grants((), Access.EXTERNAL, (".",)), "authority_missing"),
    ],
)
async def test_a_principal_that_was_narrowed_before_the_resume_cannot_use_its_yes(grants: Grants, code: str) -> None:
    ledger, store = Ledger(), MemoryStore()
    boss = agent("boss", paying(ledger, authorities={"workflow.run"}))
    owner = Grants(("workflow.*",), Access.EXTERNAL, (".",))
    wide = Principal(grants=owner)
    model = plays(boss=[A10, "x"])
    async with asyncio.timeout(5):
        async with office(boss, model, store=store, principal=wide) as it:
            await it.session.run("go")
            handle = it.session.snapshot()
        async with office(boss, model, store=store, handle=handle, principal=Principal(grants=grants)) as it:
            await it.quiet()
            if it.supervisor.approvals.pending():
                await it.session.send(approve("a0001"))
            await it.quiet()
            assert codes(await answered(it, "boss")) == [code]
    assert ledger.lines == []


@pytest.mark.requirement("I8", "I7")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "standing, code",
    [
        (Standing("local", enabled=False), "access_revoked"),
        (Standing("local", Access.READ), "access_revoked"),
        (Standing("somebody"), "identity_conflict"),
        (Standing(None), "identity_conflict"),
    ],
)
async def test_a_caller_that_lost_its_standing_meanwhile_cannot_use_its_yes(
    place: str, standing: Standing, code: str
) -> None:
    ledger, account = Ledger(), Account()
    boss = agent("boss", paying(ledger))
    principal = Principal(access=account)
    async with asyncio.timeout(5), office(boss, plays(boss=[A10, "x"]), principal=principal, **desk(place)) as it:
        await asked(it)
        account.standing = standing
        await it.session.send(approve("a0001"))
        await it.quiet()
        assert codes(await answered(it, "boss")) == [code]
    assert ledger.lines == []


@pytest.mark.requirement("I8", "I9")
async def test_an_effect_in_doubt_is_in_doubt_for_an_approved_call_too() -> None:
    ledger, store = Ledger(), MemoryStore()

    async def vanish(_: object, arguments: Any) -> str:
        ledger.lines.append(f"vanish {arguments['n']}")
        await asyncio.Event().wait()
        return "never"

    tool = made("vanish", vanish, Access.EXTERNAL, approval=Approval.EACH_CALL)
    boss = agent("boss", tool)
    model = plays(boss=[call("vanish", n=1), call("vanish", n=1), call("vanish", n=2), "x"])
    async with asyncio.timeout(5):
        async with office(boss, model, store=store) as it:
            await it.session.run("go")
            await it.session.send(approve("a0001"))
            await it.until(lambda: ledger.lines == ["vanish 1"])
            handle = it.session.snapshot()
        async with office(boss, model, store=store, handle=handle) as it:
            await it.quiet()
            assert codes(await answered(it, "boss", "vanish")) == ["unknown", "unresolved_effect"]
            assert it.supervisor.approvals.question("a0002").arguments == '{"n":2}'
            with pytest.raises(AnswerRefused):
                await it.session.send(approve("a0001"))
    assert ledger.lines == ["vanish 1"]


@pytest.mark.requirement("I8", "I6")
async def test_a_turn_of_reading_only_asks_nobody_for_what_it_may_not_do_anyway() -> None:
    ledger = Ledger()
    boss = agent("boss", paying(ledger))
    async with asyncio.timeout(5), office(boss, plays(boss=[A10, "x"])) as it:
        await it.session.run(Turn("go", grants=Grants(access=Access.READ)))
        assert codes(await answered(it, "boss")) == ["access_exceeded"]
        assert it.supervisor.journal.state.approvals == {}


@pytest.mark.requirement("I8")
@pytest.mark.parametrize("valid", [True, False])
async def test_a_receipt_gives_no_authority(valid: bool) -> None:  # noqa: FBT001  # a case
    ledger = Ledger()
    boss = agent("boss", paying(ledger, authorities={"workflow.run"}))
    authorities = ("workflow.run",) if valid else ("children.start",)
    principal = Principal(grants=Grants(authorities, Access.EXTERNAL, (".",)))
    async with asyncio.timeout(5), office(boss, plays(boss=[A10, "x"]), principal=principal) as it:
        await it.session.run("go")
        if it.supervisor.approvals.pending():
            await it.session.send(approve("a0001"))
        await it.quiet()
        assert codes(await answered(it, "boss")) == (["ok"] if valid else ["authority_missing"])
    assert len(ledger.lines) == valid
