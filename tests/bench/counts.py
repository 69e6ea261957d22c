"""How many Python and C functions an operation calls: the same on every machine, so CI can hold them.

Two runs of different length are profiled and the difference divided, so that opening a session does not count.
"""

from __future__ import annotations

import asyncio
import cProfile
import gc
from typing import TYPE_CHECKING

from tests.bench.workload import Prepared, calling, opened, saying, worker_with

if TYPE_CHECKING:
    from actors.messages import ModelReply

__all__ = ["COUNTED", "calls_of_turns", "counted"]

SHORT, LONG = 10, 50

TURN = "turn"
CALL = "tool call"
WRITE = "writing tool call"
BATCHED = "parallel tool call"


def turns(count: int) -> list[ModelReply]:
    """The replies of *count* turns without calls."""
    return [saying() for _ in range(count)]


def calls(count: int) -> list[ModelReply]:
    """The replies of one turn with *count* calls in sequence."""
    return [*(calling((n,)) for n in range(count)), saying()]


def writes(count: int) -> list[ModelReply]:
    """The replies of one turn with *count* writing calls in sequence."""
    return [*(calling((n,), "write_0") for n in range(count)), saying()]


def batches(count: int) -> list[ModelReply]:
    """The replies of one turn with *count* calls, ten at a time."""
    return [*(calling(range(n, n + 10)) for n in range(0, count, 10)), saying()]


COUNTED = {TURN: turns, CALL: calls, WRITE: writes, BATCHED: batches}


def counted(name: str) -> float:
    """Return the function calls of one operation *name* of `COUNTED`."""
    asyncio.run(profiled(name, SHORT))  # the first run of all imports what is imported late
    few, many = asyncio.run(profiled(name, SHORT)), asyncio.run(profiled(name, LONG))
    return round((many - few) / (LONG - SHORT), 2)


def calls_of_turns(tools: int) -> float:
    """Return the function calls of one turn of an actor that has *tools* tools."""
    asyncio.run(profiled(TURN, SHORT, tools))
    few, many = (asyncio.run(profiled(TURN, count, tools)) for count in (SHORT, LONG))
    return round((many - few) / (LONG - SHORT), 2)


async def profiled(name: str, count: int, tools: int = 0) -> int:
    """Return all function calls of *count* operations in a fresh session, of an actor with 12 tools or with *tools*."""
    model = Prepared()
    async with opened(model, worker_with(tools)) if tools else opened(model) as bench:
        model.replies.append(saying())
        await bench.run()
        model.replies.extend(COUNTED[name](count))
        profile = cProfile.Profile()
        gc.disable()
        try:
            profile.enable()
            while model.replies:
                await bench.run()
            profile.disable()
        finally:
            gc.enable()
    return sum(entry.callcount for entry in profile.getstats())
