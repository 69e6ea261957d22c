"""``run support-desk``: the person at a real terminal, and a case that waits for an answer from another command."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.products.support_case import booked

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.desk import Desk

ROOT = Path(__file__).parents[2]
OWN_TERMINAL = """\
import fcntl, termios
from orchestrator.cli.main import main
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
main()
"""
CHOICE = "y yes, n no"


class Screen(NamedTuple):
    """What a command at a terminal came to."""

    code: int
    text: str


def at_a_terminal(folder: Path, *keys: str, early: str = "") -> Screen:
    """Run the case at a terminal; each of *keys* is typed once the desk asks, or asks again, and *early* before all."""
    head, tail = pty.openpty()
    command = (sys.executable, "-c", OWN_TERMINAL, "run", "support-desk", "--workspace", str(folder / "ws"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "200"}
    os.write(head, early.encode())
    shown = b""
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=tail, stdout=tail, stderr=tail, start_new_session=True
    ) as process:
        os.close(tail)
        try:
            for number, key in enumerate(keys, 1):
                shown = _read(head, shown, number)
                os.write(head, key.encode())
            shown = _read(head, shown)
            code = process.wait(20)
        finally:
            process.kill()
            os.close(head)
    return Screen(code, shown.decode(errors="replace").replace("\r\n", "\n"))


def _read(head: int, shown: bytes, choices: int | None = None) -> bytes:
    """Return what the terminal shows once it has offered that many *choices*, or all when the command has ended."""
    while choices is None or shown.count(CHOICE.encode()) < choices:
        ready, _, _ = select.select([head], [], [], 20)
        assert ready, f"nothing more came: {shown.decode(errors='replace')}"
        try:
            piece = os.read(head, 65_536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    return shown


ANSWERS: dict[str, tuple[tuple[str, ...], int, int, str]] = {
    "yes": (("y\n",), 0, 1, "refunded 10.00 on invoice i-302"),
    "yes in capitals": ((" YES \n",), 0, 1, "refunded 10.00 on invoice i-302"),
    "no with a reason": (("n the seat is in use\n",), 1, 0, "The reason: the seat is in use"),
    "an empty line": (("\n",), 1, 0, "was not run"),
    "the end of the input": (("\x04",), 1, 0, "was not run"),
    "another word, then yes": (("maybe\n", "y\n"), 0, 1, "refunded 10.00 on invoice i-302"),
}


@pytest.mark.parametrize("keys, code, rows, told", ANSWERS.values(), ids=ANSWERS)
def test_the_person_at_the_terminal_is_shown_what_would_run_and_answers(
    desk: Desk, keys: tuple[str, ...], code: int, rows: int, told: str
) -> None:
    screen = at_a_terminal(desk.folder, *keys)
    assert screen.code == code
    assert 'asks to run execute_refund: {"account":"c-17","amount":"10.00","invoice":"i-302"}' in screen.text
    assert told in screen.text
    assert screen.text.count(CHOICE) == len(keys)
    assert "Traceback" not in screen.text
    assert len(booked(desk.folder / "ws")) == rows


def test_what_was_typed_before_the_question_is_no_answer_to_it(desk: Desk) -> None:
    screen = at_a_terminal(desk.folder, "n\n", early="y\ny\n")
    assert (screen.code, booked(desk.folder / "ws")) == (1, [])
    assert "a person said no" in screen.text


def test_nothing_is_drawn_over_a_question(desk: Desk) -> None:
    screen = at_a_terminal(desk.folder, "y\n")
    assert "\x1b[" not in screen.text


def test_ctrl_c_at_the_question_stops_at_once_and_the_key_that_was_told_answers_later(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = at_a_terminal(desk.folder, "\x03")
    assert screen.code == 130
    assert booked(desk.folder / "ws") == []
    session = told(screen.text, r"sessions resume (\S+)")
    key = told(screen.text, r"approver key (\S+)")
    assert desk.say("sessions", "resume", session).code == 1
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{key}\n"))
    assert desk.say("approvals", "approve", session, "a0001").code == 0
    assert desk.say("sessions", "resume", session).code == 0
    assert booked(desk.folder / "ws") == [("i-302", 1000)]


def told(text: str, pattern: str) -> str:
    """What a command said, where *pattern* has its group."""
    found = re.search(pattern, text)
    assert found is not None
    return found[1]


class Parked(NamedTuple):
    """A case that waits: its session, its approver's key, its folder."""

    session: str
    key: str
    folder: Path


@pytest.fixture
def park(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Parked]:
    """Begin a case in a folder of this name, with nobody at the terminal."""

    def go(name: str) -> Parked:
        (desk.folder / name).mkdir(exist_ok=True)
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        said = desk.say("run", "support-desk", "--workspace", name, "--json")
        assert said.code == 1
        outcome = json.loads(said.out)
        assert (outcome["waiting"], outcome["ok"]) == (["a0001"], False)
        assert "nobody has answered" in Path(outcome["report"]["report.md"]).read_text()
        session = outcome["session"]
        assert session in said.err
        return Parked(session, told(said.err, r"approver key (\S+)"), desk.folder / name)

    return go


