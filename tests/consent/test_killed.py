"""A real process is killed (SIGKILL) around an approval: the question, the answer and the effect survive, each once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from actors.messages import CallFinished, Outcome, StopReason
from orchestrator.journal.consent import ApprovalAnswered, ApprovalAsked
from orchestrator.journal.records import CallIntended, TurnEnded, decode
from orchestrator.journal.sqlite import SqliteStore
from tests.consent.office import KEY
from tests.supervision.scene import faults

if TYPE_CHECKING:
    from orchestrator.journal.records import Entry

ROOT = Path(__file__).parents[2]
KILLED = -signal.SIGKILL


class Run:
    """One session over several processes."""

    def __init__(self, folder: Path) -> None:
        self.store, self.ledger, self.handle = folder / "journal.db", folder / "ledger", folder / "handle"

    def go(self, place: str = "nowhere", answer: str = "") -> int:
        """Run a process that dies at *place*; return its exit code."""
        command = [sys.executable, "-m", "tests.consent.program", f"sqlite:///{self.store}"]
        done = subprocess.run(
            [*command, str(self.ledger), str(self.handle), place, answer],
            cwd=ROOT,
            capture_output=True,
            timeout=30,
            check=False,
        )
        assert done.returncode in (0, KILLED), done.stderr.decode()
        return done.returncode

    def paid(self) -> list[str]:
        """What the tool really did."""
        return self.ledger.read_text().splitlines() if self.ledger.exists() else []

    async def entries(self) -> tuple[Entry, ...]:
        """What is on record."""
        store = SqliteStore(self.store)
        session = msgspec.json.decode(self.handle.read_bytes())["session"]
        try:
            return tuple(decode(data) for data in await store.read(session))
        finally:
            await store.close()

    async def records(self, kind: type[Any]) -> list[Any]:
        """The records of one kind."""
        return [entry.record for entry in await self.entries() if isinstance(entry.record, kind)]

    async def over(self) -> None:
        """Hold the ended session to what must always be true."""
        entries = await self.entries()
        assert faults(entries) == []
        ends = [entry.record for entry in entries if isinstance(entry.record, TurnEnded)]
        assert [end.reason for end in ends] == [StopReason.COMPLETED] * 2


@pytest.mark.requirement("B63", "I8")
async def test_killed_before_the_answer_the_question_is_still_there_and_the_answer_counts(tmp_path: Path) -> None:
    run = Run(tmp_path)
    assert run.go("parked") == KILLED
    assert run.go() == 0
    assert run.paid() == []
    assert len(await run.records(ApprovalAsked)) == 1
    assert run.go(answer="yes") == 0
    assert run.paid() == ["A 10"]
    await run.over()


@pytest.mark.requirement("B63", "I8")
async def test_killed_after_the_answer_before_the_effect_the_approved_call_runs_once(tmp_path: Path) -> None:
    run = Run(tmp_path)
    assert run.go("answered", "yes") == KILLED
    assert run.paid() == []
    assert run.go() == 0
    assert run.go() == 0
    assert run.paid() == ["A 10"]
    assert len(await run.records(ApprovalAnswered)) == 1
    await run.over()


@pytest.mark.requirement("I8", "I9")
@pytest.mark.parametrize("place", ["before the effect", "after the effect"])
async def test_killed_in_the_effect_the_yes_is_used_and_the_call_is_in_doubt(tmp_path: Path, place: str) -> None:
    run = Run(tmp_path)
    assert run.go(place, "yes") == KILLED
    assert run.go(answer="yes") == 0
    assert run.go(answer="yes") == 0
    assert run.paid() == (["A 10"] if place.startswith("after") else [])
    assert len(await run.records(CallIntended)) == 1
    results = [record.result for record in await run.records(CallFinished) if record.result.name == "pay"]
    assert [result.outcome for result in results] == [Outcome.UNKNOWN]
    await run.over()


@pytest.mark.requirement("I8")
async def test_killed_after_the_end_nothing_is_run_or_asked_again(tmp_path: Path) -> None:
    run = Run(tmp_path)
    assert run.go("the end", "yes") == KILLED
    assert run.go(answer="yes") == 0
    assert run.paid() == ["A 10"]
    assert len(await run.records(ApprovalAsked)) == 1
    await run.over()


@pytest.mark.requirement("I8", "I14")
async def test_a_turn_that_waits_for_a_person_is_not_failed_by_any_number_of_kills(tmp_path: Path) -> None:
    run = Run(tmp_path)
    for _ in range(4):
        assert run.go("parked") == KILLED
    assert await run.records(TurnEnded) == []
    assert run.go(answer="yes") == 0
    assert run.paid() == ["A 10"]
    await run.over()


@pytest.mark.requirement("I8")
def test_the_files_that_a_killed_process_leaves_do_not_hold_the_key(tmp_path: Path) -> None:
    assert Run(tmp_path).go("answered", "yes") == KILLED
    for path in tmp_path.rglob("*"):
        assert KEY.encode() not in path.read_bytes()
