"""``support-desk`` is killed around the booking of a refund, and taken up by another process: money moves at most once.

As a program: ``python -m tests.products.test_support_desk_killed PLACE WORD…`` is the command line in a process that
kills itself ``before`` or ``after`` the booking, or ``never``.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.cli.main import main
from orchestrator.products.support_desk.database import Desk
from tests.products.support_case import booked

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]


class Case:
    """A case in a database of its own, and the processes that work on it."""

    def __init__(self, folder: Path) -> None:
        self.workspace, self.home, self.report = folder / "desk", folder / "home", folder / "report"
        self.workspace.mkdir()

    def go(self, place: str, *words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        """Run the command line with *words* in a process that ends at *place*."""
        command = [sys.executable, "-m", "tests.products.test_support_desk_killed", place, *words]
        environment = {**os.environ, "ORCHESTRATOR_HOME": str(self.home)}
        return subprocess.run(
            command, cwd=ROOT, env=environment, input=typed, capture_output=True, text=True, timeout=30, check=False
        )

    def asked(self) -> tuple[str, str]:
        """Begin, and return the session and its approver's key once the refund waits for a person."""
        words = ("run", "support-desk", "--workspace", str(self.workspace), "--report", str(self.report))
        began = self.go("never", *words)
        assert (began.returncode, booked(self.workspace)) == (1, [])
        key, session = re.search(r"approver key (\S+)", began.stderr), re.search(r"session +(\S+)", began.stderr)
        assert key is not None
        assert session is not None
        return session[1], key[1]

    def records(self, session: str) -> list[dict[str, Any]]:
        """What is on record."""
        return [
            json.loads(line)["record"] for line in self.go("never", "sessions", "events", session).stdout.splitlines()
        ]

    def data(self) -> dict[str, Any]:
        """The report."""
        found: dict[str, Any] = json.loads((self.report / "report.json").read_text())
        return found


@pytest.mark.requirement("I8", "I9")
@pytest.mark.parametrize("place, rows", [("before", []), ("after", [("i-302", 1000)])])
def test_a_refund_killed_around_its_booking_is_never_booked_again_and_the_desk_is_told(
    tmp_path: Path, place: str, rows: Sequence[tuple[str, int]]
) -> None:
    case = Case(tmp_path)
    session, key = case.asked()
    assert case.go("never", "approvals", "approve", session, "a0001", typed=f"{key}\n").returncode == 0
    assert case.go(place, "sessions", "resume", session).returncode == -signal.SIGKILL
    assert booked(case.workspace) == rows
    for _ in range(2):
        resumed = case.go("never", "sessions", "resume", session)
        assert (resumed.returncode, "Traceback" in resumed.stderr) == (1, False)
        assert booked(case.workspace) == rows
    records = case.records(session)
    (told,) = [each["result"] for each in records if each.get("result", {}).get("name") == "execute_refund"]
    assert (told["outcome"], "may have happened" in told["text"]) == ("unknown", True)
    assert (case.data()["case"]["refunded"], "may have happened" in case.data()["case"]["answer"]) == (False, True)
    shown = json.loads(case.go("never", "sessions", "show", session, "--json").stdout)
    assert len(shown["unresolved"]) == 1
    assert [each["tool"] for each in records if each["type"] == "call_intended"] == ["execute_refund"]


@pytest.mark.requirement("I8")
def test_a_yes_given_while_no_process_runs_is_used_once_however_often_the_session_is_taken_up(tmp_path: Path) -> None:
    case = Case(tmp_path)
    session, key = case.asked()
    assert case.go("never", "approvals", "approve", session, "a0001", typed=f"{key}\n").returncode == 0
    for _ in range(2):
        assert case.go("never", "sessions", "resume", session).returncode == 0
        assert booked(case.workspace) == [("i-302", 1000)]
    assert case.data()["case"]["refunded"] is True


def play(place: str, words: Sequence[str]) -> None:
    """Be the command line that kills itself at *place*."""
    booking = Desk.refund

    def refund(self: Desk, key: str, account: str, invoice: str, cents: int, by: str) -> str:
        if place == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        told = booking(self, key, account, invoice, cents, by)
        if place == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return told

    Desk.refund = refund  # type: ignore[method-assign]
    sys.argv[:] = ["orchestrator", *words]
    main()


if __name__ == "__main__":
    play(sys.argv[1], sys.argv[2:])
