"""`mend` is ended in the middle, by SIGKILL or by a polite signal, and taken up by another process."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from actors.messages import CallFinished, Outcome
from orchestrator.journal.records import CallIntended, OutcomeRecorded, SessionResumed, TurnAccepted, TurnEnded, decode
from orchestrator.journal.sqlite import SqliteStore
from orchestrator.journal.work import StepFinished, StepStarted
from tests.products.tree import FILES, fates, held, plant
from tests.supervision.scene import discharges

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from orchestrator.journal.records import Entry

T = TypeVar("T")
ROOT = Path(__file__).parents[2]
DRAFT = re.compile(r"\.[0-9a-f]{16}\.tmp")
TWICE = "the process crashed twice at the same place of this turn"
CHANGED = ["odd pkg/a:b [c] \xe9.py", "safe.py", "warned.py"]


class Case:
    """A tree, a store, a ledger and a report, and the processes that work on them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = plant(folder / "tree")
        self.home, self.ledger, self.report = folder / "home", folder / "ledger", folder / "report"

    def go(self, place: str, number: int, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run the command line with *words* in a process that ends at a place."""
        command = [sys.executable, "-m", "tests.products.killed", place, str(number), str(self.ledger), *words]
        environment = {**os.environ, "ORCHESTRATOR_HOME": str(self.home)}
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True
        ) as process:
            out, err = process.communicate(timeout=60)
        self.group = process.pid
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def is_alone(self) -> bool:
        """Tell whether the last process has left none behind."""
        try:
            os.killpg(self.group, 0)
        except ProcessLookupError:
            return True
        return False

    def start(self, place: str = "never", number: int = 0) -> subprocess.CompletedProcess[str]:
        """Begin."""
        return self.go(place, number, ("run", "mend", "--workspace", str(self.root), "--report", str(self.report)))

    def ask(self, work: Callable[[SqliteStore], Awaitable[T]]) -> T:
        """What *work* finds in the store."""

        async def go() -> T:
            store = SqliteStore(self.home / "sessions.db")
            try:
                return await work(store)
            finally:
                await store.close()

        return asyncio.run(go())

    def session(self) -> str:
        """The one session of the store."""
        (row,) = self.ask(lambda store: store.sessions())
        return row.id

    def resume(self, place: str = "never", number: int = 0) -> subprocess.CompletedProcess[str]:
        """Take the session up."""
        return self.go(place, number, ("sessions", "resume", self.session()))

    def entries(self) -> list[Entry]:
        """What is on record."""
        session = self.session()
        return [decode(data) for data in self.ask(lambda store: store.read(session))]

    def written(self) -> Counter[str]:
        """How often each file was really written."""
        return Counter(self.ledger.read_text().splitlines() if self.ledger.exists() else ())

    def data(self) -> dict[str, Any]:
        """The report."""
        found: dict[str, Any] = json.loads((self.report / "report.json").read_text())
        return found

    def copy(self) -> Path:
        """The copy that was worked on."""
        (found,) = (self.home / "work").glob("*/tree")
        return found


def wrong(entries: list[Entry]) -> list[str]:
    """What must not be in the journal of a run that is over."""
    records = [entry.record for entry in entries]
    accepted = Counter(record.turn for record in records if isinstance(record, TurnAccepted))
    ended = Counter(record.turn for record in records if isinstance(record, TurnEnded))
    outcomes = Counter(record.turn for record in records if isinstance(record, OutcomeRecorded))
    given = discharges(entries)
    finished = Counter(record.key for record in records if isinstance(record, StepFinished))
    found = [f"turn {turn} was accepted {n} times" for turn, n in accepted.items() if n != 1]
    found += [f"turn {turn} has {ended[turn]} ends" for turn in accepted if ended[turn] != 1]
    found += [f"turn {turn} has {n} outcomes" for turn, n in outcomes.items() if n != 1]
    found += [f"the outcome of {turn} was discharged {given[turn]} times" for turn in outcomes if given[turn] != 1]
    found += [f"step {key} finished {n} times" for key, n in finished.items() if n != 1]
    begun = {record.key for record in records if isinstance(record, StepStarted)}
    return found + [f"step {key} never finished" for key in begun - finished.keys()]


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A run that nobody disturbs, to compare with."""
    case = Case(tmp_path_factory.mktemp("calm"))
    done = case.start()
    assert done.returncode == 0, done.stderr
    return case


def like(case: Case, calm: Case) -> None:
    """Hold a run that was taken up to one that was never disturbed."""
    assert fates(case.data()) == fates(calm.data())
    assert case.data()["fates"] == calm.data()["fates"]
    assert (case.report / "changes.patch").read_text() == (calm.report / "changes.patch").read_text()
    assert tree(case) == tree(calm)
    assert calm.written() == Counter(CHANGED)
    at_most_once(case)


def at_most_once(case: Case) -> None:
    """Hold a run to what must be so however often it was ended.

    Several files are written at once, so a process may end between a write and its line in the ledger.
    """
    assert case.written() <= Counter(CHANGED)
    assert wrong(case.entries()) == []


def tree(case: Case) -> dict[str, bytes]:
    """What the copy holds, without the draft of a write that was cut off before it was put in place."""
    return {name: data for name, data in held(case.copy()).items() if not DRAFT.fullmatch(name.rpartition("/")[2])}


def failures(case: Case) -> list[str]:
    """The file of each item that failed, and how its detail ends."""
    linted = next(e.record for e in case.entries() if isinstance(e.record, StepFinished) and e.record.key == "lint")
    paths = [file["path"] for file in json.loads(linted.output)["files"]]
    over = [e.record for e in case.entries() if isinstance(e.record, StepFinished) and e.record.key.startswith("mend[")]
    failed = [(paths[int(r.key[5:-1])], r.detail) for r in over if not r.ok]
    return [f"{path}: {TWICE if TWICE in detail else detail}" for path, detail in failed]


def cut_off(entries: list[Entry]) -> list[str]:
    """The tools of the calls that had begun and not ended when the first process did."""
    begun: dict[tuple[str, str], str] = {}
    for entry in entries:
        if isinstance(entry.record, SessionResumed):
            break
        if isinstance(entry.record, CallIntended):
            begun[entry.actor, entry.record.call] = entry.record.tool
        elif isinstance(entry.record, CallFinished):
            begun.pop((entry.actor, entry.record.result.call_id), None)
    return list(begun.values())


PLACES = [
    ("append", 12),
    ("append", 60),
    ("append", 120),
    ("append", 180),
    ("append", 240),
    ("append", 300),
    ("before", 1),
    ("after", 1),
    ("before", 3),
    ("after", 3),
]


@pytest.mark.requirement("I9", "I10", "I14", "B48", "B71")
@pytest.mark.parametrize("place, number", PLACES)
def test_killed_anywhere_and_resumed_every_finding_has_its_fate_and_nothing_was_written_twice(
    place: str, number: int, tmp_path: Path, calm: Case
) -> None:
    case = Case(tmp_path)
    assert case.start(place, number).returncode == -signal.SIGKILL
    assert not case.report.exists()
    done = case.resume()
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    like(case, calm)
    doubtful = [
        e.record.result.name
        for e in case.entries()
        if isinstance(e.record, CallFinished) and e.record.result.outcome is Outcome.UNKNOWN
    ]
    assert sorted(doubtful) == sorted(cut_off(case.entries()))
    assert doubtful or place == "append"


def test_the_places_of_the_kills_are_spread_over_the_whole_run(calm: Case) -> None:
    length = len(calm.entries())
    numbers = [number for place, number in PLACES if place == "append"]
    assert max(numbers) < length < max(numbers) * 1.5


@pytest.mark.requirement("I9")
def test_killed_again_and_again_it_still_comes_to_its_end(tmp_path: Path, calm: Case) -> None:
    case = Case(tmp_path)
    assert case.start("append", 60).returncode == -signal.SIGKILL
    for place, number in (("append", 90), ("after", 1), ("before", 1)):
        assert case.resume(place, number).returncode == -signal.SIGKILL
    done = case.resume()
    assert done.returncode == 0
    at_most_once(case)
    lost = set(case.data()["failed_files"])
    assert lost <= {path for path in FILES if f"{path}: {TWICE}" in failures(case)}
    kept = [each for each in fates(calm.data()) if each[0].rsplit(":", 2)[0] not in lost]
    assert [each for each in fates(case.data()) if each[0].rsplit(":", 2)[0] not in lost] == kept


@pytest.mark.requirement("I11")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("number", [12, 75, 160])
def test_stopped_by_a_signal_it_says_how_to_go_on_and_goes_on(
    name: str, number: int, tmp_path: Path, calm: Case
) -> None:
    case = Case(tmp_path)
    done = case.start(f"signal:{name}:append", number)
    assert done.returncode == 130, done.stderr
    assert case.is_alone()
    assert "Traceback" not in done.stderr
    assert done.stderr.endswith(f"stopped; go on with: orchestrator sessions resume {case.session()}\n")
    assert not case.report.exists()
    assert case.resume().returncode == 0
    like(case, calm)


@pytest.mark.requirement("I9")
def test_a_write_of_which_nobody_can_tell_whether_it_happened_is_not_repeated_and_told_as_it_is(tmp_path: Path) -> None:
    case = Case(tmp_path)
    for path in case.root.rglob("*.py"):
        path.unlink()
    (case.root / "top.py").write_text("import os\n\nX = 1\n")
    assert case.start("before", 1).returncode == -signal.SIGKILL
    assert case.resume().returncode == 0
    (item,) = case.data()["items"]
    assert item["fate"] == "not applied"
    assert "may have happened" in item["reason"]
    assert case.written() == Counter()
    assert [denial["code"] for denial in case.data()["denials"]] == ["unresolved_effect"]


def test_a_run_that_is_over_is_told_again_when_it_is_resumed(tmp_path: Path, calm: Case) -> None:
    case = Case(tmp_path)
    assert case.start().returncode == 0
    before = case.data()
    done = case.resume()
    assert done.returncode == 0
    assert {**case.data(), "session": ""} == {**before, "session": ""}
    like(case, calm)
