"""A real process is killed (SIGKILL) at named places and resumed by another: no effect twice, no outcome lost."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from actors.messages import CallFinished, Outcome, StopReason
from orchestrator.journal.records import ActorSpawned, CallIntended, TurnAccepted, TurnEnded, decode
from orchestrator.journal.sqlite import SqliteStore
from tests.supervision.scene import faults

if TYPE_CHECKING:
    from orchestrator.journal.records import Entry

ROOT = Path(__file__).parents[2]
LINES = {"first", "1", "2", "4", "front", "behind", "last"}


class Run:
    """One session over several processes."""

    def __init__(self, folder: Path) -> None:
        self.store, self.ledger, self.handle = folder / "journal.db", folder / "ledger", folder / "handle"

    def go(self, place: str = "nowhere") -> int:
        """Run a process that dies at *place*; return its exit code."""
        command = [sys.executable, "-m", "tests.crash.program", f"sqlite:///{self.store}"]
        done = subprocess.run(
            [*command, str(self.ledger), str(self.handle), place],
            cwd=ROOT,
            capture_output=True,
            timeout=30,
            check=False,
        )
        assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
        return done.returncode

    def written(self) -> Counter[str]:
        """How often each line is in the ledger."""
        return Counter(self.ledger.read_text().split()) if self.ledger.exists() else Counter()

    async def entries(self) -> tuple[Entry, ...]:
        """What is on record."""
        store = SqliteStore(self.store)
        session = msgspec.json.decode(self.handle.read_bytes())["session"]
        try:
            return tuple(decode(data) for data in await store.read(session))
        finally:
            await store.close()


async def settled(run: Run) -> tuple[Entry, ...]:
    """Hold the ended session to what must always be true; return its entries.

    A line is written once, or its call was answered "may have happened": the process died between intent and effect.
    """
    entries = await run.entries()
    assert faults(entries) == []
    assert [line for line, times in run.written().items() if times > 1] == []
    assert LINES - run.written().keys() <= unknown(entries)
    return entries


def unknown(entries: tuple[Entry, ...]) -> set[str]:
    """The lines whose calls were answered "may have happened"."""
    lines = {(e.actor, e.record.call): e.record.arguments for e in entries if isinstance(e.record, CallIntended)}
    results = [(e.actor, e.record.result) for e in entries if isinstance(e.record, CallFinished)]
    doubtful = [(actor, result.call_id) for actor, result in results if result.outcome is Outcome.UNKNOWN]
    return {msgspec.json.decode(lines[call])["line"] for call in doubtful}


PLACES = [
    "request 0",
    "before first",
    "after first",
    "request 1",
    "before 2",
    "after 2",
    "request 2",
    "request of front 1",
    "after front",
    "request of front 3",
    "end of front",
    "delivery from worker-0002",
    "before behind",
    "end of behind",
    "delivery from worker-0003",
    "request 4",
]


@pytest.mark.requirement("I9", "I10", "I14", "B48", "B71")
@pytest.mark.parametrize("place", PLACES)
async def test_a_killed_process_is_resumed_to_the_end_with_no_effect_twice_and_every_outcome_once(
    place: str, tmp_path: Path
) -> None:
    run = Run(tmp_path)
    assert run.go(place) == -signal.SIGKILL
    assert run.go() == 0
    entries = await settled(run)
    spawned = [entry.actor for entry in entries if isinstance(entry.record, ActorSpawned)]
    assert spawned == ["boss", "boss/worker-0002", "boss/worker-0003"]
    accepted = [entry.actor for entry in entries if isinstance(entry.record, TurnAccepted)]
    assert accepted.count("boss/worker-0003") == 1
    if place.startswith(("before", "after")):
        assert place.partition(" ")[2] in unknown(entries)


@pytest.mark.requirement("B71", "I9")
async def test_killed_in_a_batch_of_four_with_one_hanging_the_finished_three_are_kept_and_not_run_again(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path)
    assert run.go("hang") == -signal.SIGKILL
    before = [e.record.result for e in await run.entries() if isinstance(e.record, CallFinished)]
    assert {result.text for result in before} == {"appended first", "appended 1", "appended 2", "appended 4"}
    assert run.go() == 0
    entries = await settled(run)
    assert run.written() == Counter(LINES)
    hung = [e.record.result for e in entries if isinstance(e.record, CallFinished) and e.record.result.name == "hang"]
    assert [result.outcome for result in hung] == [Outcome.UNKNOWN]


@pytest.mark.requirement("I14")
async def test_killed_twice_in_the_same_model_request_the_turn_fails_and_the_session_goes_on(tmp_path: Path) -> None:
    run = Run(tmp_path)
    for _ in range(2):
        assert run.go("request 2") == -signal.SIGKILL
    assert run.go() == 0
    entries = await run.entries()
    assert faults(entries) == []
    assert max(run.written().values()) == 1
    ends = [e.record for e in entries if isinstance(e.record, TurnEnded) and e.actor == "boss"]
    assert ends[0].reason is StopReason.FAILED
    assert "twice at the same place" in ends[0].detail
    assert ends[-1].reason is StopReason.COMPLETED
    assert run.written().keys() >= {"first", "1", "2", "4"}


@pytest.mark.requirement("I9")
async def test_killed_at_one_place_after_another_the_session_still_comes_to_its_end(tmp_path: Path) -> None:
    run = Run(tmp_path)
    for place in ("after first", "request 1", "before 2", "request of front 1", "after behind"):
        assert run.go(place) == -signal.SIGKILL
    assert run.go() == 0
    assert {"first", "2", "behind"} <= unknown(await settled(run))
    assert "2" not in run.written()
