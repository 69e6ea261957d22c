"""Authority only narrows: `attenuate` is a greatest lower bound, and nothing wide hides in a spelling."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.grants import UNLIMITED, Access, Budget, Grants, at_most, attenuate, covers, lend, normal_root, root_covers

WORDS = st.sampled_from(["a", "b", "c"])
AUTHORITIES = st.builds(
    lambda parts, star: (
        f"{parts[0]}.*" if star and len(parts) == 1 else ".".join((*parts, "x")) + (".*" if star else "")
    ),
    st.lists(WORDS, min_size=1, max_size=3),
    st.booleans(),
)
ROOTS = st.lists(WORDS, max_size=3).map("/".join).map(lambda root: root or ".")
FIGURES = st.none() | st.integers(0, 9)
BUDGETS = st.builds(
    Budget, calls=FIGURES, tokens=FIGURES, money=st.none() | st.floats(0, 9), seconds=st.none() | st.floats(0, 9)
)
GRANTS = st.builds(
    Grants, st.frozensets(AUTHORITIES, max_size=4), st.sampled_from(Access), st.frozensets(ROOTS, max_size=4), BUDGETS
)
NEEDED = AUTHORITIES.filter(lambda name: not name.endswith("*"))


def within(inner: float | None, outer: float | None) -> bool:
    return outer is None or (inner is not None and inner <= outer)


@pytest.mark.requirement("I6")
@given(GRANTS, GRANTS, NEEDED, ROOTS)
def test_what_two_grants_allow_together_each_of_them_allows(left: Grants, right: Grants, name: str, path: str) -> None:
    met = attenuate(left, right)
    assert covers(met.authorities, name) == (covers(left.authorities, name) and covers(right.authorities, name))
    assert met.access.level == min(left.access.level, right.access.level)
    under = [any(root_covers(root, path) for root in grants.roots) for grants in (met, left, right)]
    assert under[0] == (under[1] and under[2])
    for figure in ("calls", "tokens", "money", "seconds"):
        for outer in (left, right):
            assert within(getattr(met.budget, figure), getattr(outer.budget, figure))
    assert at_most(met, left)
    assert at_most(met, right)


@given(GRANTS, GRANTS)
def test_the_order_of_narrowing_makes_no_difference(left: Grants, right: Grants) -> None:
    assert attenuate(left, right) == attenuate(right, left)


@given(GRANTS, GRANTS, GRANTS)
def test_narrowing_in_steps_is_narrowing_at_once(one: Grants, two: Grants, three: Grants) -> None:
    assert attenuate(attenuate(one, two), three) == attenuate(one, attenuate(two, three))


@given(GRANTS, GRANTS)
def test_narrowing_a_second_time_changes_nothing(left: Grants, right: Grants) -> None:
    met = attenuate(left, right)
    assert attenuate(met, right) == met
    assert attenuate(left, left) == left


@given(GRANTS, GRANTS, GRANTS)
def test_narrowing_is_monotone(left: Grants, right: Grants, outer: Grants) -> None:
    smaller = attenuate(left, right)
    assert at_most(attenuate(smaller, outer), attenuate(left, outer))


@given(GRANTS, GRANTS)
def test_lending_adds_what_it_is_told_and_never_budget(base: Grants, extra: Grants) -> None:
    lent = lend(base, extra)
    assert at_most(base, lent)
    assert at_most(extra, lent)
    assert lent.budget == base.budget
    assert lent.authorities == base.authorities | extra.authorities
    assert lent.roots == base.roots | extra.roots


@pytest.mark.parametrize(
    "held,needed,covered",
    [
        ("workflow.*", "workflow.run", True),
        ("workflow.*", "workflow.run.now", True),
        ("workflow.*", "workflows.run", False),
        ("workflow.run", "workflow.run.now", False),
        ("workflow.run.*", "workflow.run", False),
        ("workflow.run", "workflow.*", False),
        ("workflow.*", "workflow.run.*", True),
    ],
)
def test_a_namespace_covers_what_lies_in_it_and_nothing_that_only_looks_alike(
    held: str, needed: str, *, covered: bool
) -> None:
    assert covers(frozenset({held}), needed) is covered


def test_a_root_covers_what_lies_beneath_it_and_no_neighbour_of_a_longer_name() -> None:
    assert root_covers("src", "src/app.py")
    assert root_covers("src", "src")
    assert root_covers(".", "src/app.py")
    assert not root_covers("src", "srcs/app.py")
    assert not root_covers("src/app", "src")


@pytest.mark.parametrize("root", ["/etc", "../x", "a/../../b", "a\\b", "a\0b", " a", "a ", ""])
def test_a_root_that_leaves_the_workspace_is_refused(root: str) -> None:
    with pytest.raises(ValueError, match="root"):
        Grants(roots=(root,))


def test_a_root_is_kept_in_normal_form() -> None:
    assert normal_root("./src//app/") == "src/app"
    assert Grants(roots=("./src/",)) == Grants(roots=("src",))


@pytest.mark.parametrize(
    "name", ["*", "workflow", "Workflow.run", "workflow.", ".run", "workflow.*.x", "a b.c", "*.run"]
)
def test_an_authority_that_is_not_namespace_dot_verb_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="namespace"):
        Grants(authorities=(name,))


def test_a_bare_string_is_not_taken_for_a_collection_of_letters() -> None:
    with pytest.raises(TypeError, match="give a collection"):
        Grants(authorities="workflow.run")
    with pytest.raises(TypeError, match="give a collection"):
        Grants(roots="src")


def test_the_default_grants_only_reading() -> None:
    assert Grants() == Grants(frozenset(), Access.READ, frozenset(), UNLIMITED)


@pytest.mark.parametrize("figure", ["calls", "tokens", "money", "seconds"])
@pytest.mark.parametrize("value", [-1, float("nan")])
def test_a_budget_below_nothing_is_refused(figure: str, value: float) -> None:
    with pytest.raises(ValueError, match=figure):
        Budget(**{figure: value})  # type: ignore[arg-type]
