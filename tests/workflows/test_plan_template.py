"""Prompts are filled in once, and outputs are asked for what a path leads to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.validators import value_faults
from orchestrator.workflows.schema import Finding, find
from orchestrator.workflows.template import ReferenceMissing, render, select

OUTPUTS: dict[str, object] = {"plan": {"files": [{"path": "ä"}, {"path": "b"}], "n": 1}, "text": "plain {item}"}


@pytest.mark.parametrize(
    "template, expected",
    [
        ("", ""),
        ("no places", "no places"),
        ("{item}", '{"a": "x"}'),
        ("{item.a}!", "x!"),
        ("{steps.text}", "plain {item}"),
        ("{steps.plan.files}", '[{"path": "ä"}, {"path": "b"}]'),
        ("{steps.plan.files.1.path}", "b"),
        ("{steps.plan.n}", "1"),
        ("{{item}} {{{item.a}}} }}{{", "{item} {x} }{"),
    ],
)
def test_places_are_filled_in_and_double_braces_are_braces(template: str, expected: str) -> None:
    assert render(template, {"a": "x"}, OUTPUTS) == expected


@given(st.text(), st.text())
def test_what_is_filled_in_is_never_read_again(item: str, around: str) -> None:
    literal = around.replace("{", "{{").replace("}", "}}")
    assert render(f"{literal}{{item}}", item, {}) == around + item


@pytest.mark.parametrize(
    "template, fault",
    [
        ("{steps.nope}", "step 'nope' has no output"),
        ("{steps.plan.nope}", "the value has no 'nope'"),
        ("{steps.plan.files.2}", "files has no '2'"),
        ("{steps.plan.files.-1}", "files has no '-1'"),
        ("{steps.plan.n.x}", "n has no 'x'"),
        ("{item.b}", "the value has no 'b'"),
        ("{oops}", "no place that can be filled in"),
    ],
)
def test_a_place_without_a_value_is_refused_by_name(template: str, fault: str) -> None:
    with pytest.raises(ReferenceMissing) as refused:
        render(template, {"a": "x"}, OUTPUTS)
    assert refused.value.reference == template
    assert fault in refused.value.fault
    assert str(refused.value) == f"{template} cannot be filled in: {refused.value.fault}"


def test_a_path_leads_through_objects_and_arrays() -> None:
    assert select({"a": [{"b": None}]}, ("a", "0", "b")) is None
    assert select(5, ()) == 5
    with pytest.raises(LookupError):
        select("text", ("0",))


@pytest.mark.parametrize(
    "schema, path, found",
    [
        ({"type": "object"}, ("a",), Finding.ANYTHING),
        ({}, ("a", "b"), Finding.ANYTHING),
        ({"properties": {"a": {}}}, ("b",), Finding.NOWHERE),
        ({"properties": {"a": {}}, "anyOf": []}, ("b",), Finding.ANYTHING),
        ({"properties": {"a": {}}, "additionalProperties": {}}, ("b",), Finding.ANYTHING),
        ({"properties": {"a": {}}, "additionalProperties": False}, ("b",), Finding.NOWHERE),
        ({"additionalProperties": False}, ("b",), Finding.NOWHERE),
        ({"properties": {"a": False}}, ("a",), Finding.NOWHERE),
        ({"properties": {"a": True}}, ("a",), Finding.ANYTHING),
        ({"type": "array", "items": {"type": "string"}}, ("7",), {"type": "string"}),
        ({"type": "array"}, ("7",), Finding.ANYTHING),
        ({"type": "array"}, ("a",), Finding.NOWHERE),
        ({"type": "string"}, ("a",), Finding.NOWHERE),
        ({"type": ["object", "null"]}, ("a",), Finding.ANYTHING),
        ({"$ref": "other.json"}, ("a",), Finding.ANYTHING),
    ],
)
def test_a_schema_says_what_a_path_leads_to(schema: dict[str, object], path: tuple[str, ...], found: object) -> None:
    assert find(schema, path) == found


def test_an_output_is_held_against_its_schema() -> None:
    schema = '{"properties":{"n":{"type":"integer"}},"required":["m"],"type":"object"}'
    assert value_faults(schema, {"n": 1, "m": 2}) == ()
    assert sorted(value_faults(schema, {"n": "x"})) == [
        'n: "x" is not of type "integer"',
        'the output: "m" is a required property',
    ]
