"""Authority shrinks on its way down, focus stays where it was given, and no turn widens another."""

from __future__ import annotations

import asyncio

import pytest

from actors import Access, Grants, Role
from actors.messages import Outcome
from orchestrator import Policy, Principal, Turn
from orchestrator.journal.records import ActorSpawned, TurnAccepted
from orchestrator.runtime import OWNER
from orchestrator.testing import call
from tests.core.stage import Gate, Ledger, agent, made, over, results, staged, written

READ_ONLY = Grants(OWNER.authorities, Access.READ)


@pytest.mark.requirement("I6", "I7")
async def test_a_reviewers_child_cannot_write_whatever_its_definition_says() -> None:
    ledger = Ledger()
    child = agent(ledger.tool("put", Access.WRITE), ledger.tool("look"), name="c", role=Role.CHILD)
    reviewer = agent(name="judge", role=Role.REVIEWER, children=(child,))
    others = {"c": [[call("put"), call("look")], "end"]}
    runner, model = staged(reviewer, call("delegate", child="c", task="x"), "ok", others=others)
    async with asyncio.timeout(5), runner, runner.start() as session:
        await session.run("go")
    request = [request for request in model.requests if request.agent == "c"][-1]
    assert [result.denial.code if result.denial else "" for result in results(request)] == ["access_exceeded", ""]
    assert ledger.lines == ["look"]


@pytest.mark.requirement("I6")
async def test_a_policy_of_the_boss_does_not_reach_its_child_and_turn_grants_do() -> None:
    ledger = Ledger()
    put = ledger.tool("put", Access.WRITE)
    child = agent(put, name="c", role=Role.CHILD)
    delegate = call("delegate", child="c", task="x")
    others = {"c": [call("put", n=1), "end", call("put", n=2), "end"]}
    runner, _ = staged(
        agent(put, children=(child,)), [call("put"), delegate], "one", [call("put"), delegate], "two", others=others
    )
    async with asyncio.timeout(5), runner, runner.start() as session:
        await session.run(Turn("go", Policy.deny("put")))
        assert ledger.lines == ["put n=1"]
        await session.run(Turn("go", grants=READ_ONLY))
    assert ledger.lines == ["put n=1"]


@pytest.mark.requirement("I6")
async def test_a_boss_without_a_write_tool_can_start_a_writer_if_its_authority_includes_writing() -> None:
    ledger = Ledger()
    child = agent(ledger.tool("put", Access.WRITE), name="c", role=Role.CHILD)
    runner, _ = staged(
        agent(children=(child,)), call("delegate", child="c", task="x"), "ok", others={"c": [call("put"), "end"]}
    )
    async with asyncio.timeout(5), runner, runner.start() as session:
        await session.run("go")
    assert ledger.lines == ["put"]


@pytest.mark.requirement("I6")
async def test_each_actor_holds_at_most_what_its_principal_its_role_and_its_parent_hold() -> None:
    ledger = Ledger()
    leaf = agent(ledger.tool("put", Access.WRITE), name="leaf", role=Role.CHILD)
    mid = agent(name="mid", role=Role.CHILD, children=(leaf,))
    grants = Grants(("workspace.*", "children.start", "invoices.read"), Access.WRITE, ("src",))
    others = {"mid": [call("delegate", child="leaf", task="x"), "end"], "leaf": [call("put"), "end"]}
    boss = agent(role=Role.RUN, children=(mid,))
    runner, _ = staged(
        boss, call("delegate", child="mid", task="x"), "ok", others=others, principal=Principal(grants=grants)
    )
    async with asyncio.timeout(5), runner, runner.start() as session:
        await session.run("go")
        spawned = await written(session, ActorSpawned)
    top, middle, low = (record.grants for record in spawned)
    assert top.authorities == {"workspace.read", "workspace.write", "children.start", "invoices.read"}
    assert (top.access, top.roots) == (Access.WRITE, frozenset())
    assert middle == low
    assert low.authorities <= top.authorities
    assert ledger.lines == ["put"]


@pytest.mark.requirement("I6")
async def test_a_turn_born_of_a_childs_notice_is_no_wider_than_the_one_that_started_the_child() -> None:
    ledger, gate = Ledger(), Gate()
    put = ledger.tool("put", Access.WRITE)
    child = agent(made("work", gate.wait), name="c", role=Role.CHILD)
    boss = agent(put, ledger.tool("mail"), children=(child,))
    start = call("delegate", child="c", task="x", background=True)
    runner, model = staged(
        boss, start, "waiting", [call("put"), call("mail")], "told", others={"c": [call("work"), "end"]}
    )
    async with asyncio.timeout(5), runner, runner.start() as session:
        await session.run(Turn("go", Policy.deny("mail"), READ_ONLY))
        await gate.entered.wait()
        gate.leave.set()
        await over(session, "t0003")
        accepted = (await written(session, TurnAccepted))[-1]
    assert (accepted.policy, accepted.grants) == (Policy.deny("mail"), READ_ONLY)
    boss_results = [request for request in model.requests if request.agent == "boss"][-1]
    assert {result.outcome for result in results(boss_results)} == {Outcome.DENIED}
    assert ledger.lines == []


@pytest.mark.requirement("I6")
async def test_a_message_from_a_narrowed_turn_does_not_open_a_wider_one_in_a_child() -> None:
    ledger, gate = Ledger(), Gate()
    leaf = agent(made("work", gate.wait), name="leaf", role=Role.CHILD)
    child = agent(ledger.tool("put", Access.WRITE), name="c", role=Role.CHILD, children=(leaf,), wake=False)
    boss = agent(children=(child,), wake=False)
    others = {
        "c": [call("delegate", child="leaf", task="x", background=True), "idle", call("put"), "wrote"],
        "leaf": [call("work"), "end"],
    }
    script = [
        call("delegate", child="c", task="x", background=True),
        "one",
        call("message_child", child="c-0002", text="write"),
        "two",
    ]
    runner, _ = staged(boss, *script, others=others)
    async with asyncio.timeout(5), runner, runner.start() as session:
        await session.run("go")
        await gate.entered.wait()
        await over(session, "t0002")
        await session.run(Turn("read only", grants=READ_ONLY))
        opened = [turn for turn in await written(session, TurnAccepted) if turn.text == "write"]
        await over(session, opened[0].turn)
        gate.leave.set()
    assert ledger.lines == []
