"""A definition: validated at once, frozen, fingerprinted; one name, one owner, one address."""

from __future__ import annotations

import attrs
import msgspec
import pytest

from actors import Access, AgentDefinition, DefinitionError, Role, Skill, Tool, ToolSet
from actors.definition import MCPSource, address
from actors.intrinsics import INTRINSICS
from actors.roles import ROLES
from actors.tools import Approval


async def run(_: object, __: object) -> str:
    return "ran"


def made(name: str, access: Access = Access.READ, **more: object) -> Tool:
    return Tool(name, "Does it.", access=access, run=run, **more)  # type: ignore[arg-type]


def agent(
    name: str = "a", role: Role = Role.BUILDER, *, tools: tuple[Tool, ...] = (), **more: object
) -> AgentDefinition:
    return AgentDefinition(name, role, tools=ToolSet(direct=tools), **more)  # type: ignore[arg-type]


def faults(**more: object) -> tuple[str, ...]:
    with pytest.raises(DefinitionError) as refused:
        agent(**more)  # type: ignore[arg-type]
    return refused.value.faults


@pytest.mark.requirement("I2")
def test_a_repeated_direct_tool_is_refused_naming_both_owners() -> None:
    (fault,) = faults(tools=(made("q", source="one"), made("q", source="two")))
    assert fault == "duplicate direct tool name 'q', owned by 'one' and by 'two'"


@pytest.mark.requirement("I2")
def test_a_repeated_source_skill_or_child_is_refused() -> None:
    source, skill, child = MCPSource("db", ("serve",)), Skill("s", "what", "text"), agent("c", Role.CHILD)
    with pytest.raises(DefinitionError, match="duplicate MCP tool source 'db'"):
        AgentDefinition("a", Role.BUILDER, tools=ToolSet(mcp=(source, source)))
    assert faults(skills=(skill, skill)) == ("duplicate skill name 's'",)
    assert faults(children=(child, child)) == ("duplicate child name 'c'",)


@pytest.mark.requirement("I2")
@pytest.mark.parametrize("name", sorted(INTRINSICS))
def test_a_reserved_name_is_refused(name: str) -> None:
    (fault,) = faults(tools=(made(name),))
    assert "reserved" in fault


@pytest.mark.requirement("I2")
def test_a_tool_cannot_pass_itself_off_as_intrinsic() -> None:
    assert any("intrinsic" in fault for fault in faults(tools=(made("mine", source="intrinsic"),)))


def test_every_fault_is_listed_at_once_and_in_the_order_of_the_fields() -> None:
    found = faults(
        name=" a ",
        skills=(Skill("", "what", "text", ("nothing",)),),
        tools=(made("delegate"), Tool("bare", "Does it.")),
        children=(agent("b"),),
        output="[]",
    )
    assert len(found) == 7
    assert "blanks around it" in found[0]
    assert "output is not an object" in found[-1]


def test_a_skill_may_name_only_tools_the_definition_has() -> None:
    assert faults(skills=(Skill("s", "what", "text", ("ghost",)),)) == (
        "skill 's' names the tool 'ghost', which the definition does not have",
    )
    assert agent(tools=(made("q"),), skills=(Skill("s", "what", "text", ("q", "read_output")),)).skills


@pytest.mark.parametrize("name", ["delegate", "record_fix"])
def test_a_skill_cannot_name_an_intrinsic_tool_that_this_definition_lacks(name: str) -> None:
    (fault,) = faults(skills=(Skill("s", "what", "text", (name,)),))
    assert name in fault


def test_a_tool_above_the_ceiling_of_the_role_is_refused() -> None:
    (fault,) = faults(role=Role.REVIEWER, tools=(made("put", Access.WRITE),))
    assert "above what a reviewer may do" in fault
    (fault,) = faults(role=Role.FIXER, tools=(made("mail", Access.EXTERNAL),))
    assert "above what a fixer may do" in fault


def test_a_builder_has_no_external_tool_that_runs_without_approval_and_a_run_actor_may() -> None:
    mail = made("mail", Access.EXTERNAL)
    (fault,) = faults(tools=(mail,))
    assert "'mail' reaches outside without approval, which a builder may not do" in fault
    assert agent(tools=(made("mail", Access.EXTERNAL, approval=Approval.EACH_CALL),)).offered
    assert agent(role=Role.RUN, tools=(mail,)).offered


def test_an_authority_the_role_can_never_hold_is_refused_and_one_on_loan_is_not() -> None:
    (fault,) = faults(role=Role.REVIEWER, tools=(made("q", authorities=("workspace.write",)),))
    assert "can never hold" in fault
    assert agent(role=Role.FIXER, tools=(made("q", authorities=("workspace.write",)),)).offered


def test_an_authority_of_a_products_own_namespace_passes_every_role() -> None:
    for role in Role:
        assert agent(role=role, tools=(made("q", authorities=("invoices.read",)),)).offered


@pytest.mark.parametrize("role", list(Role))
def test_a_role_may_start_the_roles_of_its_table_and_no_other(role: Role) -> None:
    for other in Role:
        child = agent("c", other)
        if other in ROLES[role].may_start:
            assert agent(role=role, children=(child,)).children == (child,)
        else:
            assert "may start" in faults(role=role, children=(child,))[0]


def test_intrinsic_tools_are_those_that_the_definition_can_use() -> None:
    plain = {tool.name for tool in agent().offered}
    assert plain == {"get_api_spec", "read_output", "search_output", "ask_person"}
    full = {tool.name for tool in agent(skills=(Skill("s", "d", "t"),), children=(agent("c", Role.CHILD),)).offered}
    kin = {"delegate", "list_children", "child_status", "message_child", "stop_child", "collect_child"}
    assert full - plain == {"read_skill"} | kin
    assert {tool.name for tool in agent(role=Role.FIXER).offered} - plain == {"record_fix"}


