"""One sample of each figure: the CPU microseconds of one operation, by the floor and by the library.

A sample opens what it needs afresh, warms it up with one turn, and measures only the operations themselves.
"""

from __future__ import annotations

import asyncio
import gc
import time
from typing import TYPE_CHECKING

from tests.bench.counts import COUNTED
from tests.bench.floor import FloorActor
from tests.bench.workload import DENIED, TOOLS, Held, Prepared, opened, saying, worker_with

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    Sample = Callable[[int], Coroutine[Any, Any, float]]

__all__ = ["ask", "floor_ask", "floor_spawn", "floor_tell", "floor_work", "spawn", "tell", "work"]

MICRO = 1e6
LONELY = worker_with(12)
PARENT = worker_with(1, children=(LONELY,), name="parent")


class Stopwatch:
    """CPU time since it was made; garbage of earlier samples is collected first."""

    def __init__(self) -> None:
        gc.collect()
        self.started = time.process_time()

    def each(self, count: int) -> float:
        """Return the microseconds of one of *count* operations."""
        return (time.process_time() - self.started) / count * MICRO


def floor_work(name: str) -> Sample:
    """Return the floor's sample of the work *name* of `COUNTED`."""

    async def sample(count: int) -> float:
        model = Prepared()
        actor = FloorActor("worker", model, TOOLS, DENIED)
        model.replies.append(saying())
        await actor.ask("Go on.")
        model.replies.extend(COUNTED[name](count))
        watch = Stopwatch()
        while model.replies:
            await actor.ask("Go on.")
        spent = watch.each(count)
        await actor.end()
        return spent

    return sample


def work(name: str) -> Sample:
    """Return the library's sample of the work *name* of `COUNTED`."""

    async def sample(count: int) -> float:
        model = Prepared()
        async with opened(model) as bench:
            model.replies.append(saying())
            await bench.run()
            model.replies.extend(COUNTED[name](count))
            watch = Stopwatch()
            while model.replies:
                await bench.run()
            return watch.each(count)

    return sample


async def floor_ask(count: int) -> float:
    """Ask an actor that answers by itself, and wait for each answer."""
    actor = FloorActor("worker", None, TOOLS, DENIED)
    await actor.ask("ready?")
    watch = Stopwatch()
    for _ in range(count):
        await actor.ask("And now?")
    spent = watch.each(count)
    await actor.end()
    return spent


async def ask(count: int) -> float:
    """Ask an idle child: a whole turn, on record, with one model request."""
    model = Prepared()
    async with opened(model, PARENT) as bench:
        child = bench.spawn(LONELY)
        model.replies.extend(saying() for _ in range(count + 1))
        await bench.ask(child, "ready?")
        watch = Stopwatch()
        for _ in range(count):
            await bench.ask(child, "And now?")
        return watch.each(count)


async def floor_tell(count: int) -> float:
    """Tell a busy actor; the messages wait in memory."""
    actor = FloorActor("worker", None, TOOLS, DENIED)
    watch = Stopwatch()
    for _ in range(count):
        actor.tell("And this.")
    spent = watch.each(count)
    await actor.end()
    return spent


async def tell(count: int) -> float:
    """Tell a busy actor; the messages join its turn and are on record. At most 900 at a time."""
    model = Held()
    async with opened(model) as bench:
        model.replies.extend((saying(), saying()))
        running = asyncio.create_task(bench.run())
        await model.asked.wait()
        watch = Stopwatch()
        for _ in range(count):
            bench.root.actor.steer("And this.")
        spent = watch.each(count)
        model.gate.set()
        await running
        return spent


async def floor_spawn(count: int) -> float:
    """Start actors; each is a task that waits for mail."""
    watch = Stopwatch()
    actors = [FloorActor("worker", None, TOOLS, DENIED) for _ in range(count)]
    await asyncio.sleep(0)
    spent = watch.each(count)
    for actor in actors:
        await actor.end()
    return spent


async def spawn(count: int) -> float:
    """Start children with authority, account, mailbox and record; each is idle."""
    async with opened(Prepared(), PARENT) as bench:
        watch = Stopwatch()
        for _ in range(count):
            bench.spawn(LONELY)
        return watch.each(count)
