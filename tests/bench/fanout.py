"""Many children at once, in a process of its own: ``python -m tests.bench.fanout floor|delegate|spawn COUNT``.

Each child asks its model twice, 50 ms each by a timer, and runs one tool between. ``delegate``: one reply of the parent
starts them all by the tool, in the foreground, and their results are its results. ``spawn``: the host starts them.
Prints CPU seconds, wall seconds, and the peak of resident memory above what was there before, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from actors.messages import ModelReply, ReplyStop, Results, ToolCall
from actors.ports import ModelRequest
from tests.bench.floor import FloorActor
from tests.bench.workload import DENIED, SPENT, TOOLS, WORKER, calling, opened, saying, worker_with

if TYPE_CHECKING:
    from collections.abc import Callable

THINKING_S = 0.05
PARENT = worker_with(1, children=(WORKER,), name="parent")


class Thinking:
    """A model that needs 50 ms for a reply: first a call, then a text. A parent delegates to *children* at once."""

    def __init__(self, children: int) -> None:
        self.children = children

    async def reply(self, request: Any, _: Callable[[str], None]) -> ModelReply:
        """Return what the history asks for."""
        last = request.history[-1]
        if isinstance(request, ModelRequest) and request.agent == "parent":
            return saying() if isinstance(last, Results) else delegating(self.children)
        await asyncio.sleep(THINKING_S)
        return saying("found") if isinstance(last, Results | tuple) else calling((1,))


def delegating(count: int) -> ModelReply:
    """Return a reply that delegates *count* tasks."""
    calls = tuple(ToolCall(f"d{n}", "delegate", f'{{"child":"worker","task":"task {n}"}}') for n in range(count))
    return ModelReply("", calls, ReplyStop.TOOL_CALLS, SPENT)


async def floor(count: int) -> None:
    """Start bare actors and wait for all answers."""
    model = Thinking(0)
    actors = [FloorActor(f"parent/child-{n}", model, TOOLS, DENIED) for n in range(count)]
    await asyncio.gather(*(actor.ask("Find it.") for actor in actors))
    for actor in actors:
        await actor.end()


async def delegate(count: int) -> None:
    """Let the parent's model delegate everything in one reply."""
    async with opened(Thinking(count), PARENT) as bench:
        await bench.run()


async def spawn(count: int) -> None:
    """Let the host start every child and wait for its turn."""
    async with opened(Thinking(0), PARENT) as bench:
        await asyncio.gather(*(bench.ask(bench.spawn(WORKER), "Find it.") for _ in range(count)))


WAYS = {"floor": floor, "delegate": delegate, "spawn": spawn}


def resident(field: str) -> int:
    """Return this process's resident memory now (``VmRSS``) or at its peak (``VmHWM``), in bytes."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS, and only ever the peak
    line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024


def main() -> None:
    """Measure what the command line names."""
    way, count = WAYS[sys.argv[1]], int(sys.argv[2])
    asyncio.run(way(1))
    before, wall, cpu = resident("VmRSS"), time.perf_counter(), time.process_time()
    asyncio.run(way(count))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    print(json.dumps({"cpu_s": cpu, "wall_s": wall, "peak_bytes": resident("VmHWM") - before}))


if __name__ == "__main__":
    main()
