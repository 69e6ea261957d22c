"""Schemas as text: no depth, size or reference makes trouble, and what cannot be used says where."""

from __future__ import annotations

import json
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors import AgentDefinition, DefinitionError, Role, Tool, ToolSet
from actors.schema import canonical, schema_faults
from orchestrator.errors import ResolutionFailed
from orchestrator.registry import Registry, compile_schema

TREE: dict[str, Any] = {
    "$defs": {"n": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/n"}}}}},
    "$ref": "#/$defs/n",
}
CYCLE = {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}
MANY = {"type": "object", "properties": {"x": {"enum": [f"value-{n}" for n in range(20_000)]}}}


async def run(_: object, __: object) -> str:
    return "ran"


def made(name: str, schema: str) -> Tool:
    return Tool(name, "Does it.", schema, run=run)


def definition(*tools: Tool) -> AgentDefinition:
    return AgentDefinition("a", Role.BUILDER, tools=ToolSet(direct=tools))


@pytest.mark.requirement("B18")
@pytest.mark.parametrize("schema", [TREE, CYCLE, MANY], ids=["recursive", "cycle", "20 000 strings"])
def test_a_recursive_cyclic_or_huge_schema_is_taken_in_well_under_a_second(schema: dict[str, Any]) -> None:
    before = time.perf_counter()
    resolved = Registry().resolve(definition(made("odd", json.dumps(schema)), made("plain", "{}")))
    resolved.tools["odd"].validator.is_valid({"kids": [{"kids": []}], "x": "value-19999"})
    assert time.perf_counter() - before < 1
    assert {"odd", "plain"} <= set(resolved.names)


@pytest.mark.requirement("B18")
def test_a_recursive_schema_stays_usable() -> None:
    validator = compile_schema(json.dumps(TREE))
    assert validator.is_valid({"kids": [{"kids": [{}]}]})
    assert not validator.is_valid({"kids": [{"kids": [1]}]})


@pytest.mark.requirement("B18")
@pytest.mark.parametrize("opening", ['{"type":"object","properties":{"a":', '{"not":', '{"items":[', '{"$defs":{"x":'])
@pytest.mark.parametrize("depth", [65, 5000])
def test_a_schema_nested_too_deep_is_a_typed_error_naming_tool_and_place(opening: str, depth: int) -> None:
    closing = opening.count("{") * "}" if "[" not in opening else "]}"
    with pytest.raises(DefinitionError, match="nested more than 64 deep") as refused:
        made("deep", opening * depth + "{}" + closing * depth)
    assert "'deep'" in str(refused.value)


@pytest.mark.requirement("B18")
@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1:9/x"},
        {"properties": {"a": {"items": {"$ref": "file:///etc/passwd"}}}},
        {"$ref": "other.json#/x"},
    ],
)
def test_a_reference_out_of_the_document_is_refused_at_construction_with_its_place(schema: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError, match=r"refers outside itself at \$"):
        made("remote", json.dumps(schema))


@pytest.mark.requirement("B18")
@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": "http://127.0.0.1:9/x"},
        {"$dynamicRef": "http://127.0.0.1:9/x"},
        {"$id": "http://127.0.0.1:9/x", "$ref": "#/nowhere"},
        {"type": "nonsense"},
        {"properties": {"a": {"pattern": "(("}}},
    ],
)
def test_a_schema_that_cannot_be_compiled_names_tool_and_definition_and_nothing_is_registered(
    schema: dict[str, Any],
) -> None:
    registry = Registry()
    with pytest.raises(ResolutionFailed, match="tool 'bad' of 'direct': its schema cannot be used") as refused:
        registry.resolve(definition(made("good", "{}"), made("bad", json.dumps(schema))))
    assert (refused.value.definition, len(refused.value.faults), len(registry)) == ("a", 1, 0)


@pytest.mark.requirement("B18")
def test_a_schema_over_the_size_limit_is_refused_without_reading_it() -> None:
    with pytest.raises(DefinitionError, match="the limit is 1048576"):
        made("huge", json.dumps({"description": "x" * 1_048_576}))


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", '"x"', "{'a':1}"])
def test_text_that_is_no_schema_object_is_refused(text: str) -> None:
    with pytest.raises(DefinitionError, match="input_schema is not"):
        made("odd", text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["$ref", "properties", "type", "items", "x"]) | st.text(max_size=4), inner, max_size=4
        )
    ),
)


@given(JSON)
def test_faults_of_any_json_are_found_without_raising(value: Any) -> None:
    for fault in schema_faults(json.dumps(value), {"x", "y"}):
        assert fault


@given(st.text(st.characters(), max_size=60), st.frozensets(st.text(max_size=5), max_size=3))
def test_faults_of_any_text_are_found_without_raising(text: str, named: frozenset[str]) -> None:
    assert all(isinstance(fault, str) for fault in schema_faults(text, set(named)))


@pytest.mark.requirement("B78")
def test_a_half_surrogate_pair_in_a_schema_is_a_fault_and_no_crash() -> None:
    assert list(schema_faults('{"title": "\ud83d"}', set()))


@given(JSON)
def test_canonical_text_is_the_same_for_equal_values_and_reads_back(value: Any) -> None:
    text = canonical(value)
    assert canonical(msgspec.json.decode(text)) == text
    assert canonical(json.loads(json.dumps(value))) == text
