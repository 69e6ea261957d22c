"""``run``, ``sessions`` and their like on good input: exit codes, what is written where, and what ``--json`` prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.products.audited import shipped_names

if TYPE_CHECKING:
    from tests.cli.desk import Desk

ROOT = Path(__file__).parents[2]


def test_a_run_that_succeeds_exits_with_0_and_leaves_a_report_and_a_session(desk: Desk) -> None:
    said = desk.run("--report", "report")
    assert said.code == 0
    assert "2 steps, 0 failed" in said.err
    assert "## two" in (desk.folder / "report" / "report.md").read_text()
    data = json.loads((desk.folder / "report" / "report.json").read_text())
    assert [(o["key"], o["ok"], o["output"]) for o in data["outcomes"]] == [
        ("one", True, "done"),
        ("two", True, "done"),
    ]
    assert sorted(path.name for path in (desk.folder / "report").iterdir()) == ["report.json", "report.md"]
    assert str(desk.folder / "report" / "report.md") in said.out


def test_a_run_that_fails_exits_with_1_and_its_report_says_why(desk: Desk) -> None:
    desk.put("bad.py", 'def a(request):\n    raise RuntimeError("out of order")\nPLAYS = {"a": a}\n')
    said = desk.run("--report", "report", model="playbook:bad.py")
    assert said.code == 1
    assert "Traceback" not in said.err
    assert "out of order" in said.err
    report = (desk.folder / "report" / "report.md").read_text()
    assert "out of order" in report
    assert "a step that it needs has failed: one" in report


def test_a_playbook_that_exits_in_the_middle_fails_its_step_and_not_the_program(desk: Desk) -> None:
    desk.put("exits.py", "import sys\nPLAYS = {'a': lambda request: sys.exit(0)}\n")
    said = desk.run(model="playbook:exits.py")
    assert said.code == 1
    assert "Traceback" not in said.err
    assert "wants to exit the program (0)" in said.err


def test_json_prints_one_object_and_nothing_else_on_standard_output(desk: Desk) -> None:
    said = desk.run("--json")
    told = json.loads(said.out)
    assert told["ok"] is True
    assert told["headline"] == "2 steps, 0 failed"
    assert Path(told["workspace"]).is_dir()
    assert all(Path(path).is_file() for path in told["report"].values())
    assert said.out.count("\n") == 1


def test_the_session_commands_tell_of_the_run_and_their_json_can_be_read(desk: Desk) -> None:
    session = json.loads(desk.run("--json").out)["session"]
    (row,) = json.loads(desk.say("sessions", "list", "--json").out)
    assert (row["id"], row["status"]) == (session, "closed")
    assert session in desk.say("sessions", "list").out
    shown = json.loads(desk.say("sessions", "show", session, "--json").out)
    assert shown["steps"] == {"one": "done", "two": "done"}
    assert shown["unresolved"] == []
    assert "step two: done" in desk.say("sessions", "show", session).out
    lines = [json.loads(line) for line in desk.say("sessions", "events", session).out.splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    after = desk.say("sessions", "events", session, "--after", str(len(lines) - 2)).out.splitlines()
    assert [json.loads(line) for line in after] == lines[-2:]


def test_a_finished_run_is_told_again_by_resume(desk: Desk) -> None:
    first = json.loads(desk.run("--json").out)
    again = desk.say("sessions", "resume", first["session"], "--json")
    assert again.code == 0
    assert json.loads(again.out) == first


HALTS = """\
import asyncio, os, signal

async def a(request):
    if request.history[-1].text == "First.":
        return "done"
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.Event().wait()

