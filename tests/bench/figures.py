"""Every figure by name: how it is measured, how long, and the target it is held against."""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tests.bench import deciding, durable, memory, samples
from tests.bench.counts import BATCHED, CALL, COUNTED, TURN, WRITE, counted
from tests.bench.row import Row, alternate, compared
from tests.bench.sources import started
from tests.bench.streaming import streamed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.bench.samples import Sample

__all__ = ["CALL_TARGETS", "FIGURES"]

CALL_TARGETS = {TURN: 165, CALL: 150, WRITE: None, BATCHED: None}
IMPORT_TARGET_S = 0.35
FANOUT = (
    ("cpu_s", "CPU", "s", 2.5),
    ("wall_s", "wall", "s", 2.0),
    ("peak_bytes", "peak memory each", "bytes", 1.4),
)
IMPORT = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"


class Timed(NamedTuple):
    """A figure with a floor: two samples, the operations and rounds of a full and of a quick run."""

    what: str
    unit: str
    floor: Sample
    ours: Sample
    target: float | None
    operations: int = 300
    quick: int = 100
    rounds: int = 9

    def rows(self, name: str, *, quick: bool) -> list[Row]:
        """Measure it."""
        count, rounds = (self.quick, min(self.rounds, 3)) if quick else (self.operations, self.rounds)
        floor, ours = (partial(run, sample, count) for sample in (self.floor, self.ours))
        return [compared(name, self.what, self.unit, alternate(rounds, floor, ours), self.target)]


def run(sample: Sample, count: int) -> float:
    """Take one sample on an event loop of its own."""
    return asyncio.run(sample(count))


def worked(work: str, what: str, target: float | None) -> Timed:
    """Return the figure of the work *work* of `COUNTED`."""
    return Timed(what, "µs CPU", samples.floor_work(work), samples.work(work), target)


TIMED = {
    "turn": worked(TURN, "turn without tools", 3.5),
    "call": worked(CALL, "tool call, in sequence", 3.0),
    "write": worked(WRITE, "tool call that writes, intent first", None),
    "parallel": worked(BATCHED, "tool call, ten at a time", 1.8),
    "tell": Timed("tell a busy actor (recorded)", "µs CPU", samples.floor_tell, samples.tell, 4.0, 500, 500),
    "ask": Timed("ask (a turn on record)", "µs CPU", samples.floor_ask, samples.ask, 2.0),
    "spawn": Timed("spawn", "µs CPU", samples.floor_spawn, samples.spawn, 2.0, 1000, 300),
    "idle": Timed("idle actor, memory", "bytes", memory.floor_idle, memory.idle, 1.0, 2000, 500, 1),
    "durable": Timed(
        "durable append, 64 in flight, FULL", "µs CPU", durable.floor_append, durable.append, 2.0, 12_800, 3200, 5
    ),
}


def fanned(way: str, count: int) -> dict[str, float]:
    """Run one fan-out in a process of its own and return what it measured."""
    command = (sys.executable, "-m", "tests.bench.fanout", way, str(count))
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def fanout(name: str, way: str, *, quick: bool) -> list[Row]:
    """Compare CPU, wall and memory of many children."""
    rows = []
    for count, rounds in ((1000, 3),) if quick else ((1000, 5), (10_000, 5 if way == "spawn" else 3)):
        pairs = [(fanned("floor", count), fanned(way, count)) for _ in range(rounds)]
        for key, what, unit, target in FANOUT:
            each = count if key == "peak_bytes" else 1
            measured = [(floor[key] / each, ours[key] / each) for floor, ours in pairs]
            due = None if key == "wall_s" and count > 1000 else target
            rows.append(compared(name, f"{count} children by {way}: {what}", unit, measured, due))
    return rows


def decided(name: str, *, quick: bool) -> list[Row]:
    """Time a permitting decision for few and for many tools."""
    count = 300 if quick else 2000
    rows = []
    for tools in (10, 1000):
        alone = asyncio.run(deciding.deciding(tools, count))
        whole = asyncio.run(deciding.gathering(tools, count))
        rows.append(Row(name, f"decide, {tools} tools", "µs median", alone))
        rows.append(Row(name, f"gather facts and decide, {tools} tools", "µs median", whole))
    return rows


def imported(name: str, *, quick: bool) -> list[Row]:
    """Time the import in fresh processes, after one that fills the caches."""
    walls = []
    for _ in range(4 if quick else 10):
        command = (sys.executable, "-c", IMPORT.format("orchestrator"))
        walls.append(float(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout))
    return [Row(name, "import orchestrator", "s wall", statistics.median(walls[1:]), target=IMPORT_TARGET_S)]


def called(name: str, *, quick: bool) -> list[Row]:  # noqa: ARG001  # the count is the same however often it is taken
    """Count function calls."""
    return [Row(name, f"function calls, {each}", "calls", counted(each), target=CALL_TARGETS[each]) for each in COUNTED]


FIGURES: dict[str, Callable[..., list[Row]]] = {
    "calls": partial(called, "calls"),
    **{name: partial(figure.rows, name) for name, figure in TIMED.items()},
    "fanout": partial(fanout, "fanout", "spawn"),
    "delegate": partial(fanout, "delegate", "delegate"),
    "decide": partial(decided, "decide"),
    "models": partial(streamed, "models"),
    "sources": partial(started, "sources"),
    "import": partial(imported, "import"),
}
