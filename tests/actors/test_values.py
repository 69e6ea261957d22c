"""Every value the packages export is deeply frozen and hashable."""

from __future__ import annotations

import enum
import importlib
import types
import typing
from typing import Any

import attrs
import msgspec
import pytest

FROZEN = (str, int, float, bool, bytes, type(None), enum.Enum)
MODULES = (
    "actors",
    "actors.messages",
    "actors.ports",
    "orchestrator",
    "orchestrator.facts",
    "orchestrator.journal.records",
)
# Fields that hold what a value runs with, not what it says: functions, a model, a store, a clock.
LIVE = {
    ("Tool", "run"),
    ("Tool", "reconcile"),
    ("RuntimeConfig", "model"),
    ("RuntimeConfig", "store"),
    ("Observability", "clock"),
    ("Principal", "access"),
    ("Approver", "asker"),
}


def values() -> list[type]:
    found = {
        item
        for module in MODULES
        for item in vars(importlib.import_module(module)).values()
        if isinstance(item, type)
        and (attrs.has(item) or issubclass(item, msgspec.Struct))
        and item is not msgspec.Struct
    }
    return sorted(found, key=lambda item: item.__qualname__)


def is_frozen(item: type) -> bool:
    if issubclass(item, msgspec.Struct):
        return item.__struct_config__.frozen
    return item.__setattr__ is not object.__setattr__ and "__dict__" not in dir(item)


def parts(hint: Any) -> list[Any]:
    origin = typing.get_origin(hint)
    if origin is None:
        return [hint]
    inner = [part for part in typing.get_args(hint) if part is not ...]
    if origin in (typing.Union, types.UnionType, tuple, frozenset):
        return [leaf for part in inner for leaf in parts(part)]
    if origin is typing.Annotated:
        return parts(inner[0])
    return [origin]


def hints(item: type) -> dict[str, Any]:
    names = [field.name for field in attrs.fields(item)] if attrs.has(item) else list(item.__struct_fields__)  # type: ignore[attr-defined]
    named = (*MODULES, "orchestrator.journal.store")
    space = {name: value for module in named for name, value in vars(importlib.import_module(module)).items()}
    found = typing.get_type_hints(item, localns=space)
    return {name: found[name] for name in names}


@pytest.mark.requirement("I1")
@pytest.mark.parametrize("item", values(), ids=lambda item: item.__qualname__)
def test_a_value_is_frozen_all_the_way_down(item: type) -> None:
    assert is_frozen(item)
    known = set(values())
    for name, hint in hints(item).items():
        if (item.__name__, name) in LIVE:
            continue
        for leaf in parts(hint):
            plain = isinstance(leaf, type) and (issubclass(leaf, FROZEN) or leaf.__name__ == "Path")
            assert plain or leaf in known or is_frozen(leaf), f"{item.__name__}.{name} holds {leaf}"


@pytest.mark.requirement("I1")
@pytest.mark.parametrize("item", values(), ids=lambda item: item.__qualname__)
def test_a_value_hashes_by_what_it_says(item: type) -> None:
    assert item.__hash__ is not None
    assert any("__hash__" in vars(ancestor) for ancestor in item.__mro__[:-1])
