"""Schemas of servers: whole to the model and to discovery; checked as they are; one that is no use costs one tool."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from orchestrator import Agent, RuntimeConfig
from orchestrator.testing import ScriptedModel, call
from orchestrator.validators import compile_schema
from tests.core.stage import names, staged
from tests.sources.stage import LIMIT_S, Servers, entry, finished, servers, user

if TYPE_CHECKING:
    from actors.messages import ModelReply
    from actors.ports import ModelRequest

__all__ = ["servers"]

SHARED = {
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
TREE = {
    "type": "object",
    "$defs": {"N": {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}, "v": {"type": "integer"}}}},
    "properties": {"root": {"$ref": "#/$defs/N"}},
}


@pytest.mark.requirement("B16")
@pytest.mark.parametrize(
    "schema, good, bad",
    [
        (SHARED, {"q": {"limit": 5}}, {"q": 7}),
        (SHARED, {"q": {}, "when": None}, {"q": {}, "when": "soon"}),
        (TREE, {"root": {"next": {"next": {"v": 1}}}}, {"root": {"next": {"next": {"v": "x"}}}}),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}, {"any": 1}, None),
        ({}, {"any": 1}, None),
    ],
)
async def test_a_schema_reaches_the_model_and_discovery_whole_and_is_what_checks(
    servers: Servers, schema: dict[str, Any], good: dict[str, Any], bad: dict[str, Any] | None
) -> None:
    source = servers.source("s", entry("t", inputSchema=schema))
    script = (call("get_api_spec", tool_name="s__t"), call("s__t", **good), call("s__t", **(bad or {})), "done")
    runner, model = staged(user(source), *script)
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        spec = json.loads((await finished(session))["get_api_spec"].text)
    (offered,) = [tool.input_schema for tool in model.requests[0].tools if tool.name == "s__t"]
    for shown in (msgspec.json.decode(offered), spec[0]["input_schema"]):
        assert shown == (schema or {"type": "object"})
    assert compile_schema(offered).is_valid(good)
    assert len(servers.called("s")) == (2 if bad is None else 1)


@pytest.mark.requirement("B18")
@pytest.mark.parametrize(
    "schema, reason",
    [
        ({"type": "object", "properties": {"a": {"$ref": "https://x.example/s.json"}}}, "refers outside itself"),
        ({"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}, "refers outside itself"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/Absent"}}}, "cannot be used"),
        ({"type": "object", "properties": {"a": {"type": "strin"}}}, "cannot be used"),
        ({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}, "cannot be used"),
    ],
)
async def test_a_schema_that_is_no_use_makes_one_tool_unavailable_with_its_reason(
    servers: Servers, schema: dict[str, Any], reason: str
) -> None:
    source = servers.source("s", entry("bad", inputSchema=schema), "good")
    runner, model = staged(user(source), [call("s__bad", a="x"), call("s__good")], "done")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        seen = await finished(session)
    assert [name for name in names(model.requests[0]) if "__" in name] == ["s__good"]
    denial = seen["s__bad"].denial
    assert denial is not None
    assert denial.code == "source_unavailable"
    assert reason in denial.message
    assert servers.called("s") == ["good"]


class Choosy(ScriptedModel):
    """A model that cannot be told of schemas with ``oneOf``, and gets every other one with a title."""

    def tool_schema(self, schema: str) -> str:
        told = msgspec.json.decode(schema)
        if "oneOf" in told:
            msg = "it has oneOf at its top"
            raise ValueError(msg)
        return msgspec.json.encode({**told, "title": "told"}).decode()

    async def reply(self, request: ModelRequest, delta: Any) -> ModelReply:
        return await super().reply(request, delta)


async def test_what_a_model_cannot_be_told_is_unavailable_and_the_rest_is_adapted(servers: Servers) -> None:
    odd = {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    source = servers.source("s", entry("odd", inputSchema=odd), "plain")
    model = Choosy(boss=[[call("s__odd", a=1), call("get_api_spec", tool_name="s__plain")], "done"])
    runner = Agent(user(source), RuntimeConfig(model))
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        seen = await finished(session)
    (offered,) = [tool for tool in model.requests[0].tools if tool.name.startswith("s__")]
    assert (offered.name, msgspec.json.decode(offered.input_schema)["title"]) == ("s__plain", "told")
    assert '"title"' not in seen["get_api_spec"].text
    denial = seen["s__odd"].denial
    assert denial is not None
    assert "the model cannot be told of it: it has oneOf at its top" in denial.message


async def test_a_tool_that_its_server_runs_as_a_task_only_is_unavailable_with_that_reason(servers: Servers) -> None:
    source = servers.source("s", entry("slow", execution={"taskSupport": "required"}), "quick")
    runner, model = staged(user(source), call("s__slow"), "done")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        denial = (await finished(session))["s__slow"].denial
    assert [name for name in names(model.requests[0]) if "__" in name] == ["s__quick"]
    assert denial is not None
    assert (denial.code, "as a task only" in denial.message) == ("source_unavailable", True)
    assert servers.called("s") == []
