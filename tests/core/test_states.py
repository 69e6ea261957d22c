"""Workflow states: each offers its own tools, only the host and declared moves change them, no argument can."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from actors import Access, AgentDefinition, Role, ToolSet
from actors.errors import DefinitionError
from actors.messages import CallFinished, StopReason, ToolCall
from actors.states import StateChart, WorkflowState
from orchestrator import Policy, Turn
from orchestrator.errors import ResolutionFailed, TransitionRefused
from orchestrator.journal.consent import StateMoved
from orchestrator.journal.memory import MemoryStore
from orchestrator.journal.records import OfferMade
from orchestrator.models.function import FunctionModel, call
from orchestrator.testing import ScriptedModel
from orchestrator.turn import Transition
from tests.core.stage import Gate, Ledger, calls, made, names, raw
from tests.supervision.scene import Scene, plays, scene

if TYPE_CHECKING:
    from collections.abc import Callable

# The workflows of the refund desk: state → its tools. A preview leads to the review, an executed refund to the mails.
DESK = {
    "SupportLookup": ("find_customer", "read_invoice"),
    "RefundReview": ("read_invoice", "preview_refund"),
    "RefundExecute": ("execute_refund",),
    "Notifications": ("send_mail",),
}
WRITES = ("preview_refund", "execute_refund", "send_mail")
TOOLS = tuple(dict.fromkeys(name for tools in DESK.values() for name in tools))
MOVES = {
    "RefundReview": (("preview_refund", "RefundExecute"),),
    "RefundExecute": (("execute_refund", "Notifications"),),
}
CHART = StateChart(tuple(WorkflowState(name, tools, MOVES.get(name, ())) for name, tools in DESK.items()))


def desk(ledger: Ledger, chart: StateChart = CHART, **more: Any) -> AgentDefinition:
    """The agent of the refund desk."""
    tools = tuple(ledger.tool(name, Access.WRITE if name in WRITES else Access.READ) for name in TOOLS)
    return AgentDefinition("boss", Role.BUILDER, tools=ToolSet(direct=tools, states=chart), **more)


async def told(it: Scene, actor: str = "boss") -> list[tuple[str, str]]:
    """Each answered call of *actor*, with its outcome or the code of its denial."""
    results = [e.record.result for e in await it.entries() if e.actor == actor and isinstance(e.record, CallFinished)]
    return [(r.name, r.outcome.value if r.denial is None else r.denial.code) for r in results]


@pytest.mark.requirement("I3", "I13")
@pytest.mark.parametrize("state", DESK)
async def test_a_state_offers_exactly_its_tools_and_the_record_says_so(state: str) -> None:
    model = ScriptedModel(boss=["done"])
    async with asyncio.timeout(5), scene(desk(Ledger()), model) as it:
        await it.session.send(Transition(state))
        await it.session.run("go")
        (offer,) = await it.records(OfferMade)
    (request,) = model.requests
    assert set(names(request)) & set(TOOLS) == set(DESK[state])
    assert list(offer.tools) == names(request)


@pytest.mark.requirement("I7")
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("state", DESK)
async def test_a_call_runs_in_the_states_that_have_its_tool_and_is_refused_in_the_others(state: str, tool: str) -> None:
    ledger = Ledger()
    model = ScriptedModel(boss=[call(tool, state=tool, workflow="RefundExecute"), "done"])
    async with asyncio.timeout(5), scene(desk(ledger), model) as it:
        await it.session.send(Transition(state))
        await it.session.run("go")
        executable = tool in DESK[state]
        assert (tool in names(model.requests[0])) is executable
        assert await told(it) == [(tool, "ok" if executable else "stale_state")]
    assert len(ledger.lines) == executable


@pytest.mark.requirement("I7")
async def test_a_call_queued_in_an_earlier_state_is_refused_beside_the_allowed_one() -> None:
    ledger = Ledger()
    model = ScriptedModel(boss=[[call("preview_refund", n=1), call("read_invoice")], call("execute_refund"), "done"])
    async with asyncio.timeout(5), scene(desk(ledger), model) as it:
        await it.session.send(Transition("RefundReview"))
        await it.session.run("go")
        assert await told(it) == [
            ("preview_refund", "ok"),
            ("read_invoice", "stale_state"),
            ("execute_refund", "ok"),
        ]
        assert set(names(model.requests[1])) & set(TOOLS) == {"execute_refund"}
        assert [(r.state, r.by) for r in await it.records(StateMoved)][1:] == [
            ("RefundExecute", "preview_refund"),
            ("Notifications", "execute_refund"),
        ]
    assert ledger.lines == ["preview_refund n=1", "execute_refund"]


@pytest.mark.requirement("I7")
async def test_a_call_of_the_next_state_in_the_reply_that_leads_there_is_refused_too() -> None:
    ledger = Ledger()
    model = ScriptedModel(boss=[[call("preview_refund"), call("execute_refund")], "done"])
    async with asyncio.timeout(5), scene(desk(ledger), model) as it:
        await it.session.send(Transition("RefundReview"))
        await it.session.run("go")
        assert await told(it) == [("preview_refund", "ok"), ("execute_refund", "stale_state")]
    assert ledger.lines == ["preview_refund"]


@pytest.mark.requirement("I7", "B03")
@pytest.mark.parametrize(
    "bad, code",
    [
        (call("refund_everything"), "unknown_tool"),
        (call("Preview_Refund"), "unknown_tool"),
        (call("send_mail"), "stale_state"),
        (raw("preview_refund", '{"n":1'), "invalid_arguments"),
        (raw("preview_refund", "[]"), "invalid_arguments"),
    ],
)
async def test_a_fabricated_a_stale_and_a_broken_call_are_refused_each_with_its_code(bad: ToolCall, code: str) -> None:
    ledger = Ledger()
    model = ScriptedModel(boss=[[bad, call("read_invoice")], "done"])
    async with asyncio.timeout(5), scene(desk(ledger), model) as it:
        await it.session.send(Transition("RefundReview"))
        await it.session.run("go")
        assert await told(it) == [(bad.name, code), ("read_invoice", "ok")]
    assert ledger.lines == ["read_invoice"]


@pytest.mark.requirement("I7")
@pytest.mark.parametrize("state", ["RefundExecute", "Notifications#9", "", "RefundReview#0"])
async def test_no_argument_names_a_state(state: str) -> None:
    ledger = Ledger()
    arguments: dict[str, Any] = {
        "state": state,
        "workflow": state,
        "made_in": state,
        "revision": 1,
        "to": state,
        "by": "host",
    }
    model = ScriptedModel(boss=[call("execute_refund", **arguments), call("find_customer", **arguments), "done"])
    async with asyncio.timeout(5), scene(desk(ledger), model) as it:
        await it.session.run("go")
        assert await told(it) == [("execute_refund", "stale_state"), ("find_customer", "ok")]
        assert await it.records(StateMoved) == []


@pytest.mark.requirement("I7")
@pytest.mark.parametrize("answer", ["fails", "denied", "times out"])
async def test_only_a_success_moves_the_workflow(answer: str) -> None:
    ledger = Ledger()

    async def preview(_: object, __: object) -> str:
        message = "no such invoice"
        raise OSError(message)

    tool = made("preview", preview, Access.WRITE)
    policy = Policy.deny("preview") if answer == "denied" else Policy()
    if answer == "times out":
        tool = made("preview", Gate().wait, Access.WRITE, timeout_s=0.001)
    chart = StateChart((WorkflowState("A", ("preview", "look"), (("preview", "B"),)), WorkflowState("B", ())))
    boss = AgentDefinition("boss", Role.BUILDER, tools=ToolSet(direct=(tool, ledger.tool("look")), states=chart))
    model = ScriptedModel(boss=[call("preview"), call("look"), "done"])
    async with asyncio.timeout(5), scene(boss, model) as it:
        await it.session.run(Turn("go", policy=policy))
        assert await it.records(StateMoved) == []
        assert (await told(it))[-1] == ("look", "ok")
    assert ledger.lines == ["look"]


@pytest.mark.requirement("I7")
async def test_of_two_moves_that_run_side_by_side_the_second_does_not_move_on_from_where_the_first_led() -> None:
    gates = (Gate(), Gate())

    async def step(_: object, arguments: Any) -> str:
        return await gates[arguments["n"]].wait()

    tool = made("step", step, Access.WRITE, parallel_safe=True)
    chart = StateChart(
        (
            WorkflowState("A", ("step",), (("step", "B"),)),
            WorkflowState("B", ("step",), (("step", "C"),)),
            WorkflowState("C", ()),
        )
    )
    boss = AgentDefinition("boss", Role.BUILDER, tools=ToolSet(direct=(tool,), states=chart))
    model = ScriptedModel(boss=[[call("step", n=0), call("step", n=1)], "done"])
    async with asyncio.timeout(5), scene(boss, model) as it:
        await it.session.send("go")
        for gate in gates:
            await gate.entered.wait()
            gate.leave.set()
        await it.quiet()
        assert [record.state for record in await it.records(StateMoved)] == ["B"]


@pytest.mark.requirement("I7")
async def test_a_transition_of_the_host_while_the_model_thinks_makes_its_calls_stale() -> None:
    ledger, gate = Ledger(), Gate()

    async def boss(request: Any) -> Any:
        if len(request.history) == 1:
            await gate.wait()
            return call("find_customer")
        return call("preview_refund") if len(request.history) == 3 else "done"

    async with asyncio.timeout(5), scene(desk(ledger), FunctionModel({"boss": boss})) as it:
        running = asyncio.ensure_future(it.session.run("go"))
        await gate.entered.wait()
        delivery = await it.session.send(Transition("RefundReview", by="the clerk"))
        assert (delivery.how, delivery.turn) == ("moved", "")
        gate.leave.set()
        await running
        assert await told(it) == [("find_customer", "stale_state"), ("preview_refund", "ok")]
        first, *_ = await it.records(StateMoved)
        assert (first.state, first.by) == ("RefundReview", "the clerk")


@pytest.mark.requirement("I7")
async def test_a_transition_to_the_state_it_is_in_is_a_new_revision_all_the_same() -> None:
    ledger, gate = Ledger(), Gate()

    async def boss(request: Any) -> Any:
        if len(request.history) == 1:
            await gate.wait()
        return call("find_customer") if len(request.history) <= 3 else "done"

    async with asyncio.timeout(5), scene(desk(ledger), FunctionModel({"boss": boss})) as it:
        running = asyncio.ensure_future(it.session.run("go"))
        await gate.entered.wait()
        await it.session.send(Transition("SupportLookup"))
        gate.leave.set()
        await running
        assert await told(it) == [("find_customer", "stale_state"), ("find_customer", "ok")]


@pytest.mark.parametrize("to", ["", "Nowhere", "refundreview", "RefundReview ", "RefundReview#0"])
async def test_a_transition_to_no_state_is_refused_with_those_there_are_and_leaves_no_record(to: str) -> None:
    async with asyncio.timeout(5), scene(desk(Ledger()), ScriptedModel()) as it:
        length = it.supervisor.journal.seq
        with pytest.raises(TransitionRefused) as caught:
            await it.session.send(Transition(to))
        assert caught.value.known == tuple(DESK)
        assert it.supervisor.journal.seq == length


@pytest.mark.requirement("I7")
async def test_a_resumed_session_stands_where_it_stood_and_its_old_calls_are_still_of_their_state() -> None:
    ledger, store, gate = Ledger(), MemoryStore(), Gate()
    chart = StateChart((WorkflowState("A", ("wait", "note")), WorkflowState("B", ("note",))))
    tools = (made("wait", gate.wait, timeout_s=None), ledger.tool("note", Access.WRITE))
    boss = AgentDefinition("boss", Role.BUILDER, tools=ToolSet(direct=tools, states=chart))
    model = plays(boss=[[call("note", n=1), call("wait"), call("note", n=2)], call("note", n=3), "done"])
    async with asyncio.timeout(5):
        async with scene(boss, model, store=store) as it:
            await it.session.send("go")
            await gate.entered.wait()
            await it.session.send(Transition("B"))
            handle = it.session.snapshot()
        gate.leave.set()
        async with scene(boss, model, store=store, handle=handle) as it:
            await it.quiet()
            assert it.supervisor.bridge._gathering.place() == "B#1"
            found = await told(it)
    assert found == [("note", "ok"), ("wait", "stale_state"), ("note", "stale_state"), ("note", "ok")]
    assert ledger.lines == ["note n=1", "note n=3"]


@pytest.mark.requirement("I7", "I6")
async def test_a_child_with_the_chart_is_bound_by_the_state_and_one_without_it_is_not() -> None:
    ledger = Ledger()
    chart = StateChart((WorkflowState("A", ("act",)), WorkflowState("B", ())))
    act = ledger.tool("act", Access.WRITE)
    bound = AgentDefinition("bound", Role.CHILD, tools=ToolSet(direct=(act,), states=chart))
    free = AgentDefinition("free", Role.CHILD, tools=ToolSet(direct=(act,)))
    boss = AgentDefinition("boss", Role.BUILDER, tools=ToolSet(direct=(act,), states=chart), children=(bound, free))
    batch = [call("delegate", child="bound", task="x"), call("delegate", child="free", task="x")]
    model = plays(boss=[batch, "done"], bound=[call("act", who="bound"), "ok"], free=[call("act", who="free"), "ok"])
    async with asyncio.timeout(5), scene(boss, model) as it:
        await it.session.send(Transition("B"))
        await it.session.run("go")
        assert await told(it, "boss/bound-0002") == [("act", "stale_state")]
        assert await told(it, "boss/free-0003") == [("act", "ok")]
    assert ledger.lines == ["act who=free"]


@pytest.mark.requirement("I7")
async def test_a_move_by_a_child_makes_the_queued_call_of_its_parent_stale() -> None:
    ledger = Ledger()
    chart = StateChart((WorkflowState("A", ("act", "look"), (("act", "B"),)), WorkflowState("B", ("look",))))
    tools = ToolSet(direct=(ledger.tool("act", Access.WRITE), ledger.tool("look")), states=chart)
    child = AgentDefinition("child", Role.CHILD, tools=tools)
    boss = AgentDefinition("boss", Role.BUILDER, tools=tools, children=(child,))
    model = plays(
        boss=[[call("delegate", child="child", task="x"), call("act")], call("look"), "done"],
        child=[call("act"), "ok"],
    )
    async with asyncio.timeout(5), scene(boss, model) as it:
        await it.session.run("go")
        assert await told(it) == [("delegate", "ok"), ("act", "stale_state"), ("look", "ok")]
    assert ledger.lines == ["act", "look"]


async def test_two_different_charts_in_one_session_are_refused_before_anything_is_written() -> None:
    ledger, store = Ledger(), MemoryStore()
    look = ledger.tool("look")
    one, two = StateChart((WorkflowState("A", ("look",)),)), StateChart((WorkflowState("B", ("look",)),))
    child = AgentDefinition("child", Role.CHILD, tools=ToolSet(direct=(look,), states=two))
    boss = AgentDefinition("boss", Role.BUILDER, tools=ToolSet(direct=(look,), states=one), children=(child,))
    async with asyncio.timeout(5):
        with pytest.raises(ResolutionFailed, match="one state chart"):
            async with scene(boss, ScriptedModel(), store=store):
                pass
    assert store.shelves == {}


def _chart(*states: Any) -> StateChart:
    return StateChart(tuple(WorkflowState(*state) for state in states))


@pytest.mark.parametrize(
    "chart, fault",
    [
        (_chart, "has no states"),
        (lambda: _chart(("A",), ("A",)), "duplicate state 'A'"),
        (lambda: _chart(("",)), "blank"),
        (lambda: _chart((" A",)), "blanks around it"),
        (lambda: _chart(("#A",)), "holds a '#'"),
        (lambda: _chart(("A", ("nope",))), "'nope'"),
        (lambda: _chart(("A", ("look",), (("look", "Z"),))), "'Z', which is no state"),
        (lambda: _chart(("A", (), (("look", "A"),))), "none of its tools"),
        (lambda: _chart(("A", ("look",), (("look", "A"), ("look", "B"))), ("B",)), "twice"),
        (lambda: _chart(("A", ("delegate",))), "'delegate'"),
    ],
)
def test_a_faulty_chart_is_refused_at_construction(chart: Callable[[], StateChart], fault: str) -> None:
    look = Ledger().tool("look")
    with pytest.raises(DefinitionError, match=fault):
        AgentDefinition("boss", Role.BUILDER, tools=ToolSet(direct=(look,), states=chart()))


def test_a_string_is_no_collection_of_tools() -> None:
    with pytest.raises(TypeError):
        WorkflowState("A", "look")


@pytest.mark.requirement("I1")
def test_the_chart_is_part_of_what_a_definition_is() -> None:
    look = Ledger().tool("look")

    def made_with(chart: StateChart | None) -> str:
        return AgentDefinition("boss", Role.BUILDER, tools=ToolSet(direct=(look,), states=chart)).fingerprint

    charts = [
        None,
        _chart(("A", ("look",))),
        _chart(("B", ("look",))),
        _chart(("A", ("look",)), ("B",)),
        _chart(("A", ("look",), (("look", "B"),)), ("B",)),
        _chart(("B",), ("A", ("look",), (("look", "B"),))),
    ]
    assert len({made_with(chart) for chart in charts}) == len(charts)


@pytest.mark.requirement("I3")
async def test_the_spec_of_a_tool_of_another_state_is_shown_with_its_verdict_and_intrinsics_stay() -> None:
    ledger = Ledger()
    model = ScriptedModel(boss=[call("get_api_spec", tool_name="execute_refund"), "done"])
    async with asyncio.timeout(5), scene(desk(ledger), model) as it:
        await it.session.run("go")
        (result,) = [record.result for record in await it.records(CallFinished)]
        assert "stale_state" in result.text
    assert {"get_api_spec", "read_output", "search_output"} <= set(names(model.requests[0]))


async def test_a_turn_under_a_chart_without_any_tool_of_the_state_still_ends() -> None:
    chart = StateChart((WorkflowState("Empty"), WorkflowState("Full", ("look",))))
    boss = AgentDefinition("boss", Role.BUILDER, tools=ToolSet(direct=(Ledger().tool("look"),), states=chart))
    model = ScriptedModel(boss=[calls(call("look")), "done"])
    async with asyncio.timeout(5), scene(boss, model) as it:
        assert (await it.session.run("go")).stop_reason is StopReason.COMPLETED
        assert await told(it) == [("look", "stale_state")]
