"""A selection is a part of what the decision offers: reach first, ranking after. Seed areas oa.selector, oa.reach."""

from __future__ import annotations

import math

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.messages import Denial
from actors.selection import Selector
from orchestrator.catalog.budget import encoded
from orchestrator.catalog.viewpoint import Viewpoint
from orchestrator.denials import deny
from orchestrator.facts import Attempt
from orchestrator.policy import decide
from orchestrator.products.audited import subject_of
from orchestrator.selection import Candidate, candidates_of, choose, cosine, select
from tests.catalog.catalogs import agent, caller, catalog_of, tool

MANY = tuple(Candidate(f"extra_{number}", f"extra tool {number}", offered=True) for number in range(25))
DISCOVER = Candidate("module_discover", "find tools", offered=True)
REFUSED = deny("authority_missing", "repo_write", "boss", "no")


def test_oa_selector_an_empty_intent_takes_the_first_and_what_is_always_included() -> None:
    chosen = select((*MANY, DISCOVER), "", top_k=12, always_include=("module_discover",))
    assert chosen.names == (*(each.name for each in MANY[:12]), "module_discover")
    assert len(chosen.left_out) == 13


def test_oa_selector_a_selection_of_thirteen_stays_below_the_budget() -> None:
    definition = agent(*(tool(f"extra_{number}", "Does much. Not for more. " * 40) for number in range(25)))
    catalog = catalog_of(definition)
    chosen = choose(Selector(top_k=13), catalog, "")
    sizes = [len(encoded(item.offered)) for item, _ in catalog if item.tool.name in chosen.names]
    assert (len(sizes), sum(sizes) < 24_000) == (13, True)


def test_oa_selector_tools_that_a_context_field_brings_are_included_whatever_is_ranked() -> None:
    names = ("computer_list", "computer_probe", "computer_agent", "module_discover", "aaa", "bbb", "ccc", "ddd")
    catalog = catalog_of(agent(*(tool(name, f"About {name}. Not for more.") for name in names)))
    selector = Selector(
        top_k=3,
        always_include=("module_discover",),
        always_with=(("paired_computer", ("computer_agent", "computer_list", "computer_probe")),),
    )
    paired = choose(selector, catalog, "hello", frozenset({"paired_computer"}))
    plain = choose(selector, catalog, "hello")
    assert {"computer_agent", "computer_list", "computer_probe", "module_discover"} <= set(paired.names)
    assert (len(paired.names), len(plain.names)) == (7, 4)


def test_oa_selector_tags_leave_only_tagged_tools_to_be_ranked() -> None:
    incident = Candidate("incident_lookup", "look up", offered=True, tags=("incident",))
    memory = Candidate("memory_remember", "remember", offered=True, tags=("memory",))
    chosen = select((memory, incident, DISCOVER), "", top_k=20, tags=("incident",), always_include=("module_discover",))
    assert chosen.names == ("incident_lookup", "module_discover")


@pytest.mark.parametrize(
    "left, right",
    [([1], [1, 2]), ([], []), ([0, 0], [1, 2]), ([math.inf], [1]), ([math.nan], [1]), ([1e308, 1e308], [1e308, 1e308])],
)
def test_oa_selector_vectors_that_cannot_be_compared_are_nothing_alike(left: list[float], right: list[float]) -> None:
    assert cosine(left, right) == 0.0


def test_equal_directions_are_wholly_alike_and_right_angles_not_at_all() -> None:
    assert cosine([1, 2], [2, 4]) == pytest.approx(1.0)
    assert cosine([1, 0], [0, 3]) == 0.0
    assert cosine([1, 0], [-1, 0]) == pytest.approx(-1.0)


def test_an_intent_brings_the_tool_that_speaks_of_it_to_the_front() -> None:
    mail = Candidate("send_mail", "send a mail to a customer", offered=True)
    chosen = select((*MANY, mail), "write the customer a mail", top_k=1)
    assert chosen.names == ("send_mail",)


def test_oa_reach_a_tool_that_would_be_refused_is_not_offered_though_it_is_always_included() -> None:
    catalog = catalog_of(agent(tool("read_file"), tool("repo_write")), {"repo_write": REFUSED})
    chosen = choose(Selector(always_include=("read_file", "repo_write")), catalog, "repo write")
    assert (chosen.names, chosen.refused) == (("read_file",), ("repo_write",))


