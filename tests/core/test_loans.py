"""Loans: authority lent for one turn, no wider than lender and role, on record, gone with the turn."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from actors import Access, AgentDefinition, Grants, Role, ToolSet
from orchestrator.errors import LoanRefused
from orchestrator.journal.records import LoanEnded, LoanMade
from orchestrator.loans import end_loans, lend_to
from orchestrator.models.function import FunctionModel, call
from tests.core.stage import Gate, Ledger, made
from tests.supervision.scene import Scene, scene, script

WRITE = Grants(("workspace.write",), Access.READ, (".",))


def fixer(*tools: Any, **more: Any) -> AgentDefinition:
    """A fixer: it writes nothing without a loan."""
    return AgentDefinition("fixer", Role.FIXER, tools=ToolSet(direct=tools), **more)


class Play:
    """A boss that starts a fixer in the background; the fixer enters a gate, writes, and says what came of it."""

    def __init__(self, role: Role = Role.FIXER) -> None:
        self.ledger, self.gate = Ledger(), Gate()
        write = self.ledger.tool("write", Access.WRITE, authorities={"workspace.write"})
        wait = made("wait", self.gate.wait)
        self.worker = AgentDefinition(
            "worker", role, tools=ToolSet(direct=(wait, write) if role is Role.FIXER else (wait,))
        )
        self.boss = AgentDefinition("boss", Role.BUILDER, children=(self.worker,))
        start = call("delegate", child="worker", task="write", background=True)
        self.model = FunctionModel(
            {"boss": script(start, "started"), "worker": script(call("wait"), call("write"), call("write"), "done")}
        )

    async def at_the_gate(self, it: Scene) -> tuple[Any, Any, str]:
        """Lender, borrower and the borrower's turn, which is in flight."""
        await it.session.run("go")
        await self.gate.entered.wait()
        borrower = it.supervisor.members["boss/worker-0002"]
        turn = it.supervisor.journal.state.actors[borrower.path].waiting[0].turn
        return it.supervisor.members["boss"], borrower, turn


@pytest.mark.requirement("I6")
async def test_a_loan_gives_its_authority_at_the_next_call_and_takes_it_away_at_the_one_after_its_end() -> None:
    play = Play()
    async with asyncio.timeout(5), scene(play.boss, play.model) as it:
        lender, borrower, turn = await play.at_the_gate(it)
        journal = it.supervisor.journal
        assert "workspace.write" not in borrower.authority(None).authorities
        loan = lend_to(journal, lender, borrower, WRITE, turn)
        assert "workspace.write" in borrower.authority(None).authorities
        play.gate.leave.set()
        await it.quiet()
        assert play.ledger.lines == ["write", "write"]
        assert journal.state.loans == {}
        assert [r.loan for r in await it.records(LoanMade)] == [r.loan for r in await it.records(LoanEnded)] == [loan]


@pytest.mark.requirement("I6")
async def test_a_loan_for_another_turn_gives_nothing_in_this_one() -> None:
    play = Play()
    async with asyncio.timeout(5), scene(play.boss, play.model) as it:
        lender, borrower, _ = await play.at_the_gate(it)
        lend_to(it.supervisor.journal, lender, borrower, WRITE, "t0099")
        play.gate.leave.set()
        await it.quiet()
    assert play.ledger.lines == []


@pytest.mark.requirement("I6")
async def test_a_loan_gives_nothing_once_its_lender_is_gone() -> None:
    play = Play()
    async with asyncio.timeout(5), scene(play.boss, play.model) as it:
        lender, borrower, turn = await play.at_the_gate(it)
        resolved = lender.resolved
        other = it.supervisor.spawn(resolved, lender, lender.base, keep=True)
        lend_to(it.supervisor.journal, other, borrower, WRITE, turn)
        it.supervisor.exit(other, "it is done")
        play.gate.leave.set()
        await it.quiet()
        assert borrower.lost_authorities() == {"workspace.write"}
    assert play.ledger.lines == []


@pytest.mark.requirement("I6")
@pytest.mark.parametrize(
    "grants, said",
    [
        (Grants(("secrets.manage",)), "the authorities secrets.manage are more than boss/worker-0002 may hold"),
        (Grants(("billing.pay",)), "the authorities billing.pay are more than boss holds"),
        (Grants(("workspace.*",)), "the authorities workspace.* are more than boss holds"),
        (Grants(access=Access.EXTERNAL), "the access 'external' is more than boss/worker-0002 may hold"),
    ],
)
async def test_a_loan_wider_than_lender_or_role_is_refused_with_every_reason_and_leaves_no_record(
    grants: Grants, said: str
) -> None:
    play = Play()
    async with asyncio.timeout(5), scene(play.boss, play.model) as it:
        lender, borrower, turn = await play.at_the_gate(it)
        before, length = borrower.authority(None), it.supervisor.journal.seq
        with pytest.raises(LoanRefused) as caught:
            lend_to(it.supervisor.journal, lender, borrower, grants, turn)
        assert said in caught.value.faults
        assert (caught.value.lender, caught.value.borrower) == ("boss", "boss/worker-0002")
        assert it.supervisor.journal.seq == length
        assert borrower.authority(None) == before


@pytest.mark.requirement("I6")
async def test_a_reviewer_can_be_lent_no_writing_at_all() -> None:
    play = Play(Role.REVIEWER)
    async with asyncio.timeout(5), scene(play.boss, play.model) as it:
        lender, borrower, turn = await play.at_the_gate(it)
        with pytest.raises(LoanRefused, match="may hold"):
            lend_to(it.supervisor.journal, lender, borrower, WRITE, turn)


async def test_the_end_of_one_turn_ends_only_the_loans_made_for_it() -> None:
    play = Play()
    async with asyncio.timeout(5), scene(play.boss, play.model) as it:
        lender, borrower, turn = await play.at_the_gate(it)
        journal = it.supervisor.journal
        first = lend_to(journal, lender, borrower, WRITE, turn)
        second = lend_to(journal, lender, borrower, WRITE, "t0099")
        assert first != second
        end_loans(journal, borrower.path, "t0001")
        assert set(journal.state.loans) == {first, second}
        end_loans(journal, borrower.path, turn)
        assert set(journal.state.loans) == {second}


@pytest.mark.requirement("I6")
async def test_a_loan_is_not_passed_on_to_the_borrowers_child() -> None:
    ledger, gate = Ledger(), Gate()
    write = ledger.tool("write", Access.WRITE, authorities={"workspace.write"})
    wait = made("wait", gate.wait)
    kid = AgentDefinition("kid", Role.CHILD, tools=ToolSet(direct=(write,)))
    worker = fixer(wait, children=(kid,))
    boss = AgentDefinition("boss", Role.BUILDER, children=(worker,))
    model = FunctionModel(
        {
            "boss": script(call("delegate", child="fixer", task="x", background=True), "started"),
            "fixer": script(call("wait"), call("delegate", child="kid", task="y"), "done"),
            "kid": script(call("write"), "tried"),
        }
    )
    async with asyncio.timeout(5), scene(boss, model) as it:
        await it.session.run("go")
        await gate.entered.wait()
        borrower = it.supervisor.members["boss/fixer-0002"]
        turn = it.supervisor.journal.state.actors[borrower.path].waiting[0].turn
        lend_to(it.supervisor.journal, it.supervisor.members["boss"], borrower, WRITE, turn)
        gate.leave.set()
        await it.quiet()
    assert ledger.lines == []
