"""Agents of a workflow with tools of servers: declared in the file, part of the plan, called in a run."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import pytest

from actors.messages import CallFinished
from orchestrator import RuntimeConfig
from orchestrator.testing import FunctionModel, call
from orchestrator.workflows.cast import definitions
from orchestrator.workflows.fault import PlanError
from orchestrator.workflows.load import parse_plan
from orchestrator.workflows.run import WorkflowRun
from tests.sources.stage import LIMIT_S, SERVER, Servers, servers

if TYPE_CHECKING:
    from actors.ports import ModelRequest

__all__ = ["servers"]

PLAN = f"""
name: looking
agents:
  looker:
    role: run
    instructions: Look.
    mcp: {{db: {{command: [{sys.executable}, {SERVER}], env: {{SCRIPT: "${{SCRIPT_OF_db}}"}}, access: read}}}}
steps: [{{id: look, agent: looker, prompt: "Look."}}]
"""


async def test_an_agent_of_a_workflow_calls_a_tool_of_its_server(servers: Servers) -> None:
    servers.source("db", "look")

    def looker(request: ModelRequest) -> object:
        return call("db__look", x=1) if len(request.history) == 1 else request.history[-1].results[0].text

    plan = parse_plan(PLAN, "w.yaml", pool={})
    async with asyncio.timeout(LIMIT_S), WorkflowRun(plan, {}, RuntimeConfig(FunctionModel({"looker": looker}))) as run:
        result = await run.run()
        called = [e.record.result.name for e in await run.entries() if isinstance(e.record, CallFinished)]
    assert result.ok
    assert [outcome.output for outcome in result.outcomes] == ['{"x": 1}']
    assert called == ["db__look"]


def test_what_a_server_may_do_is_part_of_the_plan_and_a_plan_without_servers_is_what_it_was() -> None:
    plain = PLAN.replace(PLAN[PLAN.index("    mcp:") : PLAN.index("steps:")], "")
    digests = {
        parse_plan(text, "w.yaml").digest for text in (plain, PLAN, PLAN.replace("access: read", "access: write"))
    }
    assert len(digests) == 3
    (definition,) = definitions(parse_plan(PLAN, "w.yaml").agents, {}).values()
    assert [source.name for source in definition.tools.mcp] == ["db"]


@pytest.mark.parametrize(
    "change, fault",
    [
        (("access: read", "acess: read"), "MCP server 'db' has no key 'acess'"),
        (("role: run", "role: builder"), ""),
        (("access: read", "access: external"), ""),
        (("role: run", "role: reviewer"), ""),
    ],
)
def test_what_is_wrong_with_a_server_is_told_with_its_place(change: tuple[str, str], fault: str) -> None:
    if fault:
        with pytest.raises(PlanError, match=fault):
            parse_plan(PLAN.replace(*change), "w.yaml", pool={})
        return
    assert parse_plan(PLAN.replace(*change), "w.yaml", pool={}).agents


def test_a_server_above_its_agents_role_is_told_where_the_agent_is_named() -> None:
    text = PLAN.replace("access: read", "access: external").replace("role: run", "role: reviewer")
    with pytest.raises(
        PlanError, match="MCP source 'db' has access 'external', above what a reviewer may do"
    ) as caught:
        parse_plan(text, "w.yaml", pool={})
    assert [(fault.line, fault.column) for fault in caught.value.faults] == [(4, 3)]