def test_oa_catalog_a_receipt_is_no_authority() -> None:
    view = Viewpoint(
        caller(
            agent(
                tool("read_repository_file", authorities=("repository.read",)),
                tool("repo_write", authorities=("repository.write",)),
            ),
            "repository.read",
            approver=True,
        )
    )
    names = ("read_repository_file", "repo_write")
    verdicts = {name: decide(Attempt(name, call=False), view.facts(name)) for name in names}
    chosen = choose(Selector(always_include=names), catalog_of(view.caller.definition, verdicts), "")
    assert chosen.names == ("read_repository_file",)


@pytest.mark.parametrize(
    "name, absent, present",
    [
        ("account_chat", {"computer_list", "deep_work", "incident_lookup", "scv_deploy"}, {"module_discover"}),
        ("visitor_chat", {"scv_deploy", "read", "code_check"}, {"computer_list", "incident_lookup"}),
        ("work_job", {"deep_work", "memory_remember", "scv_deploy"}, {"module_discover", "computer_list"}),
    ],
)
def test_oa_reach_each_caller_of_the_open_catalog_is_offered_only_what_it_can_run(
    name: str, absent: set[str], present: set[str]
) -> None:
    subject = subject_of("open-catalog")
    one = next(each for each in subject.callers if each.name == name)
    view = Viewpoint(one)
    verdicts = {t.name: decide(Attempt(t.name, call=False), view.facts(t.name)) for t in one.definition.offered}
    catalog = catalog_of(one.definition, verdicts)
    everything = tuple(declared.tool.name for declared in subject.tools)
    chosen = choose(Selector(top_k=37, always_include=everything), catalog, "deploy a worker")
    assert absent.isdisjoint(chosen.names)
    assert present <= set(chosen.names)


def test_oa_reach_a_caller_that_nobody_owns_is_offered_nothing_that_needs_an_owner() -> None:
    subject = subject_of("open-catalog")
    nobody = attrs.evolve(subject.callers[0], name="nobody", context=())
    view = Viewpoint(nobody)
    names = [tool.name for tool in nobody.definition.offered]
    offered = {name for name in names if not isinstance(decide(Attempt(name, call=False), view.facts(name)), Denial)}
    assert offered.isdisjoint({"capture_issue", "computer_list", "deep_work", "incident_lookup", "scv_deploy"})
    assert "module_discover" in offered


def test_intrinsic_tools_are_no_candidates() -> None:
    assert [each.name for each in candidates_of(catalog_of(agent(tool("look"))))] == ["look"]


def test_a_negative_number_and_a_text_for_a_list_are_refused() -> None:
    with pytest.raises(ValueError, match="top_k is -1"):
        select(MANY, "", top_k=-1)
    with pytest.raises(TypeError, match="collection of names"):
        select(MANY, "", top_k=1, tags="incident")


CANDIDATES = st.lists(
    st.builds(
        Candidate,
        name=st.sampled_from(["read", "write", "mail", "look", "deploy", "find"]),
        text=st.text(max_size=20),
        offered=st.booleans(),
        tags=st.frozensets(st.sampled_from(["a", "b"])),
    ),
    unique_by=lambda candidate: candidate.name,
)


@given(
    CANDIDATES,
    st.text(max_size=20),
    st.integers(0, 8),
    st.frozensets(st.sampled_from(["read", "mail", "absent"])),
    st.frozensets(st.sampled_from(["a", "b"])),
)
def test_a_selection_is_never_wider_than_what_is_offered_and_always_the_same(
    candidates: list[Candidate], intent: str, top_k: int, always: frozenset[str], tags: frozenset[str]
) -> None:
    chosen = select(candidates, intent, top_k=top_k, always_include=always, tags=tags)
    offered = [each.name for each in candidates if each.offered]
    assert [name for name in offered if name in chosen.names] == list(chosen.names)
    assert always & set(offered) <= set(chosen.names)
    assert len(set(chosen.names) - always) <= top_k
    assert sorted((*chosen.names, *chosen.left_out, *chosen.refused)) == sorted(each.name for each in candidates)
    assert chosen == select(candidates, intent, top_k=top_k, always_include=always, tags=tags)
