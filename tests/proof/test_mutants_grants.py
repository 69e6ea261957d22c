"""Grants where the general properties could miss a fault: one line each way, and each dimension alone."""

from __future__ import annotations

import pytest

from actors.grants import Access, Budget, Grants, at_most, attenuate, covers, lend, normal_root

WIDE = Grants(("a.*", "b.c"), Access.WRITE, ("src", "docs/x"))


def test_the_words_of_access_are_those_on_record() -> None:
    assert [(access.value, access.level) for access in Access] == [("read", 0), ("write", 1), ("external", 2)]


@pytest.mark.parametrize("root, normal", [(".", "."), ("./", "."), ("./src//a/.", "src/a")])
def test_a_root_has_one_spelling(root: str, normal: str) -> None:
    assert normal_root(root) == normal


def test_what_both_hold_is_kept_whichever_side_has_the_narrower_form() -> None:
    other = Grants(("a.x", "b.*", "d.e"), Access.EXTERNAL, ("src/in", "docs", "other"))
    met = attenuate(WIDE, other)
    assert met.authorities == {"a.x", "b.c"}
    assert met.roots == {"src/in", "docs/x"}
    assert met.access is Access.WRITE
    assert attenuate(other, WIDE) == met


@pytest.mark.parametrize(
    "inner, fits",
    [
        (WIDE, True),
        (Grants(("a.b",), Access.READ, ("src/deep",)), True),
        (Grants(("b.d",), Access.READ), False),
        (Grants((), Access.EXTERNAL), False),
        (Grants((), Access.READ, ("docs",)), False),
        (Grants(("b.d",), Access.READ, ("src",)), False),
        (Grants(("a.b",), Access.EXTERNAL, ("src",)), False),
    ],
)
def test_wider_in_one_dimension_is_wider(inner: Grants, fits: bool) -> None:  # noqa: FBT001  # a parameter of the table
    assert at_most(inner, WIDE) is fits


def test_a_namespace_is_covered_by_itself_and_by_what_stands_above_it_only() -> None:
    held = frozenset({"a.*", "b.c.*"})
    covered = {
        name: covers(held, name) for name in ("a.*", "a.b", "a.b.*", "a.b.c", "b.c.*", "b.c.d", "b.*", "b.c", "c")
    }
    assert {name for name, is_covered in covered.items() if not is_covered} == {"b.*", "b.c", "c"}


def test_what_is_lent_adds_to_each_dimension_but_the_budget() -> None:
    base = Grants(("a.b",), Access.READ, ("src",), Budget(calls=3))
    assert lend(base, Grants(("c.d",), Access.WRITE, ("docs",), Budget(calls=9))) == Grants(
        ("a.b", "c.d"), Access.WRITE, ("src", "docs"), Budget(calls=3)
    )
    assert lend(WIDE, base).access is Access.WRITE


@pytest.mark.parametrize("figure", ["calls", "tokens", "money", "seconds"])
def test_the_smaller_of_two_figures_counts_and_no_figure_is_no_limit(figure: str) -> None:
    small, large = Grants(budget=Budget(**{figure: 1})), Grants(budget=Budget(**{figure: 2}))
    assert attenuate(small, large).budget == small.budget
    assert attenuate(large, Grants()).budget == large.budget
    assert attenuate(Grants(), large).budget == large.budget
    for value in (0, None):
        assert getattr(Budget(**{figure: value}), figure) == value
    with pytest.raises(ValueError, match=f"Budget.{figure} is -1"):
        Budget(**{figure: -1})
