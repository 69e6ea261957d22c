"""The time of one decision on a permitted call, in microseconds, for actors with few and with many tools."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from orchestrator.capability import Capability
from orchestrator.facts import PERMIT, Attempt, Facts
from orchestrator.gathering import Asked
from orchestrator.policy import decide
from tests.bench.workload import Prepared, opened, worker_with

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["deciding", "gathering"]

INNER = 20


def median_us(count: int, work: Callable[[], object]) -> float:
    """Return the median over *count* timings of *work*, each of 20 runs."""
    timings = []
    for _ in range(count):
        started = time.perf_counter()
        for _ in range(INNER):
            work()
        timings.append((time.perf_counter() - started) / INNER * 1e6)
    return statistics.median(timings)


async def deciding(tools: int, count: int) -> float:
    """Time `decide` alone, with the facts at hand, for an actor with *tools* tools."""
    attempt = Attempt("read_5")
    facts = await facts_of(tools)
    if decide(attempt, facts) is not PERMIT:
        msg = f"the call was not permitted: {decide(attempt, facts)}"
        raise RuntimeError(msg)
    return median_us(count, lambda: decide(attempt, facts))


async def facts_of(tools: int) -> Facts:
    """Return the facts of a permitted call, as the bridge gathers them."""
    async with opened(Prepared(), worker_with(tools), watched=False) as bench:
        capability = Capability(bench.supervisor.bridge, bench.root, "t0001", bench.policy, None, 1)
        known = bench.root.resolved.tools["read_5"]
        return bench.supervisor.bridge._gathering.facts(
            Asked(capability, "read_5", "c1", known, {"path": "a.py", "line": 1})
        )


async def gathering(tools: int, count: int) -> float:
    """Time the gathering of the facts by the bridge together with `decide`."""
    attempt, arguments = Attempt("read_5"), {"path": "a.py", "line": 1}
    async with opened(Prepared(), worker_with(tools), watched=False) as bench:
        bridge = bench.supervisor.bridge
        capability = Capability(bridge, bench.root, "t0001", bench.policy, None, 1)
        known = bench.root.resolved.tools["read_5"]
        asked = Asked(capability, "read_5", "c1", known, arguments)
        return median_us(count, lambda: decide(attempt, bridge._gathering.facts(asked)))
