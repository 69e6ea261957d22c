"""What one idle actor holds in memory, in bytes, by ``tracemalloc``; the journal's own records are not counted."""

from __future__ import annotations

import asyncio
import gc
import sys
import tracemalloc
from typing import Any

from orchestrator.journal.memory import MemoryStore
from tests.bench.floor import FloorActor
from tests.bench.samples import LONELY, PARENT
from tests.bench.workload import DENIED, TOOLS, Prepared, opened

__all__ = ["floor_idle", "idle"]


class Scale:
    """Bytes allocated and kept since it was made; frees its tracer with `close`."""

    def __init__(self) -> None:
        gc.collect()
        tracemalloc.start()
        self.started = tracemalloc.get_traced_memory()[0]

    def close(self) -> int:
        """Return the bytes kept and stop tracing."""
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0] - self.started
        tracemalloc.stop()
        return kept


async def floor_idle(count: int) -> float:
    """Weigh the floor's actors."""
    scale = Scale()
    actors = [FloorActor(f"worker/child-{n:04d}", None, TOOLS, DENIED) for n in range(count)]
    await asyncio.sleep(0)
    kept = scale.close()
    for actor in actors:
        await actor.end()
    return kept / count


async def idle(count: int) -> float:
    """Weigh idle children of one parent."""
    store = MemoryStore()
    async with opened(Prepared(), PARENT, watched=False, store=store) as bench:
        before = written(store)
        scale = Scale()
        for _ in range(count):
            bench.spawn(LONELY)
        return (scale.close() - (written(store) - before)) / count


def written(store: Any) -> int:
    """Return the bytes of every record in *store*, objects and all."""
    return sum(sys.getsizeof(data) + 8 for shelf in store.shelves.values() for data in shelf.records)
