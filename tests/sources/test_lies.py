"""Servers whose answers are not what the protocol says: each costs itself, at once, and nothing else."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from actors.grants import Access
from actors.messages import Outcome
from actors.reshape import Reshape
from actors.sources import ToolRule
from orchestrator.journal.source import ToolsPinned
from orchestrator.testing import call
from tests.core.stage import names, staged
from tests.sources.stage import LIMIT_S, Servers, entries, entry, finished, servers, told, user

__all__ = ["servers"]

HEAD = '{"jsonrpc":"2.0","id":$ID,'
KNOWN = '{"type":"text","text":"hi"}'
BOTTOMLESS = {"fill": "[", "unfill": "]", "size": 100_000}


def result(value: Any, **more: Any) -> dict[str, Any]:
    """A step that answers with *value*: JSON text, or what becomes it."""
    return {"line": f'{HEAD}"result":{value if isinstance(value, str) else json.dumps(value)}}}', **more}


def failure(code: Any, message: str) -> dict[str, Any]:
    """A step that answers with an error."""
    return {"line": f'{HEAD}"error":{json.dumps({"code": code, "message": message})}}}'}


@pytest.mark.parametrize(
    "step, outcome, text",
    [
        (result({"content": [], "structuredContent": {"n": 10**39}}), Outcome.OK, f'{{"n":{10**39}}}'),
        (result('{"content":[],"structuredContent":{"n":NaN}}'), Outcome.OK, '{"n":null}'),
        (result('{"content":[{"type":"hologram","x":1},' + KNOWN + "]}"), Outcome.OK, "[hologram content that the"),
        (result('{"content":[{"type":"text","text":null},' + KNOWN + "]}"), Outcome.OK, "hi"),
        (result('{"content":[5,' + KNOWN + "]}"), Outcome.OK, "hi"),
        (result('{"content":' + KNOWN + "}"), Outcome.OK, "hi"),
        (result("{}"), Outcome.OK, "returned no output"),
        (result('{"content":[],"isError":true}'), Outcome.ERROR, "t failed and said nothing"),
        (result("5"), Outcome.UNKNOWN, "answered what the protocol does not allow"),
        (result("null"), Outcome.UNKNOWN, "answered what the protocol does not allow"),
        (result('{"structuredContent":{"n":$FILL1$UNFILL}}', **BOTTOMLESS), Outcome.UNKNOWN, "does not allow"),
        (failure("x", "m"), Outcome.UNKNOWN, "answered what the protocol does not allow"),
        (failure(-32600, "bad"), Outcome.ERROR, "The server s refused: bad (-32600)."),
        (failure(-32603, "broke"), Outcome.ERROR, "The server s refused: broke (-32603)."),
        (failure(10**20, "far"), Outcome.ERROR, "far"),
        (failure(-32000, "gone"), Outcome.UNKNOWN, "server_lost: the server s was lost"),
        (failure(-32600, "Session terminated"), Outcome.ERROR, "refused: Session terminated"),
        (failure(-32077, "HTTP 404"), Outcome.ERROR, "refused: HTTP 404"),
    ],
)
async def test_whatever_a_server_answers_ends_its_call_at_once_and_is_sent_once(
    servers: Servers, step: dict[str, Any], outcome: Outcome, text: str
) -> None:
    declared = {"access": Access.WRITE, "call_s": 60.0}
    source = servers.liar("s", "t", "well", declared=declared, does={"tools/call t": [step]})
    runner, _ = staged(user(source), call("s__t"), call("s__well"), "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        seen = await finished(session)
    assert (seen["s__t"].outcome, text in seen["s__t"].text) == (outcome, True), seen["s__t"].text
    assert seen["s__well"].outcome is Outcome.OK
    assert servers.called("s") == ["t", "well"]
    assert len([line for line in servers.lines("s") if line.startswith("start")]) == 1


async def test_answers_to_other_requests_and_second_answers_change_nothing(servers: Servers) -> None:
    twice = [result({"content": [{"type": "text", "text": word}]}) for word in ("first", "second")]
    strange = {"line": '{"jsonrpc":"2.0","id":9999,"result":{}}'}
    source = servers.liar("s", "t", "u", does={"tools/call t": [strange, *twice]})
    runner, _ = staged(user(source), call("s__t"), call("s__u"), "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        seen = await finished(session)
    assert (seen["s__t"].text, seen["s__u"].text) == ("first", "ok")


async def test_an_answer_that_comes_after_the_call_was_given_up_is_nobodys(servers: Servers) -> None:
    late = [{"sleep": 0.6}, result({"content": [{"type": "text", "text": "late"}]})]
    source = servers.liar("s", "t", "u", declared={"call_s": 0.3}, does={"tools/call t": late})
    runner, _ = staged(user(source), call("s__t"), "one", call("s__u"), "two")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        while "cancelled" not in servers.lines("s"):
            await asyncio.sleep(0.01)
        await session.run("again")
        seen = await finished(session)
    assert seen["s__t"].outcome is Outcome.UNKNOWN
    assert seen["s__u"].text == "ok"


def tool(name: str, **more: Any) -> dict[str, Any]:
    """An entry of a listing with no description."""
    return {"name": name, "inputSchema": {"type": "object"}, **more}


@pytest.mark.parametrize(
    "odd",
    [
        tool("t", inputSchema={"properties": [1]}),
        tool("t", inputSchema={"properties": {"a": 3}}),
        tool("t", inputSchema={"required": "abc"}),
        tool("t", inputSchema={"$schema": 5}),
        tool("t", inputSchema={"properties": {"a": {"x": json.loads("[" * 500 + "]" * 500)}}}),
        tool("t", description="x" * 1_000_000),
        tool("t" * 1_000_000),
        tool("t", outputSchema={"x": "y" * 1_000_000}),
    ],
)
async def test_a_tool_that_is_no_use_never_loses_its_server(servers: Servers, odd: dict[str, Any]) -> None:
    listing = servers.folder / "listing"
    listing.write_text(json.dumps({"tools": [odd, tool("u")]}), encoding="utf-8")
    source = servers.liar("s", declared={"tools": ()}, listing=str(listing))
    runner, model = staged(user(source), call("s__u"), "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        (pinned,) = [e.record for e in await entries(session) if isinstance(e.record, ToolsPinned)]
    assert [name for name in names(model.requests[0]) if name.startswith("s__")] == ["s__u"]
    assert servers.called("s") == ["u"]
    assert len(repr(pinned)) < 10_000


async def test_fields_of_a_listing_that_mean_nothing_to_us_may_hold_anything(servers: Servers) -> None:
    odd = tool("t", annotations=5, title=7, icons="x", _meta=3, execution=9, outputSchema="no")
    listed = {"tools": [odd, tool("u", annotations={"readOnlyHint": "yes"})], "_meta": 5, "nextCursor": 7}
    source = servers.liar("s", does={"tools/list": [result(listed)]})
    runner, model = staged(user(source), "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        said = await told(session)
    assert [name for name in names(model.requests[0]) if name.startswith("s__")] == ["s__t", "s__u"]
    assert said == [("tool_left_out", "s: the rest of its listing: its nextCursor is no text")]


async def test_more_tools_than_anybody_needs_are_left_out_and_said_so(servers: Servers) -> None:
    listing = servers.folder / "listing"
    listing.write_text(json.dumps({"tools": [tool(f"t{n}") for n in range(5000)]}), encoding="utf-8")
    runner, model = staged(user(servers.liar("s", listing=str(listing))), "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        said = await told(session)
    assert len([name for name in names(model.requests[0]) if name.startswith("s__")]) == 2000
    assert said[0] == ("tool_left_out", "s: tool 't2000': it is beyond the first 2000")
    assert [kind for kind, _ in said] == ["tool_left_out"] * 50


async def test_names_of_any_letters_and_length_are_kept_for_the_server_and_made_legal_for_us(servers: Servers) -> None:
    odd = ["a\x07\n\x1b[31mb", "x" * 200, "a b", "a/b", "a\x00b"]
    source = servers.liar("s", *(entry(name) for name in odd))
    runner, model = staged(user(source), "one")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        known = {
            item.origin.pin.name: item.tool.name
            for item in session._root.resolved.tools.values()
            if item.origin is not None
        }
    assert sorted(known) == sorted(odd)
    offered = [name for name in names(model.requests[0]) if name.startswith("s__")]
    assert sorted(offered) == sorted(known.values())
    assert all(name.isprintable() and len(name) <= 128 for name in offered)


@pytest.mark.parametrize("schema", [{"properties": [1]}, {"properties": 5}, {"required": 5, "properties": {"a": {}}}])
async def test_a_transform_of_a_tool_whose_schema_is_no_use_costs_that_tool(
    servers: Servers, schema: dict[str, Any]
) -> None:
    rule = ToolRule("t", reshape=Reshape(fixed={"a": "1"}))
    source = servers.liar("s", tool("t", inputSchema=schema), "u", declared={"rules": (rule,)})
    runner, model = staged(user(source), "end")
    async with asyncio.timeout(LIMIT_S), runner:
        await runner.run("go")
    assert [name for name in names(model.requests[0]) if name.startswith("s__")] == ["s__u"]


async def test_a_listing_nested_without_end_is_told_at_once(servers: Servers) -> None:
    nested = result('{"tools":[{"name":"t","inputSchema":{"x":$FILL1$UNFILL}}]}', **BOTTOMLESS)
    source = servers.liar("s", declared={"required": False, "start_s": 60.0}, does={"tools/list": [nested]})
    runner, _ = staged(user(source), "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        said = await told(session)
    assert [kind for kind, _ in said] == ["source_junk", "source_unavailable"]
    assert "answered what the protocol does not allow" in said[1][1]
