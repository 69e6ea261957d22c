"""The client that the MCP conformance suite tests: a session of ours with one source, the server that the suite runs.

Started by the suite as ``python -m tests.neighbours.conform URL``. The agent calls what the scenario's context names,
else every tool that it is offered, with arguments made from its schema; a person says yes to every question.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from actors import AgentDefinition, Role, ToolSet
from actors.grants import Access
from actors.sources import MCPSource
from orchestrator import Agent, Answer, Approver, RuntimeConfig
from orchestrator.approver import Verdict
from orchestrator.models.function import call
from orchestrator.testing import FunctionModel

if TYPE_CHECKING:
    from actors.messages import ToolCall
    from actors.ports import ModelRequest
    from orchestrator.approver import Question

LEAD = "s__"
VALUES: dict[str, Any] = {"string": "x", "integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}


class Agreeing:
    """Says yes to everything, and nothing else."""

    async def ask(self, question: Question) -> Answer:
        return Answer(question.approval, Verdict.APPROVE, "key")


def arguments(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """Arguments that fit a schema; a tool that wants a schema gets the richest one there is."""
    made = {}
    for name, told in schema.get("properties", {}).items():
        if name == "schema":
            made[name] = max(schemas.values(), key=lambda each: len(msgspec.json.encode(each)))
        elif name in schema.get("required", ()):
            kind = told.get("type", "string") if isinstance(told, dict) else "string"
            made[name] = VALUES[kind[0] if isinstance(kind, list) else kind]
    return made


def play(request: ModelRequest) -> list[ToolCall] | str:
    """Call every tool once, then say so."""
    if len(request.history) > 1:
        return "done"
    context = msgspec.json.decode(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    if context.get("toolCalls"):
        return [call(f"{LEAD}{each['name']}", **each["arguments"]) for each in context["toolCalls"]]
    schemas = {
        tool.name: msgspec.json.decode(tool.input_schema) for tool in request.tools if tool.name.startswith(LEAD)
    }
    return [call(name, **arguments(schema, schemas)) for name, schema in schemas.items()] or "nothing to call"


async def main(url: str) -> int:
    """Run one turn; the suite judges what the server saw."""
    source = MCPSource("s", url=url, access=Access.READ, start_s=20.0, call_s=10.0)
    definition = AgentDefinition("boss", Role.RUN, tools=ToolSet(mcp=(source,)))
    config = RuntimeConfig(FunctionModel({"boss": play}), approver=Approver("key", Agreeing()))
    async with Agent(definition, config) as agent:
        result = await agent.run("go")
    print(result.output, *result.failures, sep="\n")
    return 0 if result.stop_reason.value == "completed" else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1])))
