"""Failing tests for what the proof found; each is a sentence of the concepts."""

from __future__ import annotations

import asyncio

from actors import Grants, Role
from actors.grants import Budget
from actors.messages import StopReason
from orchestrator import Principal
from orchestrator.agent import Agent
from orchestrator.approver import Answer, Approver, Verdict
from orchestrator.journal.memory import MemoryStore
from orchestrator.journal.records import ActorSpawned
from orchestrator.models.function import FunctionModel, call
from orchestrator.runtime import OWNER, RuntimeConfig, SessionLimits
from tests.core.stage import Gate, Ledger, agent, made, staged, written

TEN = Grants(OWNER.authorities, OWNER.access, OWNER.roots, Budget(calls=10))


async def test_a_child_started_from_a_finite_budget_gets_half_of_what_is_left_and_its_parent_goes_on() -> None:
    ledger = Ledger()
    child = agent(ledger.tool("look"), name="c", role=Role.CHILD)
    boss = agent(ledger.tool("look"), children=(child,))
    start = call("delegate", child="c", task="x", background=True)
    runner, _ = staged(boss, start, call("look"), "ok", "heard", others={"c": ["end"]}, principal=Principal(grants=TEN))
    async with asyncio.timeout(5), runner, runner.start() as session:
        result = await session.run("go")
        budgets = [record.grants.budget.calls for record in await written(session, ActorSpawned)]
    assert budgets == [10, 4]
    assert result.failures == ()


async def test_what_is_set_aside_for_a_child_stays_set_aside_after_a_resume() -> None:
    gate = Gate()
    child = agent(made("work", gate.wait), name="c", role=Role.CHILD)
    boss = agent(children=(child,))
    model = FunctionModel(
        {
            "boss": lambda q: "ok" if len(q.history) > 2 else call("delegate", child="c", task="x", background=True),
            "c": lambda q: "end" if len(q.history) > 2 else call("work"),
        }
    )
    config = RuntimeConfig(model, Principal(grants=TEN), store=MemoryStore())
    runner = Agent(boss, config)
    lefts = []
    handle = None
    for _ in range(2):
        start = runner.start(handle)
        async with asyncio.timeout(5), start as session:
            handle = session.snapshot()
            if not lefts:
                await session.run("go")
                await gate.entered.wait()
            member = start.supervisor.members["boss"]
            lefts.append(member.account.left("calls"))
    assert lefts[0] == lefts[1]


async def test_a_resumed_delegate_finds_its_child_although_no_other_could_be_started() -> None:
    gate = Gate()
    child = agent(made("work", gate.wait), name="c", role=Role.CHILD)
    boss = agent(children=(child,))
    model = FunctionModel(
        {
            "boss": lambda q: "ok" if len(q.history) > 2 else call("delegate", child="c", task="x"),
            "c": lambda q: "end" if len(q.history) > 2 else call("work"),
        }
    )
    runner = Agent(boss, RuntimeConfig(model, store=MemoryStore(), limits=SessionLimits(alive=1)))
    async with asyncio.timeout(5), runner.start() as session:
        running = asyncio.create_task(session.run("go"))
        await gate.entered.wait()
        handle = session.snapshot()
        await session.close()
        assert (await running).stop_reason is StopReason.SUSPENDED
    gate.leave.set()
    async with asyncio.timeout(5), runner.start(handle) as session:
        assert (await session.run()).failures == ()


async def test_a_delegate_whose_child_waited_for_a_person_finds_its_child_at_the_limit_of_children() -> None:
    ledger = Ledger()
    child = agent(ledger.tool("sign", approval="each_call"), name="c", role=Role.CHILD)
    runner, _ = staged(
        agent(children=(child,)),
        call("delegate", child="c", task="x"),
        "ok",
        others={"c": [call("sign"), "end"]},
        approver=Approver("k"),
        limits=SessionLimits(alive=1),
    )
    async with asyncio.timeout(5), runner, runner.start() as session:
        parked = await session.run("go")
        await session.send(Answer(parked.pending[0], Verdict.APPROVE, "k"))
        result = await session.run()
    assert ledger.lines == ["sign"]
    assert result.failures == ()


async def test_a_delegate_that_waited_is_paid_for_once() -> None:
    ledger = Ledger()
    child = agent(ledger.tool("sign", approval="each_call"), name="c", role=Role.CHILD)
    runner, _ = staged(
        agent(children=(child,)),
        call("delegate", child="c", task="x"),
        "ok",
        others={"c": [call("sign"), "end"]},
        approver=Approver("k"),
        principal=Principal(grants=TEN),
    )
    start = runner.start()
    async with asyncio.timeout(5), runner, start as session:
        parked = await session.run("go")
        await session.send(Answer(parked.pending[0], Verdict.APPROVE, "k"))
        await session.run()
        assert start.supervisor.members["boss"].account.left("calls") == 8


async def test_a_product_authority_can_be_lent_to_a_role_it_passes() -> None:
    from orchestrator.loans import lend_to

    child = agent(name="c", role=Role.CHILD)
    grants = Grants((*OWNER.authorities, "billing.read"), OWNER.access, OWNER.roots)
    runner, _ = staged(agent(children=(child,)), principal=Principal(grants=grants))
    start = runner.start()
    async with asyncio.timeout(5), runner, start:
        supervisor = start.supervisor
        root = supervisor.members["boss"]
        borrower = supervisor.spawn(supervisor.registry.resolve(child), root, Grants(), keep=True)
        assert lend_to(supervisor.journal, root, borrower, Grants(("billing.read",)), "t0001")
