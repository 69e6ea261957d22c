"""An audit says of every actor and tool what the decision says, names all that is missing, and what can never run."""

from __future__ import annotations

import asyncio

import pytest

from actors import Access, Grants
from actors.states import WorkflowState
from actors.tools import Approval
from orchestrator import Agent, Policy, Principal, RuntimeConfig, Turn
from orchestrator.catalog.audit import audit
from orchestrator.catalog.subject import Declared, NamedSet, Situation, Subject
from orchestrator.facts import code_of
from orchestrator.testing import FunctionModel
from tests.catalog.catalogs import agent, caller, declared, subject, tool

RESERVED = agent(
    tool("needs_authority_x", authorities=("x.use",)),
    tool("needs_workspace", needs=("workspace",)),
    tool("custom_tool"),
    tool("shell", access=Access.WRITE),
    tool("ok"),
)


def kinds(found: Subject, **options: object) -> dict[str, list[str]]:
    """The tools (or else actors) of each kind of finding."""
    named: dict[str, list[str]] = {}
    for finding in audit(found, **options).findings:  # type: ignore[arg-type]
        named.setdefault(finding.kind, []).append(finding.tool or finding.actor)
    return named


@pytest.mark.requirement("B93")
def test_each_tool_that_could_never_run_is_told_with_the_thing_that_it_lacks() -> None:
    one = caller(RESERVED, name="a", policy=Policy.deny("shell"))
    found = audit(subject(*(Declared(each) for each in RESERVED.tools.direct), callers=(one,)))
    cells = {cell.tool: cell for cell in found.columns[0].cells}
    assert {name: (cell.permitted, cell.code, cell.missing) for name, cell in cells.items()} == {
        "needs_authority_x": (False, "authority_missing", ("x.use",)),
        "needs_workspace": (False, "context_missing", ("workspace",)),
        "custom_tool": (True, "", ()),
        "shell": (False, "denied_by_policy", ()),
        "ok": (True, "", ()),
    }
    refused = [finding for finding in found.findings if finding.kind == "always_refused"]
    assert [
        (finding.tool, missing in finding.message)
        for finding, missing in zip(refused, ("x.use", "workspace", "denied_by_policy"), strict=True)
    ] == [("needs_authority_x", True), ("needs_workspace", True), ("shell", True)]


@pytest.mark.requirement("B93", "I3")
@pytest.mark.parametrize("policy", [Policy(), Policy.deny("custom_tool"), Policy.allow("ok")])
@pytest.mark.parametrize("grants", [Grants(), Grants(("x.*",)), Grants(("x.use",), Access.EXTERNAL)])
async def test_the_audit_and_a_live_session_answer_alike(policy: Policy, grants: Grants) -> None:
    seen: dict[str, str] = {}

    def play(_: object) -> str:
        capability = session._root.capability
        assert capability is not None
        seen.update({item.tool.name: code_of(verdict) for item, verdict in capability.catalog()})
        return "done"

    config = RuntimeConfig(FunctionModel({"boss": play}), principal=Principal(grants=grants))
    async with asyncio.timeout(5), Agent(RESERVED, config) as runner, runner.start() as session:
        await session.run(Turn("go", policy))
        held = session._root.base
    one = caller(RESERVED, *held.authorities, access=held.access, policy=policy, context=("principal",))
    found = audit(subject(*(Declared(each) for each in RESERVED.tools.direct), callers=(one,)))
    assert {cell.tool: cell.code for cell in found.columns[0].cells}.items() <= seen.items()


def test_the_first_gate_that_refuses_is_told_and_everything_missing_beside_it() -> None:
    guarded = declared("put", authorities=("b.c", "a.b"), needs=("z", "y"), access=Access.WRITE)
    found = audit(subject(guarded, callers=(caller(agent(guarded.tool), access=Access.READ),)))
    cell = found.columns[0].cells[0]
    assert (cell.code, cell.gate, cell.missing) == ("authority_missing", 7, ("a.b", "b.c", "y", "z"))


