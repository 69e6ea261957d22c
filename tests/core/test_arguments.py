"""A call's arguments: decoded once, never repaired, and a fault says where without echoing everything."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors import Access, Role, Skill, Tool
from actors.messages import Outcome, ReplyStop
from orchestrator.arguments import canonical_arguments, effect_key, parse
from orchestrator.journal.records import Noted
from orchestrator.registry import compile_schema
from orchestrator.testing import call
from orchestrator.workspace.toolset import WORKSPACE_TOOLS
from tests.core.stage import Ledger, agent, calls, raw, results, staged, written

if TYPE_CHECKING:
    from pathlib import Path

ANY = compile_schema('{"type":"object"}')
PUT = compile_schema(
    '{"type":"object","required":["path"],"additionalProperties":false,'
    '"properties":{"path":{"type":"string"},"n":{"type":"integer","maximum":5},"list":{"type":"array","items":{"type":"string"}}}}'
)
KEYED = compile_schema('{"type":"object","additionalProperties":{"type":"integer"}}')
BROKEN = [
    '{"path": "a.txt", "text": "x',
    '{"a":1,}',
    "{a:1}",
    '{"{"a":1}',
    '{"a":1}{"a":1}',
    '{"a":1} thanks',
    "NaN",
    '{"a":"\\x00"}',
    '{"a":NaN}',
    '{"a":Infinity}',
    '{"a":1e999}',
    "",
    " ",
    "null",
    "[]",
    "3",
    '"{}"',
    '{"a":"\\ud83d"}',
    '{"a":"\ud83d"}',
    '{"a":"\0"}',
    "{'a':1}",
    "{}}",
    "{} {}",
    "\ufeff{}",
    "[" * 100_000,
    '{"a":' * 100_000,
    '{"a":' + "9" * 10_000 + "}",
    "x" * 100_000,
]


@pytest.mark.requirement("B20", "B78")
@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_broken_arguments_are_a_fault_with_a_place_and_a_bounded_echo(text: str) -> None:
    value, fault = parse(text, ANY)
    assert value is None
    assert fault is not None
    assert fault.path.startswith(("$", "character "))
    assert len(fault.path) + len(fault.expected) + len(fault.got) <= 1000
    assert f"{fault.path}{fault.expected}{fault.got}".encode()


@pytest.mark.requirement("B20")
@pytest.mark.parametrize("text,place", [('{"a":1 "b":2}', "7"), ("{a:1}", "1"), ('{"a":1} thanks', "8")])
def test_a_syntax_fault_tells_the_position(text: str, place: str) -> None:
    _, fault = parse(text, ANY)
    assert fault is not None
    assert place in f"{fault.path} {fault.expected} {fault.got}"


@pytest.mark.parametrize(
    "text,path,expected",
    [
        ("{}", "$", "the property 'path'"),
        ('{"path":3}', "$.path", "type string"),
        ('{"path":"a","n":9}', "$.n", "5"),
        ('{"path":"a","list":["a",1]}', "$.list[1]", "type string"),
        ('{"path":"a","x":1}', "$", "only declared properties"),
    ],
)
def test_arguments_against_the_schema_are_a_fault_at_their_place(text: str, path: str, expected: str) -> None:
    _, fault = parse(text, PUT)
    assert fault is not None
    assert fault.path == path
    assert expected in fault.expected


@pytest.mark.requirement("B20")
@pytest.mark.parametrize(
    "text", [json.dumps({"k" * 50_000: "x"}), json.dumps({"path": "y" * 50_000, "n": "z" * 50_000})]
)
@pytest.mark.parametrize("validator", [PUT, KEYED], ids=["declared", "keyed"])
def test_a_fault_in_a_huge_argument_does_not_echo_it(text: str, validator: Any) -> None:
    _, fault = parse(text, validator)
    assert fault is not None
    assert len(fault.path) + len(fault.expected) + len(fault.got) <= 1000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.text(st.characters(), max_size=40) | JSON.map(json.dumps))
def test_any_text_is_decoded_or_a_fault_and_never_an_error(text: str) -> None:
    for validator in (ANY, PUT, KEYED):
        value, fault = parse(text, validator)
        assert (value is None) is (fault is not None)


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=4))
def test_what_is_decoded_is_what_was_sent(value: dict[str, Any]) -> None:
    decoded, _ = parse(json.dumps(value), ANY)
    assert decoded == value
    assert canonical_arguments(value) == canonical_arguments(dict(reversed(list(value.items()))))


@pytest.mark.parametrize("depth", [100, 500, 900, 2000])
def test_deep_arguments_are_decoded_or_a_fault_all_the_way_through(depth: int) -> None:
    value, fault = parse('{"a":' + "[" * depth + "]" * depth + "}", ANY)
    assert (value is None) is (fault is not None)
    if value is not None:
        assert canonical_arguments(value)


def test_an_effect_is_the_tool_with_all_arguments_or_with_those_it_names() -> None:
    schema = '{"type":"object","properties":{"to":{},"text":{}}}'
    whole, named = Tool("mail", "Sends.", schema), Tool("mail", "Sends.", schema, effect_key=("to",))
    one, two = {"to": "a", "text": "x"}, {"text": "y", "to": "a"}
    assert effect_key(whole, one) != effect_key(whole, two)
    assert effect_key(named, one) == effect_key(named, two)
    assert effect_key(named, one) != effect_key(named, {"to": "b"})
    assert effect_key(whole, one) == effect_key(whole, dict(reversed(list(one.items()))))
    assert len(effect_key(whole, {"to": "x" * 10_000})) < 300
    assert effect_key(whole, {"to": "x" * 10_000}) != effect_key(whole, {"to": "x" * 10_001})


# In a session


@pytest.mark.requirement("B20", "I7")
async def test_broken_arguments_run_nothing_others_of_the_batch_run_and_a_corrected_call_succeeds() -> None:
    ledger = Ledger()
    definition = agent(ledger.tool("delete_all", Access.WRITE), ledger.tool("look"))
    broken = [raw("delete_all", text, f"c{n}") for n, text in enumerate(BROKEN[:8])]
    runner, model = staged(definition, calls(*broken, call("look", call_id="ok")), call("delete_all", a=1), "done")
    async with asyncio.timeout(5), runner, runner.start() as session:
        await session.run("go")
    answered = results(model.requests[1])
    assert [result.call_id for result in answered] == [*(f"c{n}" for n in range(8)), "ok"]
    for result in answered[:8]:
        assert result.denial is not None
        assert (result.outcome, result.denial.code) == (Outcome.DENIED, "invalid_arguments")
        assert len(result.text) <= 1000
    assert answered[8].outcome is Outcome.OK
    assert ledger.lines == ["look", "delete_all a=1"]


@pytest.mark.requirement("B22")
async def test_no_cut_call_changes_anything_each_is_told_why_and_subscribers_see_it() -> None:
    ledger = Ledger()
    put = ledger.tool("write_file", Access.WRITE)
    runner, model = staged(
        agent(put),
        calls(raw("write_file", '{"path":"a.md","text":"# Part 1', "c1"), stop=ReplyStop.LENGTH),
        calls(raw("write_file", '{"path":"b.md"', "c2")),
        calls(raw("write_file", '{"path":"c.md"}', "c3"), stop=ReplyStop.LENGTH),
        "done",
    )
    async with asyncio.timeout(5), runner, runner.start() as session:
        await session.run("go")
        notes = [note for note in await written(session, Noted) if note.kind == "output_truncated"]
    assert ledger.lines == []
    for request in model.requests[1:]:
        (result,) = results(request)
        assert result.error
        assert "output limit" in result.text
        assert "end less" in result.text
    assert len(notes) == 2


@pytest.mark.requirement("B24")
async def test_calls_with_equal_empty_and_absent_ids_all_run_in_order_each_with_its_result() -> None:
    ledger = Ledger()
    first = [raw("put", f'{{"n":{n}}}', known) for n, known in ((1, "x"), (2, "x"), (3, ""), (4, None))]  # type: ignore[arg-type]
    runner, model = staged(
        agent(ledger.tool("put", Access.WRITE)), calls(*first), calls(raw("put", '{"n":5}', "x")), "ok"
    )
    async with asyncio.timeout(5), runner, runner.start() as session:
        await session.run("go")
    assert ledger.lines == [f"put n={n}" for n in range(1, 6)]
    ids = [result.call_id for request in model.requests[1:] for result in results(request)]
    assert (len(set(ids)), ids[0]) == (5, "x")


async def test_the_name_of_a_call_is_not_echoed_without_bound() -> None:
    ledger = Ledger()
    runner, model = staged(agent(ledger.tool("look")), raw("x" * 100_000, "{}", "c1"), "done")
    async with asyncio.timeout(5), runner, runner.start() as session:
        result = await session.run("go")
    (answered,) = results(model.requests[1])
    assert answered.denial is not None
    assert answered.denial.code == "unknown_tool"
    assert len(answered.text) <= 2000
    assert len(result.failures[0]) <= 4000


async def test_oa_runner_no_failure_repeats_a_long_argument(tmp_path: Path) -> None:
    long = "x" * 50_000
    child = agent(name="kid", role=Role.CHILD)
    skill = Skill("s", "what", "text")
    boss = agent(*WORKSPACE_TOOLS, children=(child,), skills=(skill,))
    wrong = [
        call("read_file", path=f"../{long}"),
        call("read_file", path="/".join(["y" * 200] * 15)),
        call("read_file", path=long),
        call("read_file", path="a", **{long: 1}),
        call("diff_patch_workspace_file", path=long, diff="d"),
        call("read_skill", name=long),
        call("read_output", handle=long),
        call("search_output", handle=long, text="x"),
        call("get_api_spec", tool_name=long),
        call("delegate", child=long, task="t"),
        call("message_child", child=long, text="t"),
        call("child_status", child=long),
        call(long),
    ]
    runner, model = staged(boss, calls(*wrong), "ok", workspace=tmp_path)
    async with asyncio.timeout(10), runner, runner.start() as session:
        await session.run("go")
    told = results(model.requests[1])
    assert all(result.outcome is not Outcome.OK for result in told)
    assert [r.name[:20] for r in told if len(r.denial.text if r.denial else r.text) > 600] == []
