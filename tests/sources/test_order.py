"""Names of tools do not depend on which server is up first: starts with delays that differ from one to the next."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from actors.grants import Access
from actors.naming import PROVIDER, EdgeNames
from actors.sources import MCPSource
from orchestrator import ResolutionFailed
from orchestrator.testing import call
from tests.core.stage import Ledger, names, staged
from tests.sources.stage import LIMIT_S, entry, user
from tests.sources.web import Web, served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

STARTS = 20
CLASH_S = 1.0
START_S = 2.0
LONG = "n" * 64


class Rivals:
    """Two servers that have a tool of the same name each."""

    def __init__(self, webs: Mapping[str, Web]) -> None:
        self.webs = webs

    def sources(self, seed: int, **more: Any) -> list[MCPSource]:
        """Their sources; which is up first, and how late, is up to *seed*."""
        chance = random.Random(seed)
        for web in self.webs.values():
            web.delay_s = chance.uniform(0, 0.03)
        return [MCPSource(name, url=web.url, access=Access.READ, **more) for name, web in self.webs.items()]


@asynccontextmanager
async def rivals(tool: str, *servers: str) -> AsyncIterator[Rivals]:
    """Have *servers* listen for the time of the block, each with one tool of the name *tool*."""
    async with AsyncExitStack() as stack:
        yield Rivals({name: await stack.enter_async_context(served(Web([entry(tool)]))) for name in servers})


async def faults_of(sources: list[MCPSource]) -> tuple[str, ...]:
    """What is wrong with a definition that has *sources* and a tool ``search`` of its own."""
    runner, _ = staged(user(*sources, direct=(Ledger().tool("search"),)), "never")
    async with runner:
        with pytest.raises(ResolutionFailed) as caught:
            await runner.run("go")
    return tuple(caught.value.faults)


@pytest.mark.requirement("B11")
async def test_a_clash_of_bare_names_is_told_at_once_and_alike_whichever_server_is_up_first() -> None:
    async with asyncio.timeout(STARTS * LIMIT_S), rivals("search", "alpha", "beta") as both:
        (first,) = await faults_of(both.sources(0, prefix=""))
        assert "tool 'search' has 3 owners: 'direct', 'mcp:alpha', 'mcp:beta'" in first
        for seed in range(1, STARTS + 1):
            async with asyncio.timeout(CLASH_S):
                assert await faults_of(both.sources(seed, prefix="")) == (first,)


@pytest.mark.requirement("B11", "B15")
@pytest.mark.parametrize("tool", ["search", LONG], ids=["short", "long"])
async def test_tools_of_one_name_have_the_same_names_at_every_start_and_lead_to_their_own_servers(tool: str) -> None:
    whole = [f"s1__{tool}", f"s2__{tool}"]
    seen: set[tuple[str, ...]] = set()
    async with asyncio.timeout(STARTS * LIMIT_S), rivals(tool, "s1", "s2") as both:
        for seed in range(STARTS + 1):
            sources = both.sources(seed)
            runner, model = staged(user(*sources), call(whole[seed % 2]), "end")
            async with asyncio.timeout(START_S if seed else LIMIT_S), runner, runner.start() as session:
                await session.run("go")
            offered = [name for name in names(model.requests[0]) if "__" in name]
            edge = EdgeNames(offered, PROVIDER)
            seen.add((*offered, *map(edge.there, offered)))
    (named,) = seen
    assert named[:2] == tuple(whole)
    assert len(set(named[2:])) == 2
    assert (both.webs["s1"].calls, both.webs["s2"].calls) == ([tool] * 11, [tool] * 10)