def test_a_tool_that_needs_approval_counts_as_permitted_where_a_person_can_be_asked_and_nowhere_else() -> None:
    asked = declared("send", approval=Approval.EACH_CALL)
    mine = agent(asked.tool)
    found = audit(subject(asked, callers=(caller(mine, name="in", approver=True), caller(mine, name="out"))))
    assert [(column.cells[0].permitted, column.cells[0].code) for column in found.columns] == [
        (True, "needs_approval"),
        (False, "approval_unavailable"),
    ]


def test_a_tool_of_another_actor_is_unknown_and_no_weight_of_ones_own() -> None:
    mine, theirs = declared("mine", size=100), declared("theirs", size=900)
    found = audit(subject(mine, theirs, callers=(caller(agent(mine.tool)), caller(agent(theirs.tool), name="other"))))
    assert [cell.code for cell in found.columns[0].cells] == ["", "unknown_tool"]
    assert [column.definition_bytes for column in found.columns] == [100, 900]
    assert found.findings == ()


def test_a_tool_in_no_definition_can_be_run_by_no_actor() -> None:
    lone = declared("lone")
    assert kinds(subject(lone, callers=(caller(agent(tool("ok"))),))) == {"no_actor": ["lone"]}


def test_a_situation_that_helps_is_named_and_the_tool_is_not_called_hopeless() -> None:
    run = declared("run", needs=("computer",))
    paired = Situation("paired", context=("computer",))
    found = audit(subject(run, callers=(caller(agent(run.tool), situations=(paired, Situation("other"))),)))
    assert (found.columns[0].cells[0].permitted, found.columns[0].cells[0].situations) == (False, ("paired",))
    assert found.findings == ()


def test_a_situation_may_lend_authority() -> None:
    push = declared("push", authorities=("repository.write",), access=Access.WRITE)
    coding = Situation("coding", Grants(("repository.*",), Access.WRITE))
    found = audit(subject(push, callers=(caller(agent(push.tool), access=Access.READ, situations=(coding,)),)))
    assert found.columns[0].cells[0].situations == ("coding",)


def test_a_tool_runs_where_a_person_types_only_if_some_typed_caller_could_have_what_it_needs() -> None:
    job, shop = declared("job", needs=("job_ref",)), declared("shop", authorities=("code.execute",))
    mine = agent(job.tool, shop.tool)
    chat = caller(mine, name="chat", typed=True)
    work = caller(mine, "code.execute", name="work", context=("job_ref",))
    assert kinds(subject(job, shop, callers=(chat, work))).get("nowhere_typed") == ["shop"]
    assert "nowhere_typed" not in kinds(subject(job, shop, callers=(work,)))


def test_with_states_a_tool_is_offered_where_its_state_has_it_and_the_nearest_refusal_is_told() -> None:
    look, pay, never = declared("look"), declared("pay", authorities=("a.b",)), declared("never")
    states = (WorkflowState("one", ("look",), (("look", "two"),)), WorkflowState("two", ("look", "pay")))
    found = audit(subject(look, pay, never, states=states))
    cells = {cell.tool: (cell.permitted, cell.code, cell.states) for cell in found.columns[0].cells}
    assert cells == {
        "look": (True, "", ("one", "two")),
        "pay": (False, "authority_missing", ()),
        "never": (False, "stale_state", ()),
    }


def test_a_selection_is_measured_and_what_every_actor_would_be_refused_in_it_is_found() -> None:
    good, bad = declared("good", size=10), declared("bad", size=30, needs=("nothing",))
    found = audit(subject(good, bad, selections=(NamedSet("both", ("good", "bad")), NamedSet("one", ("good",)))))
    assert [(each.name, each.definition_bytes, each.refused) for each in found.selections] == [
        ("both", 40, (("chat", ("bad",)),)),
        ("one", 10, ()),
    ]
    assert [finding.tool for finding in found.findings if finding.kind == "refused_selection"] == ["bad"]


def test_an_actor_is_told_of_the_weight_that_it_is_never_offered() -> None:
    good, bad = declared("good", size=10), declared("bad", size=30, needs=("nothing",))
    mine = agent(good.tool, bad.tool)
    found = audit(subject(good, bad, callers=(caller(mine), caller(mine, name="able", context=("nothing",)))))
    assert [(each.actor, "1 of its 2 tools, 30 bytes: bad" in each.message) for each in found.findings] == [
        ("chat", True)
    ]
