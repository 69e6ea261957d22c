"""The caller's standing: the host is asked once at each call, and whoever is not the caller any more runs nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from actors import Access, Role
from actors.messages import CallFinished, StopReason
from orchestrator import Agent, RuntimeConfig
from orchestrator.facts import Identity
from orchestrator.journal.memory import MemoryStore
from orchestrator.journal.records import ActorRestarted, CallIntended, TurnEnded
from orchestrator.models.function import call
from orchestrator.runtime import Principal
from orchestrator.standing import AccessCheck, Standing, identity_of
from orchestrator.testing import ManualClock, ScriptedModel
from orchestrator.turn import Stop
from tests.consent.office import office
from tests.core.stage import Gate, Ledger, agent, calls, made, raw
from tests.supervision.scene import Scene, plays

if TYPE_CHECKING:
    from collections.abc import Callable

OK = Standing("u1")


class Host:
    """What the host knows of the caller: the next standing of *knows*, the last of them for good."""

    def __init__(self, *knows: Any) -> None:
        self.knows = list(knows)
        self.checks: list[AccessCheck] = []

    async def __call__(self, check: AccessCheck) -> Standing:
        """Look the caller up, or fail to."""
        self.checks.append(check)
        known = self.knows.pop(0) if len(self.knows) > 1 else self.knows[0]
        if isinstance(known, BaseException):
            raise known
        standing: Standing = known
        return standing


def who(host: Any, **more: Any) -> Principal:
    """A caller whose standing *host* knows."""
    return Principal("u1", "t1", access=host, **more)


async def told(it: Scene) -> list[tuple[str, str]]:
    """Every answered call, with its outcome or the code of its denial."""
    results = [record.result for record in await it.records(CallFinished)]
    return [(r.name, r.outcome.value if r.denial is None else r.denial.code) for r in results]


@pytest.mark.requirement("I7")
async def test_a_caller_in_good_standing_runs_and_the_tool_learns_who_it_is_from_its_context() -> None:
    host, seen = Host(OK), []

    async def act(context: Any, arguments: Any) -> str:
        seen.append((context.principal, context.owner, arguments))
        return "done"

    boss = agent(made("act", act, Access.WRITE))
    model = ScriptedModel(boss=[call("act", principal="root", user="root", owner="root"), "ok"])
    async with asyncio.timeout(5), office(boss, model, principal=who(host, owner="firm")) as it:
        await it.session.run("go")
        assert await told(it) == [("act", "ok")]
    assert [(principal, owner) for principal, owner, _ in seen] == [("u1", "firm")]
    (check,) = host.checks
    assert check == AccessCheck(it.session.snapshot().session, "u1", "t1", "firm", "boss", "act")


@pytest.mark.requirement("I7")
async def test_without_an_owner_of_their_own_the_things_are_the_callers() -> None:
    host = Host(OK)
    async with (
        asyncio.timeout(5),
        office(agent(Ledger().tool("look")), ScriptedModel(boss=[call("look"), "ok"]), principal=who(host)) as it,
    ):
        await it.session.run("go")
    assert [check.owner for check in host.checks] == ["u1"]


REFUSED = [
    (Standing("u2"), "identity_conflict"),
    (Standing("u1-2"), "identity_conflict"),
    (Standing(""), "identity_conflict"),
    (Standing("local"), "identity_conflict"),
    (Standing(None), "identity_conflict"),
    (Standing("u1", enabled=False), "access_revoked"),
    (Standing("u1", Access.READ), "access_revoked"),
    (Standing("u1", Access.WRITE), "access_revoked"),
]


@pytest.mark.requirement("I7")
@pytest.mark.parametrize("access", [Access.READ, Access.EXTERNAL])
@pytest.mark.parametrize("standing, code", REFUSED)
async def test_anybody_else_nobody_and_lowered_access_are_refused_after_one_question_before_any_effect(
    standing: Standing, code: str, access: Access
) -> None:
    ledger, host = Ledger(), Host(standing, OK)
    model = ScriptedModel(boss=[call("act"), call("act"), "ok"])
    async with (
        asyncio.timeout(5),
        office(agent(ledger.tool("act", access), role=Role.RUN), model, principal=who(host)) as it,
    ):
        await it.session.run("go")
        assert await told(it) == [("act", code), ("act", "ok")]
        (denied, _) = await it.records(CallFinished)
        assert denied.result.denial.gate == 4
        assert len(await it.records(CallIntended)) == (access is not Access.READ)
    assert len(host.checks) == 2
    assert ledger.lines == ["act"]


@pytest.mark.requirement("I7")
async def test_the_host_is_asked_once_for_each_call_denied_and_broken_ones_included() -> None:
    ledger, host = Ledger(), Host(OK)
    batch = [call("look"), call("nope"), raw("look", "{"), call("act"), call("get_api_spec", tool_name="look")]
    boss = agent(ledger.tool("look"), ledger.tool("act", Access.WRITE, authorities={"billing.pay"}))
    async with asyncio.timeout(5), office(boss, ScriptedModel(boss=[calls(*batch), "ok"]), principal=who(host)) as it:
        await it.session.run("go")
        assert [code for _, code in await told(it)] == [
            "ok",
            "unknown_tool",
            "invalid_arguments",
            "authority_missing",
            "ok",
        ]
    assert [check.tool for check in host.checks] == ["look", "nope", "look", "act", "get_api_spec"]


@pytest.mark.requirement("I7")
async def test_parent_and_child_are_asked_about_each_by_its_own_path() -> None:
    ledger, host = Ledger(), Host(OK)
    child = agent(ledger.tool("look"), name="child", role=Role.CHILD)
    boss = agent(ledger.tool("look"), children=(child,))
    model = plays(boss=[call("look"), call("delegate", child="child", task="look"), "ok"], child=[call("look"), "seen"])
    async with asyncio.timeout(5), office(boss, model, principal=who(host)) as it:
        await it.session.run("go")
    assert [(check.actor, check.tool) for check in host.checks] == [
        ("boss", "look"),
        ("boss", "delegate"),
        ("boss/child-0002", "look"),
    ]
    assert {(check.principal, check.tenant, check.owner) for check in host.checks} == {("u1", "t1", "u1")}


@pytest.mark.requirement("I7")
async def test_a_child_is_refused_as_its_parent_is_when_the_account_is_disabled_meanwhile() -> None:
    ledger, host = Ledger(), Host(OK, Standing("u1", enabled=False))
    child = agent(ledger.tool("look"), name="child", role=Role.CHILD)
    model = plays(boss=[call("delegate", child="child", task="look"), "ok"], child=[call("look"), "refused"])
    async with asyncio.timeout(5), office(agent(children=(child,)), model, principal=who(host)) as it:
        await it.session.run("go")
        assert await told(it) == [("look", "access_revoked"), ("delegate", "ok")]
    assert ledger.lines == []


@pytest.mark.requirement("I7")
async def test_a_resumed_call_is_asked_about_again_by_the_host_of_the_resume() -> None:
    ledger, gate, store = Ledger(), Gate(), MemoryStore()
    before, after = Host(OK), Host(Standing("u1", enabled=False))
    boss = agent(made("wait", gate.wait), ledger.tool("act", Access.WRITE))
    model = plays(boss=[call("wait"), call("act"), "ok"])
    async with asyncio.timeout(5):
        async with office(boss, model, store=store, principal=who(before)) as it:
            await it.session.send("go")
            await gate.entered.wait()
            handle = it.session.snapshot()
        async with office(boss, model, store=store, handle=handle, principal=who(after)) as it:
            await it.quiet()
            assert await told(it) == [("wait", "access_revoked"), ("act", "access_revoked")]
    assert [check.tool for check in after.checks] == ["wait", "act"]
    assert len(before.checks) == 1


def failing() -> Callable[[AccessCheck], Any]:
    """A host whose database is down."""
    return Host(OSError("the directory does not answer"))


def gone() -> Callable[[AccessCheck], Any]:
    """A host whose own look-up was cancelled, by nobody here."""
    return Host(asyncio.CancelledError())


def forgetful() -> Callable[[AccessCheck], Any]:
    """A host that says nothing at all."""
    return Host(None)


@pytest.mark.requirement("I7")
@pytest.mark.parametrize("hook", [failing, gone, forgetful])
@pytest.mark.parametrize("access", [Access.READ, Access.EXTERNAL])
async def test_a_host_that_cannot_tell_is_no_permission_and_no_crash(hook: Any, access: Access) -> None:
    ledger, host = Ledger(), hook()
    model = ScriptedModel(boss=[call("act"), "ok"])
    async with (
        asyncio.timeout(5),
        office(agent(ledger.tool("act", access), role=Role.RUN), model, principal=who(host)) as it,
    ):
        assert (await it.session.run("go")).output == "ok"
        ((_, code),) = await told(it)
        assert code in ("access_revoked", "identity_conflict")
        assert await it.records(ActorRestarted) == []
    assert ledger.lines == []
    assert len(host.checks) == 1


@pytest.mark.requirement("I7")
async def test_a_host_that_hangs_is_given_up_after_a_limit_and_the_call_refused() -> None:
    ledger, gate, clock = Ledger(), Gate(), ManualClock()
    boss = agent(ledger.tool("act", Access.WRITE))
    model = ScriptedModel(boss=[call("act"), "ok"])
    async with (
        asyncio.timeout(5),
        office(boss, model, principal=who(lambda _: gate.wait()), clock=clock) as it,
    ):
        running = asyncio.ensure_future(it.session.run("go"))
        await gate.entered.wait()
        clock.advance(60)
        done, _ = await asyncio.wait({running}, timeout=1)
        assert done
        assert await told(it) == [("act", "access_revoked")]
    assert ledger.lines == []


@pytest.mark.requirement("I14")
async def test_a_stop_while_the_host_is_asked_ends_the_turn_at_once() -> None:
    ledger, gate = Ledger(), Gate()
    boss = agent(ledger.tool("act", Access.WRITE))
    principal = who(lambda _: gate.wait())
    async with asyncio.timeout(5), office(boss, ScriptedModel(boss=[call("act")]), principal=principal) as it:
        running = asyncio.ensure_future(it.session.run("go"))
        await gate.entered.wait()
        await it.session.send(Stop())
        assert (await running).stop_reason is StopReason.CANCELLED
        (end,) = await it.records(TurnEnded)
        assert end.reason is StopReason.CANCELLED
        assert await it.records(CallIntended) == []
    assert ledger.lines == []


async def test_without_a_hook_nobody_is_asked_and_calls_run() -> None:
    ledger = Ledger()
    async with Agent(agent(ledger.tool("look")), RuntimeConfig(ScriptedModel(boss=[call("look"), "ok"]))) as owner:
        assert (await owner.run("go")).failures == ()
    assert ledger.lines == ["look"]


@pytest.mark.requirement("I7")
@pytest.mark.parametrize("needs, code", [(("paired",), "context_missing"), (("principal",), "ok"), (("desk",), "ok")])
async def test_a_tool_that_needs_a_context_field_runs_only_where_the_host_provides_it(
    needs: tuple[str, ...], code: str
) -> None:
    ledger = Ledger()
    provided: Any = {"desk"}
    model = ScriptedModel(boss=[[call("act", paired=True, desk="x")], call("look"), "ok"])
    boss = agent(ledger.tool("act", needs=needs), ledger.tool("look"))
    async with asyncio.timeout(5), office(boss, model, principal=Principal(context=provided)) as it:
        await it.session.run("go")
        assert await told(it) == [("act", code), ("look", "ok")]
    offered = [tool.name for tool in model.requests[0].tools]
    assert ("act" in offered) is (code == "ok")


@pytest.mark.parametrize("bound", list(Access))
@pytest.mark.parametrize("now", list(Access))
def test_access_below_what_the_session_was_bound_to_is_revoked(bound: Access, now: Access) -> None:
    expected = Identity.REVOKED if now.level < bound.level else Identity.OK
    assert identity_of("u1", bound, Standing("u1", now)) is expected


def test_another_caller_is_a_conflict_before_its_access_is_looked_at() -> None:
    for standing in (Standing("u2"), Standing("u2", enabled=False), Standing(None, Access.READ)):
        assert identity_of("u1", Access.WRITE, standing) is Identity.CONFLICT
    assert identity_of("u1", Access.WRITE, None) is Identity.OK
