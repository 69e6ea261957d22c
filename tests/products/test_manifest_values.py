"""What a product file says becomes frozen values: tools, agents, states, callers, and what an audit looks at."""

from __future__ import annotations

import pytest

from actors import Access, Grants, Tool, ToolFault
from actors.states import WorkflowState
from actors.tools import Approval
from orchestrator.catalog.subject import Annotations, NamedSet, Situation
from orchestrator.products.manifest import Manifest, parse_manifest

TEXT = """\
name: shop
description: Sells.
agents:
  clerk: {role: builder, instructions: Help., tools: [look, push], children: [boy]}
  boy: {role: child, instructions: Carry., tools: [look]}
tools:
  - name: look
    description: See a thing.
    use_not_for: things that you know.
    effect: read_only
    annotations: {readOnlyHint: true}
    definition_bytes: 77
    input_schema: {type: object, required: [what], properties: {what: {type: string}}}
  - name: push
    description: Push. Never twice.
    access: external
    authorities: [shop.push]
    needs: [workspace, job_ref]
    approval: each_call
states:
  - {name: open, tools: [look, push], moves: {push: shut}}
  - {name: shut, tools: [look]}
callers:
  chat:
    agent: clerk
    typed: true
    approver: true
    authorities: [shop.push, secrets.manage, workspace.nothing]
    context: [workspace]
    situations:
      job: {context: [job_ref]}
      night: {authorities: [shop.night], access: write}
  porter: {agent: boy, access: read}
selections:
  few: [push]
"""


@pytest.fixture
def shop() -> Manifest:
    """A product with everything in it."""
    return parse_manifest(TEXT, "p.yaml")


def tools(shop: Manifest) -> dict[str, Tool]:
    return {each.tool.name: each.tool for each in shop.tools}


def test_a_tool_is_what_its_keys_say(shop: Manifest) -> None:
    look, push = tools(shop)["look"], tools(shop)["push"]
    assert look.description == "See a thing. Not for things that you know."
    assert (look.access, look.authorities, look.needs, look.approval) == (
        Access.READ,
        frozenset(),
        frozenset(),
        Approval.NEVER,
    )
    assert look.input_schema == '{"properties":{"what":{"type":"string"}},"required":["what"],"type":"object"}'
    assert (push.access, push.authorities, push.needs, push.approval) == (
        Access.EXTERNAL,
        frozenset({"shop.push"}),
        frozenset({"workspace", "job_ref"}),
        Approval.EACH_CALL,
    )


def test_sizes_and_annotations_stand_beside_the_tool(shop: Manifest) -> None:
    first, second = shop.tools
    assert (first.definition_bytes, first.annotations) == (77, Annotations(read_only=True))
    assert (second.definition_bytes, second.annotations) == (None, Annotations())


async def test_a_tool_without_a_function_says_at_each_call_that_it_is_connected_nowhere(shop: Manifest) -> None:
    assert [each.connected for each in shop.tools] == [False, False]
    run = tools(shop)["push"].run
    assert run is not None
    with pytest.raises(ToolFault, match="push is declared here and connected nowhere"):
        await run(None, {})  # type: ignore[arg-type]


def test_agents_are_definitions_with_their_children(shop: Manifest) -> None:
    clerk = shop.agent("clerk")
    assert [tool.name for tool in clerk.tools.direct] == ["look", "push"]
    assert [child.name for child in clerk.children] == ["boy"]


def test_the_first_state_is_where_a_workflow_begins(shop: Manifest) -> None:
    assert shop.states == (
        WorkflowState("open", ("look", "push"), (("push", "shut"),)),
        WorkflowState("shut", ("look",)),
    )


def test_a_caller_holds_what_its_role_may_hold_and_the_authorities_of_the_product(shop: Manifest) -> None:
    chat, porter = shop.caller("chat"), shop.caller("porter")
    assert chat.grants == Grants(("shop.push", "secrets.manage"), Access.EXTERNAL, (".",))
    assert (chat.context, chat.approver, chat.typed) == (frozenset({"workspace", "principal"}), True, True)
    assert chat.situations == (
        Situation("job", context=("job_ref",)),
        Situation("night", Grants(("shop.night",), Access.WRITE)),
    )
    assert (porter.grants.access, porter.approver, porter.typed) == (Access.READ, False, False)


def test_a_product_without_callers_has_one_for_each_agent() -> None:
    text = TEXT.partition("callers:")[0]
    names = {caller.name: sorted(caller.grants.authorities) for caller in parse_manifest(text, "p.yaml").callers}
    assert names.keys() == {"clerk", "boy"}
    assert "workspace.write" in names["clerk"]


def test_an_audit_looks_at_the_same_values(shop: Manifest) -> None:
    subject = shop.subject()
    assert (subject.name, subject.tools, subject.states, subject.callers) == (
        "shop",
        shop.tools,
        shop.states,
        shop.callers,
    )
    assert subject.selections == (NamedSet("few", ("push",)),)


def test_the_same_file_makes_equal_values_with_the_same_functions(shop: Manifest) -> None:
    again = parse_manifest(TEXT, "p.yaml")
    assert again == shop
    assert hash(again) == hash(shop)
    assert [each.tool.run for each in again.tools] == [each.tool.run for each in shop.tools]
    assert [agent.fingerprint for agent in again.agents] == [agent.fingerprint for agent in shop.agents]
