"""How long a session with many MCP servers takes to start, beside its slowest server alone; and what one call costs.

Fifty servers of forty tools answer over HTTP from this very process, so their work counts against us as well.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from contextlib import AsyncExitStack

from actors.definition import AgentDefinition, ToolSet
from actors.grants import Access
from actors.roles.role import Role
from actors.sources import MCPSource
from orchestrator.agent import Agent
from orchestrator.runtime import RuntimeConfig
from tests.bench.row import Row
from tests.bench.workload import Prepared
from tests.sources.stage import entry
from tests.sources.web import Web, served

__all__ = ["started"]

SOURCES, TOOLS = 50, 40
SLOW_S, QUICK_S = 0.4, 0.02
MOST_S = 1.0


async def opening(servers: list[Web]) -> float:
    """Return the seconds until a session with these servers has started."""
    async with AsyncExitStack() as stack:
        for server in servers:
            await stack.enter_async_context(served(server))
        sources = [MCPSource(f"s{n:02d}", url=server.url, access=Access.READ) for n, server in enumerate(servers)]
        definition = AgentDefinition("boss", Role.RUN, tools=ToolSet(mcp=sources))
        agent = await stack.enter_async_context(Agent(definition, RuntimeConfig(Prepared())))
        began = time.perf_counter()
        await stack.enter_async_context(agent.start())
        return time.perf_counter() - began


def many(slow: int, quick: int) -> list[Web]:
    """Return servers, the first *slow* of which answer each request late."""
    servers = [Web([entry(f"t{number}") for number in range(TOOLS)]) for _ in range(slow + quick)]
    for number, server in enumerate(servers):
        server.delay_s = SLOW_S if number < slow else QUICK_S
    return servers


def started(name: str, *, quick: bool) -> list[Row]:
    """Measure the start with all servers against the start with the slowest alone; the difference is ours to bound."""
    asyncio.run(opening(many(0, 1)))  # imports what is imported late
    rounds = 2 if quick else 5
    pairs = [(asyncio.run(opening(many(1, 0))), asyncio.run(opening(many(1, SOURCES - 1)))) for _ in range(rounds)]
    alone, all_of_them = (statistics.median(side) for side in zip(*pairs, strict=True))
    what = f"start with {SOURCES} servers of {TOOLS} tools"
    return [
        Row(name, f"{what}, the slowest alone as floor", "s wall", all_of_them, alone, all_of_them / alone),
        Row(name, f"{what}, beyond the slowest", "s wall", all_of_them - alone, target=MOST_S),
    ]