PLAYS = {"a": a}
"""


def test_resume_with_another_model_asks_that_one_for_what_is_left_and_the_record_keeps_the_first(desk: Desk) -> None:
    desk.put("halts.py", HALTS)
    desk.put("other.py", 'PLAYS = {"a": lambda request: "the other: " + request.history[-1].text}')
    assert desk.run(model="playbook:halts.py").code == 130
    (before,) = json.loads(desk.say("sessions", "list", "--json").out)
    wrong = desk.say("sessions", "resume", before["id"], "--model", "nobody:x")
    assert (wrong.code, "nobody" in wrong.err) == (2, True)
    said = desk.say("sessions", "resume", before["id"], "--model", "playbook:other.py", "--json")
    assert said.code == 0
    outcomes = json.loads(Path(json.loads(said.out)["report"]["report.json"]).read_text())["outcomes"]
    assert [(o["key"], o["output"]) for o in outcomes] == [("one", "done"), ("two", "the other: Then done")]
    (after,) = json.loads(desk.say("sessions", "list", "--json").out)
    assert after["labels"] == before["labels"]
    assert ["model", f"playbook:{desk.folder / 'halts.py'}"] in after["labels"]


def test_a_session_whose_workflow_has_changed_is_not_resumed(desk: Desk) -> None:
    session = json.loads(desk.run("--json").out)["session"]
    desk.put("tidy.yaml", (desk.folder / "tidy.yaml").read_text().replace("First", "Other"))
    said = desk.say("sessions", "resume", session)
    assert said.code == 2
    assert "was made with" in said.err


@pytest.mark.parametrize("gone", ["tidy.yaml", "plays.py", "tree"])
def test_a_session_whose_parts_are_gone_says_which(desk: Desk, gone: str) -> None:
    told = json.loads(desk.run("--json").out)
    path = Path(told["workspace"]) if gone == "tree" else desk.folder / gone
    path.rename(path.with_name("moved"))
    said = desk.say("sessions", "resume", told["session"])
    assert said.code == 2
    assert gone in said.err
    assert "Traceback" not in said.err


def test_the_empty_lists_of_a_new_state_folder_are_printed_as_such(desk: Desk) -> None:
    assert desk.say("sessions", "list") == (0, "", "")
    assert desk.say("sessions", "list", "--json") == (0, "[]\n", "")


def test_check_without_words_checks_every_product(desk: Desk) -> None:
    assert desk.say("check") == (0, "".join(f"{name}: fine\n" for name in shipped_names()), "")
    assert desk.say("check", "--json") == (0, "[]\n", "")
    assert desk.say("check", "tidy.yaml", "mend").out == "tidy.yaml: fine\nmend: fine\n"


def test_check_knows_a_product_file_and_tells_its_faults_with_line_and_column(desk: Desk) -> None:
    desk.put("product.yaml", "name: p\nagents:\n  a: {role: child, instructions: x, tols: []}\ntools: []\n")
    said = desk.say("check", "product.yaml")
    assert said.code == 2
    assert "product.yaml:3:" in said.err
    assert "'tools' is empty" in said.err


def test_a_store_that_is_not_there_is_not_made_by_looking(desk: Desk) -> None:
    for words in (("sessions", "list"), ("approvals", "list")):
        said = desk.say(*words, "--store", "sqlite:///nope.db")
        assert (said.code, "there is no such file" in said.err) == (2, True)
    assert not (desk.folder / "nope.db").exists()


def test_the_doctor_says_what_is_there(desk: Desk) -> None:
    said = desk.say("doctor")
    assert said.code == 0
    assert "ok       python" in said.out
    assert "ruff" in said.out


def test_the_version_is_one_line(desk: Desk) -> None:
    said = desk.say("--version")
    assert said.code == 0
    assert said.out.count("\n") == 1


def test_without_a_command_the_help_is_shown(desk: Desk) -> None:
    said = desk.say()
    assert said.code == 0
    assert "Usage: orchestrator COMMAND" in said.out


@pytest.mark.parametrize("lines", [0, 1])
def test_a_reader_that_stops_reading_is_no_fault(desk: Desk, lines: int) -> None:
    session = json.loads(desk.run("--json").out)["session"]
    command = [sys.executable, "-m", "orchestrator.cli.main", "sessions", "events", session]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, cwd=desk.folder) as process:
        assert process.stdout
        assert process.stderr
        for _ in range(lines):
            process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) in (0, 1)
