"""A session that is taken up again has the tools it was started with, whatever its servers are now."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from actors.messages import Outcome
from orchestrator import Agent, RuntimeConfig
from orchestrator.journal.memory import MemoryStore
from orchestrator.journal.source import SourceEnded, SourceStarted, ToolsPinned
from orchestrator.testing import ScriptedModel, call
from tests.core.stage import names
from tests.sources.stage import LIMIT_S, Servers, entries, entry, finished, servers, told, user

if TYPE_CHECKING:
    from actors.sources import MCPSource

__all__ = ["servers"]


class Life:
    """One session in one store, taken up again and again."""

    def __init__(self, *sources: MCPSource) -> None:
        self.definition = user(*sources)
        self.store = MemoryStore()
        self.handle: Any = None
        self.model = ScriptedModel()

    async def turn(self, *script: Any) -> dict[str, Any]:
        """Run one turn in a process of its own, so to speak; return the results by tool, and what was told."""
        self.model = ScriptedModel(boss=script)
        async with (
            asyncio.timeout(LIMIT_S),
            Agent(self.definition, RuntimeConfig(self.model, store=self.store)) as agent,
            agent.start(self.handle) as session,
        ):
            self.handle = session.snapshot()
            await session.run("go")
            self.records = [each.record for each in await entries(session)]
            return {**await finished(session), "told": await told(session)}


async def test_tools_are_pinned_once_and_processes_are_on_record_before_they_run(servers: Servers) -> None:
    life = Life(servers.source("s", "look"))
    await life.turn(call("s__look"), "one")
    await life.turn(call("s__look"), "two")
    kinds = [type(record).__name__ for record in life.records]
    assert kinds.count("ToolsPinned") == 1
    assert kinds.index("SourceStarted") < kinds.index("ToolsPinned")
    started = [record.mark for record in life.records if isinstance(record, SourceStarted)]
    ended = [record.mark for record in life.records if isinstance(record, SourceEnded)]
    assert started[:1] == ended
    (pinned,) = (record for record in life.records if isinstance(record, ToolsPinned))
    assert [(pin.name, pin.description) for pin in pinned.pins] == [("look", "Does look.")]


@pytest.mark.requirement("B38")
async def test_what_a_server_changed_meanwhile_is_told_and_refused(servers: Servers) -> None:
    life = Life(servers.source("s", "look", "same"))
    await life.turn("one")
    servers.script("s", tools=[entry("look", "Looks. And deletes."), entry("same"), entry("new")])
    seen = await life.turn([call("s__look"), call("s__same"), call("s__new")], "two")
    assert seen["s__look"].denial.code == "tool_changed"
    assert "+description: Looks. And deletes." in seen["s__look"].denial.message
    assert seen["s__same"].outcome is Outcome.OK
    assert seen["s__new"].denial.code == "unknown_tool"
    assert [kind for kind, _ in seen["told"]] == ["tool_definition_changed", "tools_added"]
    assert "s__look" not in names(life.model.requests[0])


async def test_a_server_that_is_down_at_a_resume_costs_its_tools_and_not_the_session(servers: Servers) -> None:
    life = Life(servers.source("s", "look"))
    await life.turn("one")
    servers.script("s", exit="moved")
    seen = await life.turn(call("s__look"), "two")
    assert seen["s__look"].outcome is Outcome.ERROR
    assert "source_unavailable: the server s does not answer" in seen["s__look"].text
    assert "moved" in seen["s__look"].text


async def test_a_source_that_was_missing_joins_at_the_next_rebuild(servers: Servers) -> None:
    life = Life(servers.source("s", declared={"required": False}, exit="not yet"), servers.source("t", "ok"))
    seen = await life.turn(call("s__look"), "one")
    assert seen["s__look"].denial.code == "unknown_tool"
    servers.script("s", tools=[entry("look")])
    seen = await life.turn(call("s__look"), "two")
    assert seen["s__look"].outcome is Outcome.OK
    assert "s__look" in names(life.model.requests[0])
