"""Names at an edge: legal, unique, stable, reversible."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.naming import CANONICAL, PROVIDER, EdgeNames

if TYPE_CHECKING:
    import random

ANY_NAME = st.text(st.characters(), min_size=1, max_size=140)


@given(st.sets(ANY_NAME, max_size=12), st.randoms(use_true_random=False))
def test_edge_names_are_legal_unique_stable_and_map_back_exactly(names: set[str], order: random.Random) -> None:
    shuffled = list(names)
    order.shuffle(shuffled)
    edge, again = EdgeNames(names, PROVIDER), EdgeNames(shuffled, PROVIDER)
    there = [edge.there(name) for name in names]
    assert all(PROVIDER.legal(each) for each in there)
    assert len(set(there)) == len(names)
    assert [edge.back(each) for each in there] == list(names)
    assert [again.there(name) for name in names] == there


@pytest.mark.parametrize("name", ["github__search", "n" * 64, "0", "-_-"])
def test_a_legal_name_stays_what_it_is(name: str) -> None:
    assert PROVIDER.name(name) == name


@pytest.mark.parametrize("name, begin", [("a.b", "a_b_"), ("n" * 65, "n" * 55 + "_"), ("å", "n"), ("", "n")])
def test_any_other_name_keeps_what_is_legal_of_it_and_gets_a_digest(name: str, begin: str) -> None:
    there = PROVIDER.name(name)
    assert there.startswith(begin)
    assert len(there) == min(64, len(begin) + 8)


def test_names_of_64_letters_that_differ_behind_the_limit_stay_apart() -> None:
    long = ["n" * 64 + "a", "n" * 64 + "b", "n" * 64]
    edge = EdgeNames(long, PROVIDER)
    assert len({edge.there(name) for name in long}) == 3


def test_a_generated_name_gives_way_to_a_name_that_is_legal_already() -> None:
    taken = PROVIDER.name("a.b")
    edge = EdgeNames(["a.b", taken], PROVIDER)
    assert edge.there(taken) == taken
    assert edge.there("a.b") != taken
    assert edge.back(edge.there("a.b")) == "a.b"
    assert edge.back("unheard") is None


def test_a_canonical_name_takes_the_dots_that_a_provider_does_not() -> None:
    assert CANONICAL.legal("repo.search")
    assert not PROVIDER.legal("repo.search")
