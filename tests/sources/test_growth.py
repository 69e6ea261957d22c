"""Many sources with many tools: started side by side, and a turn costs what it did with few."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from actors.grants import Access
from actors.sources import MCPSource
from orchestrator.testing import call
from tests.bench.counts import calls_of_turns
from tests.core.stage import names, staged
from tests.sources.stage import entry, user
from tests.sources.web import Web, served

if TYPE_CHECKING:
    from typing import Self

SOURCES, TOOLS = 50, 40
LIMIT_S = 60.0


class Meeting(Web):
    """A server that answers nothing before as many servers have been asked as there are."""

    met: asyncio.Event
    came: set[Any]

    @classmethod
    def many(cls, count: int) -> list[Self]:
        """As many servers, which wait for each other."""
        met, came = asyncio.Event(), set[Any]()
        servers = [cls([entry(f"t{number}") for number in range(TOOLS)]) for _ in range(count)]
        for server in servers:
            server.met, server.came = met, came
        return servers

    async def _post(self, writer: asyncio.StreamWriter, headers: dict[str, str], message: dict[str, Any]) -> bool:
        self.came.add(self)
        if len(self.came) == SOURCES:
            self.met.set()
        await self.met.wait()
        return await super()._post(writer, headers, message)


async def test_fifty_servers_of_forty_tools_are_started_side_by_side_and_all_are_there() -> None:
    async with asyncio.timeout(LIMIT_S), AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(served(server)) for server in Meeting.many(SOURCES)]
        sources = [MCPSource(f"s{n:02d}", url=server.url, access=Access.READ) for n, server in enumerate(servers)]
        runner, model = staged(user(*sources), [call("s00__t0"), call("s49__t39")], "done")
        await stack.enter_async_context(runner)
        assert (await runner.run("go")).output == "done"
    assert len([name for name in names(model.requests[0]) if "__" in name]) == SOURCES * TOOLS
    assert (servers[0].calls, servers[-1].calls) == (["t0"], ["t39"])


def test_a_turn_makes_as_many_function_calls_with_a_thousand_tools_as_with_ten() -> None:
    assert calls_of_turns(1000) == calls_of_turns(10)
