"""A tool's schema on its way to a provider: it accepts the same objects, or it is unfit and says why."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.messages import CallFinished
from orchestrator.models.function import FunctionModel, call
from orchestrator.models.wire.schema import UnfitSchema, fit_schema
from tests.core.stage import Ledger
from tests.models.asking import Asking
from tests.models.provider import FakeProvider
from tests.models.strict import tool_faults
from tests.supervision.scene import agent, scene, script

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
NODE = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/n"}}}}
B16 = {
    "type": "object",
    "$defs": {
        "Q": {
            "type": "object",
            "properties": {
                "limit": {"type": "integer", "default": 20},
                "ids": {"type": ["array", "null"], "items": {"type": "string"}},
            },
        }
    },
    "properties": {
        "q": {"$ref": "#/$defs/Q"},
        "when": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
    },
    "required": ["q"],
}
FIT: dict[str, Any] = {
    "plain": {"type": "object", "properties": {"a": NUMBER}, "required": ["a"], "additionalProperties": False},
    "nothing at all": {},
    "no type": {"properties": {"a": NUMBER}},
    "no properties": {"type": "object"},
    "object or null": {"type": ["object", "null"], "properties": {"a": NUMBER}},
    "B16": B16,
    "a reference at the top": {"$ref": "#/$defs/n", "$defs": {"n": NODE}},
    "a chain of references": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/n"}, "n": NODE}},
    "a reference with siblings": {"$ref": "#/$defs/n", "required": ["kids"], "$defs": {"n": NODE}},
    "an anchor": {"$ref": "#node", "$defs": {"n": {**NODE, "$anchor": "node"}}},
    "definitions": {"$ref": "#/definitions/n", "definitions": {"n": {"properties": {"a": NUMBER}}}},
    "a tree of itself": {"type": "object", "properties": {"a": NUMBER, "kids": {"items": {"$ref": "#"}}}},
    "a tree without a type": {"properties": {"a": NUMBER, "kids": {"items": {"$ref": "#"}}}},
    "a place in the top": {"properties": {"a": NUMBER, "b": {"$ref": "#/properties/a"}}},
    "a place in what was merged": {
        "$ref": "#/$defs/n",
        "$defs": {"n": {"properties": {"a": NUMBER, "b": {"$ref": "#/$defs/n/properties/a"}}}},
    },
    "allOf of one": {"allOf": [{"type": "object", "properties": {"a": NUMBER}, "required": ["a"]}]},
    "allOf of two": {"allOf": [{"properties": {"a": NUMBER}, "required": ["a"]}, {"required": ["b"]}]},
    "allOf about one property": {"properties": {"a": NUMBER}, "allOf": [{"properties": {"a": {"minimum": 3}}}]},
    "allOf with places": {
        "allOf": [{"properties": {"a": NUMBER}}, {"properties": {"b": {"$ref": "#/allOf/0/properties/a"}}}]
    },
    "anyOf with null": {"anyOf": [{"type": "object", "properties": {"a": NUMBER}}, {"type": "null"}]},
    "oneOf with text": {"oneOf": [{"$ref": "#/$defs/n"}, TEXT], "$defs": {"n": NODE}},
    "a property named like a keyword": {
        "properties": {"$ref": TEXT, "enum": NUMBER, "properties": {"type": "object"}, "not": {"type": "null"}}
    },
    "a value that looks like a reference": {
        "properties": {"a": {"const": {"$ref": "#/nowhere"}}, "b": {"enum": [{"$ref": "#"}, 1]}}
    },
    "noise": {"$schema": "http://json-schema.org/draft-07/schema#", "$id": "https://x/y", "properties": {"a": NUMBER}},
    "draft 7 tuple": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"type": "array", "items": [NUMBER, TEXT], "additionalItems": False}},
    },
    "draft 7 ignores siblings": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$ref": "#/definitions/n",
        "required": ["a"],
        "definitions": {"n": {"properties": {"a": NUMBER}}},
    },
    "draft 4 bounds": {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"a": {"type": "integer", "minimum": 0, "exclusiveMinimum": True}},
    },
    "conditions": {"properties": {"a": NUMBER}, "if": {"required": ["a"]}, "then": {"required": ["b"]}},
    "deep": {"properties": {"a": {"anyOf": [NUMBER, {"properties": {"b": {"not": TEXT}}}]}}},
}
UNFIT: dict[str, tuple[Any, str]] = {
    "a text": (TEXT, "it takes 'string'"),
    "anyOf of two objects": ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, "'anyOf'"),
    "oneOf of two objects": ({"oneOf": [{"type": "object"}, {"type": "object"}]}, "'oneOf'"),
    "anyOf of no object": ({"anyOf": [TEXT, {"type": "null"}]}, "no object fits any branch"),
    "enum": ({"enum": [{"a": 1}, {"a": 2}]}, "'enum'"),
    "const": ({"const": {"a": 1}}, "'const'"),
    "not": ({"not": {"required": ["a"]}}, "'not'"),
    "nothing fits": ({"allOf": [False]}, "nothing fits it"),
    "text and object": ({"type": "object", "allOf": [TEXT]}, "no object fits every part"),
    "closed to each other": (
        {"allOf": [{"properties": {"a": NUMBER}, "additionalProperties": False}, {"properties": {"b": NUMBER}}]},
        "close it to each other's properties",
    ),
    "two bounds": ({"minProperties": 1, "allOf": [{"minProperties": 2}]}, "differ in 'minProperties'"),
    "itself": ({"$ref": "#"}, "refers to itself without end"),
    "a circle": (
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        "without end",
    ),
    "a hole": ({"properties": {"a": {"$ref": "#/$defs/gone"}}}, "'#/$defs/gone', which it does not hold"),
    "the net": ({"properties": {"a": {"$ref": "http://127.0.0.1/x"}}}, "refers outside itself"),
    "a condition from elsewhere": (
        {"allOf": [{"if": {"required": ["a"]}}, {"then": {"required": ["b"]}}]},
        "conditions",
    ),
}
VALUES = st.recursive(
    st.sampled_from([None, True, 0, 1, 5, "x", ""]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b", "kids"]), inner, max_size=2),
    max_leaves=4,
)
OBJECTS = st.dictionaries(st.sampled_from(["a", "b", "q", "kids", "$ref", "enum", "not"]), VALUES, max_size=3)


def accepts(schema: Any, value: Any) -> bool:
    """Tell whether *schema* fits *value*."""
    return jsonschema_rs.validator_for(schema, validate_formats=True, offline=True).is_valid(value)


@pytest.mark.parametrize("schema", FIT.values(), ids=FIT)
@settings(max_examples=30)
@given(value=OBJECTS)
def test_what_a_provider_is_sent_accepts_the_same_objects(schema: Any, value: dict[str, Any]) -> None:
    fitted = json.loads(fit_schema(json.dumps(schema)))
    assert accepts(fitted, value) == accepts(schema, value)


@pytest.mark.parametrize("schema", FIT.values(), ids=FIT)
def test_what_a_provider_is_sent_is_what_a_strict_one_takes_and_fits_itself(schema: Any) -> None:
    fitted = fit_schema(json.dumps(schema))
    function = {"name": "x", "description": "", "parameters": json.loads(fitted)}
    assert list(tool_faults([{"type": "function", "function": function}], offered=True)) == []
    assert fit_schema(fitted) == fitted


@pytest.mark.parametrize("schema, reason", UNFIT.values(), ids=UNFIT)
def test_a_schema_that_no_provider_takes_is_unfit_for_a_reason(schema: Any, reason: str) -> None:
    with pytest.raises(UnfitSchema) as caught:
        fit_schema(json.dumps(schema))
    assert reason in caught.value.reason


@pytest.mark.requirement("B16")
async def test_definitions_and_combinators_reach_the_model_and_discovery_shows_the_schema_unchanged() -> None:
    find = Ledger().tool("find", schema=json.dumps(B16))
    brain = FunctionModel({}, default=script(call("get_api_spec", tool_name="find"), "done"))
    with FakeProvider(brain) as there:
        async with Asking(there.base_url) as it, scene(agent("worker", find), it.model) as at:
            await at.session.run("What is find?")
            (spec,) = [record.result.text for record in await at.records(CallFinished)]
    (sent,) = [tool for tool in there.bodies[0]["tools"] if tool["function"]["name"] == "find"]
    fitted = sent["function"]["parameters"]
    assert accepts(fitted, {"q": {"limit": 5}})
    assert not accepts(fitted, {"q": 7})
    assert fitted["properties"] == B16["properties"]
    assert json.loads(spec)[0]["input_schema"] == B16


@pytest.mark.requirement("B18")
@pytest.mark.parametrize(
    "text",
    ['{"properties":{"a":' * 5000 + "{}" + "}}" * 5000, json.dumps({"enum": ["x"] * 20_000}), "[1", "[]", '"x"'],
    ids=["deep", "huge", "broken", "list", "text"],
)
def test_an_impossible_schema_is_unfit_and_overflows_nothing(text: str) -> None:
    with pytest.raises(UnfitSchema):
        fit_schema(text)
