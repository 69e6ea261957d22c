"""What an audit finds in declarations: texts, annotations, names, sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from actors import Access, AgentDefinition, Role, Skill
from actors.definition import MCPSource, ToolSet
from actors.intrinsics import ALL
from actors.ports import OfferedTool
from actors.states import WorkflowState
from orchestrator import Policy
from orchestrator.catalog.audit import audit
from orchestrator.catalog.budget import DEFAULT_BUDGET_BYTES, encoded, estimated_tokens, measured
from orchestrator.catalog.declarations import contradiction, tells_when_not
from orchestrator.catalog.subject import Annotations, NamedSet
from tests.catalog.catalogs import agent, caller, declared, subject, tool

if TYPE_CHECKING:
    from orchestrator.catalog.finding import Finding
    from orchestrator.catalog.subject import Subject


def found(what: Subject, kind: str, budget_bytes: int = DEFAULT_BUDGET_BYTES) -> list[Finding]:
    """The findings of one kind."""
    return [finding for finding in audit(what, budget_bytes=budget_bytes).findings if finding.kind == kind]


@pytest.mark.parametrize(
    "text, told",
    [
        ("Reads a file. Not for directories.", True),
        ("Sends mail. Only when the person asked for it.", True),
        ("Deploys. Never on a Friday.", True),
        ("Read a part; use grep instead to find it.", True),
        ("Open the review. Not before the invoice was read.", True),
        ("Do it, but don\N{RIGHT SINGLE QUOTATION MARK}t ask twice.", True),
        ("Reads a file.", False),
        ("Writes a note about nothing in a knot.", False),
        ("Sends the only mail there is.", False),
    ],
)
def test_a_description_says_when_not_to_use_the_tool_or_is_found(text: str, *, told: bool) -> None:
    assert tells_when_not(text) is told
    assert [finding.tool for finding in found(subject(declared("t", description=text)), "use_not_told")] == (
        [] if told else ["t"]
    )


def test_of_our_own_intrinsic_tools_four_draw_no_limit() -> None:
    silent = {item.name for item in ALL if not tells_when_not(item.description)}
    assert silent == {"record_finding", "record_fix", "stop_child", "collect_child"}


@pytest.mark.parametrize(
    "access, says, wrong",
    [
        (Access.READ, Annotations(read_only=False), True),
        (Access.READ, Annotations(read_only=True, destructive=True), True),
        (Access.READ, Annotations(read_only=True, open_world=True), False),
        (Access.WRITE, Annotations(destructive=True), True),
        (Access.WRITE, Annotations(open_world=True), True),
        (Access.WRITE, Annotations(read_only=False, destructive=False, open_world=False), False),
        (Access.WRITE, Annotations(read_only=True), True),
        (Access.EXTERNAL, Annotations(read_only=True), True),
        (Access.EXTERNAL, Annotations(read_only=False, destructive=True, open_world=True), False),
        *((access, Annotations(), False) for access in Access),
    ],
)
def test_declared_access_that_contradicts_the_annotations_is_found(
    access: Access, says: Annotations, *, wrong: bool
) -> None:
    assert bool(contradiction(access, says)) is wrong
    item = declared("t", says=says, access=access)
    assert [finding.tool for finding in found(subject(item), "misdeclared")] == (["t"] if wrong else [])


def test_names_in_policies_states_and_selections_that_lead_nowhere_are_found_and_those_that_lead_somewhere_not() -> (
    None
):
    look = declared("look")
    states = (WorkflowState("one", ("look", "lok"), (("look", "tow"), ("look", "one"))),)
    callers = (caller(agent(look.tool), policy=Policy.deny("look", "loook", "ask_person")),)
    what = subject(look, callers=callers, states=states, selections=(NamedSet("best", ("look", "luck")),))
    messages = [finding.message for finding in found(what, "unresolved_name")]
    assert messages == [
        "the policy of chat names the tool 'loook', which is not there",
        "the state one names the tool 'lok', which is not there",
        "the move of look in the state one names the state 'tow', which is not there",
        "the selection best names the tool 'luck', which is not there",
    ]


def test_a_skill_may_name_tools_of_a_source_and_no_others() -> None:
    skill = Skill("s", "d", "t", tools=("look", "web__search"))
    sources = ToolSet(direct=(tool("look"),), mcp=(MCPSource("web", command=("x",), access=Access.READ),))
    whole = AgentDefinition("boss", Role.BUILDER, skills=(skill,), tools=sources)
    assert found(subject(declared("look"), callers=(caller(whole),)), "unresolved_name") == []


def test_the_bytes_are_those_of_the_encoding_that_is_sent_unless_the_owners_give_a_size() -> None:
    item = declared("look", description="Sees \N{EURO SIGN}. Not for more.")
    offered = OfferedTool(item.tool.name, item.tool.description, item.tool.input_schema)
    assert msgspec.json.decode(encoded(offered)) == {
        "name": "look",
        "description": "Sees \N{EURO SIGN}. Not for more.",
        "input_schema": {"type": "object"},
    }
    assert audit(subject(item)).sizes == (("look", len(encoded(offered))),)
    assert audit(subject(declared("look", size=7))).sizes == (("look", 7),)
    assert audit(subject(item), encode=lambda _: b"four").sizes == (("look", 4),)


@pytest.mark.parametrize("size, tokens", [(0, 0), (1, 1), (4, 1), (5, 2), (21_396, 5_349)])
def test_tokens_are_estimated_as_bytes_by_four_rounded_up(size: int, tokens: int) -> None:
    assert estimated_tokens(size) == tokens


def test_a_catalog_over_the_budget_is_found_at_the_first_byte_beyond_it() -> None:
    item = declared("big", size=5000)
    definition = agent(item.tool)
    total = 5000 + sum(measured(each) for each in definition.offered if each.name != "big")
    what = subject(item, callers=(caller(definition),))
    assert found(what, "over_budget", budget_bytes=total) == []
    (finding,) = found(what, "over_budget", budget_bytes=total - 1)
    assert (finding.actor, f"{total} bytes" in finding.message) == ("chat", True)
