"""A policy stays with its actor, the grants of a turn reach its children, and what is lent for a turn ends with it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from actors import Access, AgentDefinition, Role, ToolSet
from actors.grants import Grants
from actors.messages import Outcome, StopReason
from orchestrator import Policy, Turn
from orchestrator.journal.records import LoanEnded, LoanMade, TurnEnded
from orchestrator.loans import lend_to
from orchestrator.models.function import call
from orchestrator.runtime import OWNER
from tests.consent.office import answered, codes, last, office
from tests.core.stage import Gate, Ledger, made
from tests.supervision.scene import Scene, agent, plays, script

READ_ONLY = Grants(OWNER.authorities, Access.READ)


class Writing:
    """A boss without a tool of its own starts a writer, directly or through a child."""

    def __init__(self, *, deep: bool) -> None:
        self.ledger = Ledger()
        writer = agent("writer", self.ledger.tool("write_file", Access.WRITE), self.ledger.tool("read_file"))
        middle = agent("middle", children=[writer])
        self.boss = agent("boss", children=[middle if deep else writer])
        down = {
            "boss": script(call("delegate", child="middle" if deep else "writer", task="write"), last),
            "middle": script(call("delegate", child="writer", task="write"), last),
            "writer": script([call("read_file", path="a.txt")], call("write_file", path="a.txt"), last),
        }
        self.model = plays(**down)
        self.path = "boss/middle-0002/writer-0003" if deep else "boss/writer-0002"


@pytest.mark.requirement("B02", "I6")
@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("policy", [Policy(), Policy.deny("ask_person"), Policy.allow("delegate")])
async def test_a_boss_without_a_writing_tool_starts_a_writer_whatever_its_own_policy_says(
    *, deep: bool, policy: Policy
) -> None:
    play = Writing(deep=deep)
    async with asyncio.timeout(5), office(play.boss, play.model) as it:
        await it.session.run(Turn("go", policy=policy))
        assert codes(await answered(it, play.path, "write_file")) == ["ok"]
    assert play.ledger.lines == ["read_file path=a.txt", "write_file path=a.txt"]


@pytest.mark.requirement("B02", "I6", "I7")
@pytest.mark.parametrize("deep", [False, True])
async def test_the_grants_of_a_turn_make_the_children_that_it_starts_read_only(*, deep: bool) -> None:
    play = Writing(deep=deep)
    async with asyncio.timeout(5), office(play.boss, play.model) as it:
        await it.session.run(Turn("go", grants=READ_ONLY))
        (denied,) = await answered(it, play.path, "write_file")
        assert codes([denied]) == ["access_exceeded"]
        assert denied.denial is not None
        assert "holds 'read'" in denied.denial.message
        assert codes(await answered(it, play.path, "read_file")) == ["ok"]
    assert play.ledger.lines == ["read_file path=a.txt"]


@pytest.mark.requirement("B02", "I6")
async def test_the_next_turn_of_the_boss_is_as_wide_as_before_a_read_only_one() -> None:
    ledger = Ledger()
    writer = agent("writer", ledger.tool("write_file", Access.WRITE))
    start = call("delegate", child="writer", task="write")
    model = plays(boss=[start, "one", start, "two"], writer=[call("write_file", path="a"), last])
    async with asyncio.timeout(5), office(agent("boss", children=[writer]), model) as it:
        await it.session.run(Turn("go", grants=READ_ONLY))
        assert ledger.lines == []
        await it.session.run("go")
    assert ledger.lines == ["write_file path=a"]


class Deploying:
    """A background child that deploys only with what is lent to it; it waits at a gate before each of its calls."""

    def __init__(self, *calls: Any) -> None:
        self.ledger, self.gate = Ledger(), Gate()
        deploy = self.ledger.tool("deploy", Access.WRITE, authorities={"workspace.write"})
        look = self.ledger.tool("read_file")
        worker = AgentDefinition(
            "worker", Role.FIXER, tools=ToolSet(direct=(deploy, look, made("wait", self.gate.wait))), wake=False
        )
        self.boss = agent("boss", children=[worker])
        start = call("delegate", child="worker", task="deploy", background=True)
        self.model = plays(boss=[start, "started", *["ok"] * 5], worker=[*calls, "done"])
        self.path = "boss/worker-0002"

    async def lent(self, it: Scene) -> str:
        """Run the boss's turn, lend the child what it needs for the turn it is in; return the loan."""
        await it.session.run("go")
        await self.gate.entered.wait()
        members = it.supervisor.members
        turn = it.supervisor.journal.state.actors[self.path].waiting[0].turn
        grants = Grants(("workspace.write",), Access.WRITE, (".",))
        return lend_to(it.supervisor.journal, members["boss"], members[self.path], grants, turn)