@pytest.mark.requirement("I1")
def test_the_fingerprint_is_the_same_for_equal_definitions_and_differs_with_every_field() -> None:
    base = agent(tools=(made("q"),))
    assert base.fingerprint == agent(tools=(made("q"),)).fingerprint
    others = [
        agent("b", tools=(made("q"),)),
        agent(role=Role.RUN, tools=(made("q"),)),
        agent(tools=(made("q"),), instructions="x"),
        agent(tools=(made("q"),), skills=(Skill("s", "d", "t"),)),
        agent(tools=(made("q"),), skills=(Skill("s", "d", "u"),)),
        agent(tools=(made("q", version="2"),)),
        agent(tools=(made("q"),), children=(agent("c", Role.CHILD),)),
        agent(tools=(made("q"),), children=(agent("c", Role.CHILD, instructions="y"),)),
        agent(tools=(made("q"),), output="{}"),
        agent(tools=(made("q"),), wake=False),
        agent(tools=(made("q"),), steer=True),
    ]
    prints = {base.fingerprint, *(other.fingerprint for other in others)}
    assert len(prints) == len(others) + 1


@pytest.mark.requirement("I1")
def test_nothing_of_a_definition_can_be_changed_and_what_it_was_made_of_is_copied() -> None:
    skills = [Skill("workflow", "original", "text")]
    base = AgentDefinition("a", Role.BUILDER, "base", skills, ToolSet(direct=[made("q")]))
    before = base.fingerprint
    skills.clear()
    assert (base.skills[0].description, base.fingerprint) == ("original", before)
    for holder, field in (
        (base, "name"),
        (base.skills[0], "description"),
        (base.tools, "direct"),
        (base.offered[0], "access"),
    ):
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            setattr(holder, field, "mutated")
    with pytest.raises(AttributeError):
        base.extra = 1  # type: ignore[attr-defined]


def test_instructions_come_after_the_text_of_the_role_and_before_the_list_of_skills() -> None:
    text = agent(instructions="base\n\nsupplement", skills=(Skill("workflow", "original", "text"),)).full_instructions()
    assert (
        text.index(ROLES[Role.BUILDER].instructions)
        < text.index("base\n\nsupplement")
        < text.index("- workflow: original")
    )
    assert agent(instructions="base").full_instructions().count("base") == 1


@pytest.mark.requirement("B13")
def test_names_that_differ_in_case_punctuation_or_script_have_distinct_stable_addresses() -> None:
    names = ("Billing Agent", "billing-agent", "billing.agent", "風林火山", "疾風迅雷", "🚀")
    children = tuple(agent(name, Role.CHILD) for name in names)
    addresses = [child.address for child in agent(children=children).children]
    assert len(set(addresses)) == len(names)
    assert addresses == [address(name) for name in names]
    assert [child.name for child in children] == list(names)
    for place in addresses:
        assert place.isascii()
        assert "/" not in place


@pytest.mark.requirement("B13")
def test_a_name_spelled_like_another_ones_address_does_not_take_its_place() -> None:
    display = "Billing Agent"
    children = (agent(display, Role.CHILD), agent(address(display), Role.CHILD))
    try:
        built = agent(children=children)
    except DefinitionError as refused:
        assert display in str(refused)  # noqa: PT017  # either outcome is right: refused naming the pair, or distinct
        assert address(display) in str(refused)  # noqa: PT017
    else:
        assert len({child.address for child in built.children}) == 2


@pytest.mark.requirement("B13")
@pytest.mark.parametrize("name", ["", " ", "\u3000", "\u200d", "\u200c\u200d"])
def test_a_name_of_which_nothing_can_be_seen_is_refused(name: str) -> None:
    assert faults(name=name)


@pytest.mark.requirement("B78")
@pytest.mark.parametrize("character", ["\0", "\u202e", "\ufeff", "\u200b", "\ud83d", "\x1b", "\u2028"])
def test_a_name_with_an_invisible_or_half_character_is_refused_naming_it(character: str) -> None:
    (fault,) = faults(name=f"a{character}b")
    assert f"U+{ord(character):04X}" in fault
    assert fault.encode()


@pytest.mark.requirement("B78")
def test_the_two_normal_forms_of_a_name_are_one_name() -> None:
    composed, decomposed = "café", "cafe\u0301"
    assert agent(composed) == agent(decomposed)
    assert agent(decomposed).address == agent(composed).address
    children = (agent(composed, Role.CHILD), agent(decomposed, Role.CHILD))
    assert faults(children=children) == ("duplicate child name 'café'",)


def test_an_mcp_source_is_reached_in_exactly_one_way_under_a_plain_name() -> None:
    for source in (MCPSource("db"), MCPSource("db", ("serve",), "http://x"), MCPSource("a__b", ("serve",))):
        with pytest.raises(DefinitionError, match="MCP source"):
            AgentDefinition("a", Role.BUILDER, tools=ToolSet(mcp=(source,)))


def test_a_definition_is_encoded_the_same_whatever_the_order_of_its_sets() -> None:
    one = agent(tools=(made("q", authorities=("a.b", "c.d")),))
    two = agent(tools=(made("q", authorities=("c.d", "a.b")),))
    assert one.fingerprint == two.fingerprint
    assert msgspec.json.encode(one.tools.direct[0].declaration())
