"""Files, functions, classes and constructors stay small; what is beyond a limit is written down exactly."""

from __future__ import annotations

import ast

import pytest

from tests.contracts.ratchets import LIMITS, broad_excepts, definitions, fields, measure, methods, recorded, render
from tests.contracts.ratchets import RECORD as RATCHETS

MAX_PLACES_THAT_CATCH_EVERYTHING = 3  # the guard, the bridge, the event fan-out


@pytest.mark.parametrize("ratchet", LIMITS)
def test_what_is_beyond_a_limit_is_exactly_what_is_recorded(ratchet: str) -> None:
    assert measure()[ratchet] == recorded()[ratchet], "if a number fell: python -m tests.contracts.ratchets --write"


def test_everything_is_caught_in_three_places_at_most() -> None:
    places = {spot.split("::")[0] for spot in measure()["broad_excepts"]}
    assert len(places) <= MAX_PLACES_THAT_CATCH_EVERYTHING, places


def test_the_recorded_file_is_what_the_command_would_write() -> None:
    assert RATCHETS.read_text(encoding="utf-8") == render(recorded())


def test_a_handler_that_raises_again_is_no_broad_one_and_inner_functions_count_for_themselves() -> None:
    tree = ast.parse(
        "def outer():\n"
        "    try: pass\n"
        "    except ValueError: pass\n"
        "    except BaseException: raise\n"
        "    def inner():\n"
        "        try: pass\n"
        "        except (OSError, Exception): pass\n"
        "        try: pass\n"
        "        except: pass\n"
    )
    counts = {name: broad_excepts(node) for name, node in definitions(tree)}
    assert counts == {"outer": 0, "outer.inner": 2}


def test_fields_and_methods_are_counted_as_a_caller_meets_them() -> None:
    tree = ast.parse(
        "@attrs.frozen(slots=True)\n"
        "class A:\n"
        "    a: int\n"
        "    b: int = attrs.field(init=False)\n"
        "    c: ClassVar[int] = 1\n"
        "    def __hash__(self): ...\n"
        "    @overload\n"
        "    def f(self): ...\n"
        "    def f(self): ...\n"
        "class B(msgspec.Struct, frozen=True):\n"
        "    a: int\n"
        "class C:\n"
        "    a: int\n"
    )
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    assert [(fields(owner), methods(owner)) for owner in classes] == [(1, 1), (1, 0), (0, 0)]
