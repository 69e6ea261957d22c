"""What is offered, what is in the catalog and what runs are one thing, whatever the definition, policy and grants."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors import Access, AgentDefinition, Budget, Grants, Limits, Role, StopReason, ToolSet
from actors.messages import Outcome, ToolCall
from orchestrator import Agent, Policy, Principal, RuntimeConfig, Turn, TurnRefused
from orchestrator.facts import PERMIT, NeedsApproval
from orchestrator.journal.records import OfferMade, TurnEnded
from orchestrator.runtime import OWNER
from orchestrator.testing import FunctionModel, ScriptedModel, call
from tests.core.stage import Ledger, agent, names, raw, results, staged, written

INTRINSIC = ["get_api_spec", "read_output", "search_output"]
TOOLS = [
    ("look", Access.READ, ()),
    ("put", Access.WRITE, ("workspace.write",)),
    ("mail", Access.EXTERNAL, ("post.send",)),
]
KNOWN = [*(name for name, *_ in TOOLS), *INTRINSIC, "ask_person"]


@pytest.mark.requirement("B03", "I3", "I7")
async def test_a_tool_that_exists_elsewhere_but_not_in_the_definition_does_not_run_and_one_beside_it_does() -> None:
    ledger = Ledger()
    child = agent(ledger.tool("read_file"), name="inv", role=Role.CHILD)
    boss = agent(ledger.tool("write_file", Access.WRITE), ledger.tool("read_file"), children=(child,))
    script = [call("write_file", call_id="c1", path="x"), call("read_file", call_id="c2", path="seed"), "end"]
    runner, model = staged(boss, call("delegate", child="inv", task="look"), "done", others={"inv": script})
    async with asyncio.timeout(5), runner, runner.start() as session:
        await session.run("go")
    first, second = (
        results(request)[0] for request in model.requests if request.agent == "inv" and len(request.history) > 1
    )
    assert (first.outcome, first.denial.code if first.denial else "") == (Outcome.DENIED, "unknown_tool")
    assert second.outcome is Outcome.OK
    assert ledger.lines == ["read_file path=seed"]
    model.check()


@pytest.mark.requirement("B03")
async def test_a_definitions_own_function_runs_though_another_definition_has_a_tool_of_the_same_name() -> None:
    mine, theirs = Ledger(), Ledger()
    child = agent(theirs.tool("read_file"), name="inv", role=Role.CHILD)
    boss = agent(mine.tool("read_file"), children=(child,))
    others = {"inv": [call("read_file"), "end"]}
    runner, _ = staged(boss, call("read_file"), call("delegate", child="inv", task="look"), "done", others=others)
    async with asyncio.timeout(5), runner, runner.start() as session:
        await session.run("go")
    assert (mine.lines, theirs.lines) == (["read_file"], ["read_file"])


@pytest.mark.requirement("B03", "I2")
async def test_two_definitions_that_look_equal_never_run_each_others_functions() -> None:
    good, evil = Ledger(), Ledger()
    inner = [agent(ledger.tool("q"), name="worker", role=Role.CHILD) for ledger in (good, evil)]
    mid = [
        agent(name=name, role=Role.CHILD, children=(child,)) for name, child in zip(("one", "two"), inner, strict=True)
    ]
    others = {
        "one": [call("delegate", child="worker", task="x"), "end"],
        "two": [call("delegate", child="worker", task="x"), "end"],
        "worker": [call("q"), "end", call("q"), "end"],
    }
    play = [call("delegate", child="one", task="x"), call("delegate", child="two", task="x"), "done"]
    runner, _ = staged(agent(children=tuple(mid)), *play, others=others)
    async with asyncio.timeout(5), runner:
        try:
            await runner.run("go")
        except Exception as refused:  # noqa: BLE001  # refusing the pair by name is as good
            assert "worker" in str(refused)  # noqa: PT017
        else:
            assert (good.lines, evil.lines) == (["q"], ["q"])


async def offer_catalog_and_runs(
    definition: AgentDefinition, policy: Policy, grants: Grants, narrowing: Grants | None
) -> tuple[list[str], list[str], list[str], list[str]]:
    """The names offered, the names the catalog has, those it permits or that need a yes, and those that ran."""
    known: list[str] = []
    effective: list[str] = []

    def play(request: msgspec.Struct) -> object:
        if not known:
            member = session._root
            assert member.capability is not None
            for item, verdict in member.capability.catalog():
                known.append(item.tool.name)
                if verdict is PERMIT or isinstance(verdict, NeedsApproval):
                    effective.append(item.tool.name)
            offered.extend(names(request))  # type: ignore[arg-type]
            return [ToolCall(name, name, ARGUMENTS.get(name, "{}")) for name in [*known, "ghost"]]
        ran.extend(r.name for r in results(request) if r.denial is None)  # type: ignore[arg-type]
        return "done"

    offered: list[str] = []
    ran: list[str] = []
    config = RuntimeConfig(FunctionModel({"boss": play}), Principal(grants=grants))  # type: ignore[dict-item]
    async with asyncio.timeout(5), Agent(definition, config) as runner, runner.start() as session:
        await session.run(Turn("go", policy, narrowing))
    return offered, known, effective, ran


ARGUMENTS = {
    "get_api_spec": '{"tool_name":"get_api_spec"}',
    "read_output": '{"handle":"x"}',
    "search_output": '{"handle":"x","text":"y"}',
    "ask_person": '{"question":"?"}',
    "record_finding": '{"subject":"s","message":"m"}',
    "record_fix": '{"path":"p","diff":"d"}',
}
SOME = st.frozensets(st.sampled_from(KNOWN))
AUTHORITIES = st.frozensets(st.sampled_from(["workspace.write", "workspace.*", "post.send", "workspace.read"]))
GRANTS = st.builds(Grants, AUTHORITIES, st.sampled_from(Access), budget=st.builds(Budget, calls=st.none() | st.just(0)))


@pytest.mark.requirement("I3", "I7")
@given(SOME, SOME, st.booleans(), GRANTS, st.none() | GRANTS, st.sampled_from([Role.RUN, Role.CHILD]))
def test_offered_permitted_and_executable_are_one_set_for_any_policy_and_grants(
    allowed: frozenset[str],
    denied: frozenset[str],
    narrow: bool,  # noqa: FBT001  # Hypothesis gives it
    grants: Grants,
    narrowing: Grants | None,
    role: Role,
) -> None:
    ledger = Ledger()
    tools = tuple(ledger.tool(name, access, authorities=needed) for name, access, needed in TOOLS)
    policy = Policy(allowed if narrow else None, denied)
    offered, known, effective, ran = asyncio.run(
        offer_catalog_and_runs(agent(*tools, role=role), policy, grants, narrowing)
    )
    assert offered == effective
    assert sorted(ran) == sorted(effective)
    assert set(KNOWN) <= set(known)
    assert {line.split()[0] for line in ledger.lines} == {
        name for name in effective if name in [tool for tool, *_ in TOOLS]
    }


@pytest.mark.requirement("I3")
async def test_a_turn_policy_shows_in_the_offer_and_leaves_the_catalog_whole() -> None:
    ledger = Ledger()
    definition = agent(ledger.tool("allowed_tool"), ledger.tool("blocked_tool"))
    runner, model = staged(definition, call("get_api_spec", tool_name=["allowed_tool", "blocked_tool"]), "ok")
    async with asyncio.timeout(5), runner, runner.start() as session:
        await session.run(Turn("go", Policy.allow("allowed_tool")))
    assert names(model.requests[0]) == ["allowed_tool", *INTRINSIC]
    shown = msgspec.json.decode(results(model.requests[1])[0].text)
    assert [(entry["name"], entry["verdict"]) for entry in shown] == [
        ("allowed_tool", "permitted"),
        ("blocked_tool", "denied"),
    ]


@pytest.mark.requirement("I4")
async def test_a_policy_of_one_turn_is_gone_in_the_next() -> None:
    ledger = Ledger()
    put = ledger.tool("put", Access.WRITE)
    runner, model = staged(agent(put), call("put"), "no", call("put"), "yes")
    async with asyncio.timeout(5), runner, runner.start() as session:
        first = await session.run(Turn("go", Policy.deny("put")))
        assert ledger.lines == []
        second = await session.run("go")
    assert (len(first.failures), second.failures, ledger.lines) == (1, (), ["put"])
    assert ["put" in names(request) for request in model.requests] == [False, False, True, True]


@pytest.mark.requirement("I4")
async def test_a_budget_that_runs_out_in_a_turn_shows_in_the_very_next_offer() -> None:
    ledger = Ledger()
    grants = Grants(OWNER.authorities, OWNER.access, OWNER.roots, Budget(calls=1))
    runner, model = staged(
        agent(ledger.tool("look")), call("look"), call("look", n=2), "done", principal=Principal(grants=grants)
    )
    async with asyncio.timeout(5), runner, runner.start() as session:
        result = await session.run("go")
    assert [names(request) for request in model.requests] == [["look", *INTRINSIC], [], []]
    assert ledger.lines == ["look"]
    assert "budget" in result.failures[0]


@pytest.mark.requirement("I13")
async def test_events_carry_the_fingerprint_and_the_tools_that_each_request_really_had() -> None:
    ledger = Ledger()
    definition = agent(ledger.tool("look"), ledger.tool("put", Access.WRITE))
    runner, model = staged(definition, call("look"), "one", "two")
    async with asyncio.timeout(5), runner, runner.start() as session:
        result = await session.run(Turn("go", Policy.deny("put")))
        await session.run("go")
        offers = await written(session, OfferMade)
    assert [offer.tools for offer in offers] == [("look", *INTRINSIC), ("look", "put", *INTRINSIC)]
    assert [list(offer.tools) for offer in offers] == [names(model.requests[0]), names(model.requests[2])]
    assert {offer.fingerprint for offer in offers} == {definition.fingerprint} == {result.fingerprint}


@pytest.mark.requirement("I13")
async def test_the_last_request_at_the_step_limit_has_no_tools_and_the_events_say_so() -> None:
    ledger = Ledger()
    runner, model = staged(agent(ledger.tool("look")), call("look"), "done")
    async with asyncio.timeout(5), runner, runner.start() as session:
        result = await session.run(Turn("go", limits=Limits(steps=1)))
        offers = await written(session, OfferMade)
    assert result.stop_reason is StopReason.MAX_STEPS
    assert [names(request) for request in model.requests] == [["look", *INTRINSIC], []]
    assert [list(offer.tools) for offer in offers] == [["look", *INTRINSIC], []]


@pytest.mark.requirement("I14")
async def test_a_policy_with_a_name_the_agent_lacks_is_refused_with_one_terminal_record() -> None:
    ledger = Ledger()
    runner, model = staged(agent(ledger.tool("query")), "fine")
    async with asyncio.timeout(5), runner, runner.start() as session:
        with pytest.raises(TurnRefused, match="does not have: qeury") as refused:
            await session.run(Turn("go", Policy.deny("qeury")))
        result = await session.run("go")
        ended = await written(session, TurnEnded)
        kinds = [type(entry.record).__name__ for entry in await session._supervisor.journal.read(0)]
    assert kinds.count("TurnRejected") == 1
    assert [record.turn for record in ended] == [result.turn]
    assert refused.value.turn != result.turn
    model.check()


async def test_a_policy_with_blanks_around_a_name_is_refused_before_it_reaches_a_session() -> None:
    with pytest.raises(ValueError, match="surrounding whitespace"):
        Policy.allow("query ")
    with pytest.raises(ValueError, match="blank"):
        Policy.deny(" ")
    with pytest.raises(TypeError, match="collection of tool names"):
        Policy(denied="query")


@pytest.mark.parametrize(
    "asked,found",
    [("look", ["look"]), ('["put","look"]', ["look", "put"]), (["put", "look", "put"], ["look", "put"])],
)
async def test_a_spec_is_asked_for_by_name_by_list_or_by_a_list_written_as_text(
    asked: object, found: list[str]
) -> None:
    shown = await spec_of(asked)
    assert [entry["name"] for entry in msgspec.json.decode(shown)] == found


@pytest.mark.parametrize(
    "asked,unknown",
    [
        ("[]", "[]"),
        ("look[0]", "look[0]"),
        (["look", "ghost"], "ghost"),
        ("get_prompt", "get_prompt"),
        ('[" "]', '[" "]'),
    ],
)
async def test_one_bad_name_fails_the_whole_question_and_lists_what_there_is(asked: object, unknown: str) -> None:
    shown = await spec_of(asked)
    assert shown.startswith(f"unknown=[{unknown}].")
    assert "input_schema" not in shown
    assert "hidden" not in shown


async def test_the_list_of_what_there_is_stays_short_however_many_tools_there_are() -> None:
    ledger = Ledger()
    many = agent(*(ledger.tool(f"tool_{number:03}_{'x' * 40}") for number in range(500)))
    runner, model = staged(many, call("get_api_spec", tool_name="ghost"), "ok")
    async with asyncio.timeout(5), runner, runner.start() as session:
        await session.run("go")
    text = results(model.requests[1])[0].text
    assert text.endswith(" and 464 more.")
    assert len(text) < 3_000


@pytest.mark.parametrize("arguments", ["{}", '{"tool_name":[]}', '{"tool_name":" "}'])
async def test_a_spec_without_a_name_is_refused_and_says_what_is_missing(arguments: str) -> None:
    assert "tool_name" in await spec_of(None, arguments)


async def spec_of(asked: object, arguments: str = "") -> str:
    """What ``get_api_spec`` answers to *asked*, for an agent whose child has a tool of its own."""
    ledger = Ledger()
    child = agent(ledger.tool("hidden"), name="c", role=Role.CHILD)
    definition = agent(ledger.tool("look"), ledger.tool("put", Access.WRITE), children=(child,))
    question = raw("get_api_spec", arguments or msgspec.json.encode({"tool_name": asked}).decode())
    runner, model = staged(definition, question, "ok")
    async with asyncio.timeout(5), runner, runner.start() as session:
        await session.run("go")
    return results(model.requests[1])[0].text


async def test_a_spec_is_decided_anew_in_each_turn() -> None:
    ledger = Ledger()
    ask = call("get_api_spec", tool_name="look")
    model = ScriptedModel(boss=[ask, "one", ask, "two"])
    definition = AgentDefinition("boss", Role.BUILDER, tools=ToolSet(direct=(ledger.tool("look"),)))
    async with asyncio.timeout(5), Agent(definition, RuntimeConfig(model)) as runner, runner.start() as session:
        await session.run("go")
        await session.run(Turn("go", Policy.deny("look")))
    shown = [msgspec.json.decode(results(model.requests[place])[0].text)[0] for place in (1, 3)]
    assert [entry["verdict"] for entry in shown] == ["permitted", "denied"]
    assert (shown[1]["code"], "remedy" in shown[1]) == ("denied_by_policy", True)
