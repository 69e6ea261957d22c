"""A tool made of a function: schema from the hints, text from the docstring, every fault at once."""

# Hints are read at run time here, so this file keeps them as values.
import enum
import json
from typing import Annotated, Any, Literal

import msgspec
import pytest

from actors import Access, DefinitionError, Tool, ToolContext, tool
from actors.grants import Grants
from actors.tools import Approval, allowed_by


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Opaque:
    """A type that has no place in JSON."""


@tool(access=Access.WRITE, authorities=("workspace.write",), targets=("path",))
async def put(ctx: ToolContext, path: str, text: str = "", colours: list[Colour] | None = None) -> str:
    """Replace a file.

    Not for directories.

    Args:
        path: Where to.
        text: What.
        colours: In which colours.

    """
    return f"{ctx.call_id}:{path}:{text}:{colours}"


def test_the_schema_is_made_from_hints_and_docstring_and_leaves_the_context_out() -> None:
    schema = json.loads(put.input_schema)
    assert set(schema["properties"]) == {"path", "text", "colours"}
    assert schema["required"] == ["path"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["path"]["description"] == "Where to."
    assert put.description == "Replace a file.\n\nNot for directories."


async def test_the_function_gets_its_context_and_values_of_its_types() -> None:
    class Context:
        call_id = "c1"

    assert put.run is not None
    assert await put.run(Context(), {"path": "a", "colours": ["red"]}) == "c1:a::[<Colour.RED: 'red'>]"  # type: ignore[arg-type]


async def test_a_default_that_is_a_list_is_not_shared_between_calls() -> None:
    @tool
    async def gather(item: str, into: list[str] = ["x"]) -> list[str]:  # noqa: B006  # the case itself
        """Gather."""
        into.append(item)
        return into

    schema = json.loads(gather.input_schema)
    assert schema["required"] == ["item"]


def test_annotated_and_literal_hints_reach_the_schema() -> None:
    @tool
    async def pick(kind: Literal["a", "b"], n: Annotated[int, msgspec.Meta(ge=1)] = 1) -> str:
        """Pick."""
        return f"{kind}{n}"

    properties = json.loads(pick.input_schema)["properties"]
    assert properties["kind"] == {"enum": ["a", "b"]}
    assert properties["n"]["minimum"] == 1


def test_every_fault_of_a_function_is_listed_at_once() -> None:
    def sync(a, /, *rest: int, **more: int) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001, ARG001
        """Do."""
        return ""

    with pytest.raises(DefinitionError) as refused:
        tool(sync)  # type: ignore[arg-type]
    assert len(refused.value.faults) == 4


def test_a_hint_that_names_nothing_is_a_fault_that_says_so() -> None:
    async def odd(x: "Nowhere") -> str:  # type: ignore[name-defined]  # noqa: F821
        """Do."""
        return str(x)

    with pytest.raises(DefinitionError, match="cannot be resolved"):
        tool(odd)


def test_a_parameter_of_a_type_without_json_is_a_definition_error_naming_the_tool() -> None:
    async def odd(x: Opaque) -> str:
        """Do."""
        return str(x)

    with pytest.raises(DefinitionError, match="odd"):
        tool(odd)


@pytest.mark.parametrize("name", ["a b", "", "x" * 129, "naïve", "a/b", "a:b", "a\n"])
def test_a_name_outside_the_plain_characters_is_refused(name: str) -> None:
    with pytest.raises(DefinitionError, match="is not 1 to 128 of"):
        Tool(name, "Does it.")


@pytest.mark.parametrize("name", ["a", "A.b_c-d", "3d.plot", "x" * 128])
def test_a_plain_name_is_taken_as_it_is(name: str) -> None:
    async def do(n: int) -> str:
        """Do."""
        return str(n)

    assert tool(name=name)(do).name == name


def test_every_fault_of_a_declaration_is_listed_at_once() -> None:
    with pytest.raises(DefinitionError) as refused:
        Tool("a b", " ", "[]", authorities=("Bad",), timeout_s=float("nan"), output_limit_bytes=0)
    assert len(refused.value.faults) == 6


def test_arguments_named_elsewhere_must_be_declared() -> None:
    with pytest.raises(DefinitionError) as refused:
        Tool("a", "Does it.", targets=("path",), effect_key=("key",), idempotency_key="once")
    assert [fault.split()[1] for fault in refused.value.faults] == ["'key'", "'once'", "'path'"]


def test_equal_declarations_are_equal_tools_whatever_their_functions() -> None:
    async def other(_: Any, __: Any) -> str:
        return "other"

    one, two = Tool("a", "Does it."), Tool("a", "Does it.", run=other)
    assert (one, hash(one), one.declaration()) == (two, hash(two), two.declaration())
    assert one != Tool("a", "Does it.", access=Access.WRITE)


@pytest.mark.parametrize(
    "change",
    [
        {"description": "Else."},
        {"input_schema": "{}"},
        {"access": Access.WRITE},
        {"authorities": ("a.b",)},
        {"needs": ("workspace",)},
        {"timeout_s": None},
        {"parallel_safe": True},
        {"effect_key": ()},
        {"approval": Approval.EACH_CALL},
        {"output_limit_bytes": 1024},
        {"version": "2"},
        {"source": "elsewhere"},
    ],
)
def test_whatever_is_declared_takes_part_in_the_declaration(change: dict[str, Any]) -> None:
    fields: dict[str, Any] = {"name": "a", "description": "Does it."}
    assert Tool(**{**fields, **change}).declaration() != Tool(**fields).declaration()


def test_a_tool_is_allowed_by_grants_that_hold_its_authorities_and_access() -> None:
    assert allowed_by(put, Grants(("workspace.*",), Access.WRITE))
    assert not allowed_by(put, Grants(("workspace.*",), Access.READ))
    assert not allowed_by(put, Grants(("workspace.read",), Access.WRITE))


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_time_limit_is_seconds_above_zero_and_no_number_stands_for_none(seconds: float) -> None:
    with pytest.raises(DefinitionError, match="give seconds above 0, or None for no limit"):
        Tool("t", "Does it.", timeout_s=seconds)


def test_a_tool_without_a_time_limit_of_its_own_has_the_usual_one_and_none_means_none() -> None:
    assert Tool("t", "Does it.").timeout_s == 60.0
    assert Tool("t", "Does it.", timeout_s=None).timeout_s is None