def answer(desk: Desk, monkeypatch: pytest.MonkeyPatch, case: Parked, *words: str, key: str | None = None) -> Any:
    """Answer a case with a key: its own, unless another is given."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{case.key if key is None else key}\n"))
    return desk.say("approvals", words[0], case.session, "a0001", *words[1:])


def test_a_case_that_waits_says_how_to_answer_and_goes_on_after_the_answer(
    desk: Desk, park: Callable[[str], Parked], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = park("ws")
    waits = desk.say("sessions", "resume", case.session)
    assert waits.code == 1
    assert f"orchestrator approvals show {case.session} a0001" in waits.err
    assert f"orchestrator sessions resume {case.session}" in waits.err
    assert booked(case.folder) == []
    said = answer(desk, monkeypatch, case, "approve", "--by", "ada")
    assert said.code == 0
    assert f"orchestrator sessions resume {case.session}" in said.out
    assert booked(case.folder) == []
    assert desk.say("sessions", "resume", case.session).code == 0
    assert booked(case.folder) == [("i-302", 1000)]


def test_an_answer_to_a_case_that_is_over_is_refused_and_leaves_it_closed(
    desk: Desk, park: Callable[[str], Parked], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = park("ws")
    assert answer(desk, monkeypatch, case, "approve").code == 0
    assert desk.say("sessions", "resume", case.session).code == 0
    for key in (case.key, "guessed"):
        assert answer(desk, monkeypatch, case, "approve", key=key).code == 2
        assert [row["status"] for row in json.loads(desk.say("sessions", "list", "--json").out)] == ["closed"]
    assert booked(case.folder) == [("i-302", 1000)]


def test_what_is_to_be_typed_next_names_the_store_where_it_is_not_the_usual_one(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    said = desk.say("run", "support-desk", "--workspace", "ws", "--store", "sqlite:///other.db", "--json")
    case = Parked(json.loads(said.out)["session"], told(said.err, r"approver key (\S+)"), desk.folder / "ws")
    resume = f"orchestrator sessions resume {case.session} --store sqlite:///other.db"
    assert resume in said.err
    assert resume in answer(desk, monkeypatch, case, "approve", "--store", "sqlite:///other.db").out
    assert desk.say(*resume.split()[1:]).code == 0
    assert booked(case.folder) == [("i-302", 1000)]


def test_a_no_ends_the_case_without_a_refund_and_its_reason_is_in_the_report(
    desk: Desk, park: Callable[[str], Parked], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = park("ws")
    assert answer(desk, monkeypatch, case, "reject", "--reason", "the seat is in use").code == 0
    ended = desk.say("sessions", "resume", case.session, "--json")
    assert (ended.code, booked(case.folder)) == (1, [])
    outcome = json.loads(ended.out)
    assert ("the seat is in use" in outcome["headline"], outcome["waiting"]) == (True, [])
    assert "rejected by approver" in Path(outcome["report"]["report.md"]).read_text()
    report = json.loads(Path(outcome["report"]["report.json"]).read_text())
    assert report["case"]["refunded"] is False
    assert [(each["approval"], each["approved"], each["by"]) for each in report["approvals"]] == [
        ("a0001", False, "approver")
    ]


@pytest.mark.parametrize("content", [b"no database at all", None])
def test_a_database_that_cannot_be_read_is_told_and_is_no_missing_customer(desk: Desk, content: bytes | None) -> None:
    if content is None:
        (desk.folder / "ws" / "support.db").mkdir()
    else:
        desk.put("ws/support.db", content)
    said = desk.say("run", "support-desk", "--workspace", "ws")
    assert (said.code, "no customer" in said.err, "Traceback" in said.err) == (1, False, False)
    assert "database" in said.err


def test_the_key_of_one_case_answers_no_other(
    desk: Desk, park: Callable[[str], Parked], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = park("one"), park("two")
    for key in (two.key, "guessed", one.key[:-1]):
        refused = answer(desk, monkeypatch, one, "approve", key=key)
        assert (refused.code, "key does not fit" in refused.err, key in refused.err) == (2, True, False)
    assert answer(desk, monkeypatch, two, "approve").code == 0
    shown = json.loads(desk.say("approvals", "list", "--every", "--json").out)
    assert [(each["session"], each["status"]) for each in shown] == [
        (one.session, "pending"),
        (two.session, "approved"),
    ]
    (waits,) = desk.say("approvals", "list").out.splitlines()
    assert waits.startswith(f"{one.session} a0001  pending  support-desk/desk-0002: execute_refund {{")
    assert desk.say("sessions", "resume", two.session).code == 0
    assert (booked(one.folder), booked(two.folder)) == ([], [("i-302", 1000)])


def test_an_answer_while_the_session_runs_in_another_process_is_refused_in_words_and_changes_nothing(
    desk: Desk, park: Callable[[str], Parked], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = park("ws")
    desk.put("held.py", HELD)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(desk.folder / "held.py"), str(desk.home / "sessions.db"), case.session]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        refused = answer(desk, monkeypatch, case, "approve")
        process.communicate("let go\n", timeout=20)
    assert refused.code == 2
    assert "Traceback" not in refused.err
    assert case.session in refused.err
    assert case.key not in refused.err
    assert answer(desk, monkeypatch, case, "approve").code == 0


HELD = """\
import asyncio, sys
from orchestrator.journal.store import open_store

async def main():
    store = open_store(f"sqlite:///{sys.argv[1]}")
    log, _ = await store.resume(sys.argv[2])
    print("held", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await log.close("open")
    await store.close()

asyncio.run(main())
"""