@pytest.mark.requirement("B05", "I6")
async def test_a_loan_that_is_revoked_is_gone_for_a_call_that_is_queued_already() -> None:
    play = Deploying([call("deploy", n=1), call("wait"), call("deploy", n=2), call("read_file")])
    play.gate.leave.clear()
    async with asyncio.timeout(5), office(play.boss, play.model) as it:
        await it.session.run("go")
        await play.gate.entered.wait()
        assert codes(await answered(it, play.path, "deploy")) == ["authority_missing"]
        members = it.supervisor.members
        turn = it.supervisor.journal.state.actors[play.path].waiting[0].turn
        grants = Grants(("workspace.write",), Access.WRITE, (".",))
        loan = lend_to(it.supervisor.journal, members["boss"], members[play.path], grants, turn)
        it.supervisor.journal.append(play.path, LoanEnded(loan, "revoked"))
        play.gate.leave.set()
        await it.quiet()
        assert codes(await answered(it, play.path, "deploy")) == ["authority_missing", "grant_expired"]
        assert codes(await answered(it, play.path, "read_file")) == ["ok"]
    assert play.ledger.lines == ["read_file"]


@pytest.mark.requirement("B05", "I6")
async def test_a_loan_holds_for_the_calls_of_its_turn_and_is_over_with_it_for_a_background_child() -> None:
    gate = Gate()
    play = Deploying(call("wait"), call("deploy", n=1), call("delegate_later"), "never")
    play.model = plays(
        boss=[
            call("delegate", child="worker", task="deploy", background=True),
            "started",
            call("message_child", child="worker-0002", text="once more"),
            "told",
        ],
        worker=[call("wait"), call("deploy", n=1), "first", call("deploy", n=2), last],
    )
    async with asyncio.timeout(5), office(play.boss, play.model) as it:
        loan = await play.lent(it)
        it.supervisor.members[play.path].keep = True
        play.gate.leave.set()
        await it.quiet()
        assert [record.loan for record in await it.records(LoanEnded)] == [loan]
        await it.session.run("once more")
        await it.quiet()
        results = await answered(it, play.path, "deploy")
        assert codes(results) == ["ok", "grant_expired"]
        assert results[1].denial is not None
        assert "the loan has ended" in results[1].denial.message
    assert play.ledger.lines == ["deploy n=1"]
    assert not gate.entered.is_set()


@pytest.mark.requirement("B05", "I6")
async def test_a_loan_to_a_parent_is_nothing_to_the_child_it_starts_meanwhile() -> None:
    ledger, gate = Ledger(), Gate()
    deploy = ledger.tool("deploy", Access.WRITE, authorities={"workspace.write"})
    child = agent("child", deploy)
    lead = AgentDefinition("lead", Role.FIXER, tools=ToolSet(direct=(deploy, made("wait", gate.wait))), children=())
    host = agent("host", made("wait", gate.wait), deploy, children=[child])
    boss = agent("boss", children=[lead, host])
    start = call("delegate", child="host", task="deploy", background=True)
    model = plays(
        boss=[start, "started"],
        host=[call("wait"), call("deploy", n="own"), call("delegate", child="child", task="deploy"), "ok"],
        child=[call("deploy", n="child"), last],
    )
    async with asyncio.timeout(5), office(boss, model) as it:
        await it.session.run(Turn("go", grants=Grants(("children.start",), Access.WRITE, (".",))))
        await gate.entered.wait()
        members = it.supervisor.members
        turn = it.supervisor.journal.state.actors["boss/host-0002"].waiting[0].turn
        lend_to(it.supervisor.journal, members["boss"], members["boss/host-0002"], Grants(("workspace.write",)), turn)
        gate.leave.set()
        await it.quiet()
        # `turn.grants` narrows what is lent too, and the child holds a part of what its parent holds of its own
        assert codes(await answered(it, "boss/host-0002", "deploy")) == ["authority_missing"]
        assert codes(await answered(it, "boss/host-0002/child-0003", "deploy")) == ["authority_missing"]
    assert ledger.lines == []


@pytest.mark.requirement("B05")
async def test_every_loan_of_a_turn_that_was_stopped_is_ended_on_record() -> None:
    play = Deploying(call("wait"), call("deploy", n=1))
    async with asyncio.timeout(5), office(play.boss, play.model) as it:
        await play.lent(it)
        member = it.supervisor.members[play.path]
        turn = it.supervisor.journal.state.actors[play.path].waiting[0].turn
        it.supervisor.stops.turn(member, turn, StopReason.CANCELLED, "enough")
        await it.quiet()
        made_loans, ended = await it.records(LoanMade), await it.records(LoanEnded)
        assert [loan.loan for loan in made_loans] == [loan.loan for loan in ended]
        assert it.supervisor.journal.state.loans == {}
        results = await answered(it, play.path, "wait")
        assert all(result.outcome is not Outcome.OK for result in results)
        assert StopReason.CANCELLED in [end.reason for end in await it.records(TurnEnded)]
    assert play.ledger.lines == []
