"""What a run shows while it runs: plain lines in a file, a tree on a terminal, and neither in the other's way."""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.progress import stages_of
from orchestrator.journal.fold import fold
from orchestrator.journal.records import Entry
from orchestrator.journal.work import Stage, StageStarted, StepFinished

if TYPE_CHECKING:
    from tests.cli.desk import Desk

ROOT = Path(__file__).parents[2]
COMMAND = (
    sys.executable, "-m", "orchestrator.cli.main", "run", "tidy.yaml", "--model", "playbook:plays.py", "--workspace",
    "ws",
)  # fmt: skip


def on_a_terminal(desk: Desk, columns: int = 80, **more: str) -> tuple[int, str]:
    """Run on a terminal of so many columns; return the exit code and all that it was sent."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {key: os.environ[key] for key in ("PATH", "HOME", "ORCHESTRATOR_HOME") if key in os.environ}
    environment |= {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "LANG": "C.UTF-8", **more}
    with subprocess.Popen(COMMAND, cwd=desk.folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs) as it:
        os.close(theirs)
        seen = bytearray()
        while piece := read(ours):
            seen += piece
        code = it.wait(30)
    os.close(ours)
    return code, seen.decode(errors="replace")


def read(terminal: int) -> bytes:
    """The next piece; empty when everybody on the other side is gone."""
    try:
        return os.read(terminal, 65536)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return b""


def test_in_a_file_progress_is_one_plain_line_for_each_thing_that_happens(desk: Desk) -> None:
    said = desk.run()
    assert said.code == 0
    lines = said.err.splitlines()
    assert lines[:4] == ["step     one by tidy/a-0002", "done     one", "step     two by tidy/a-0002", "done     two"]
    assert "\x1b" not in said.err + said.out


def test_a_denial_and_a_failure_are_lines_too(desk: Desk) -> None:
    desk.put(
        "plays.py",
        "from orchestrator.models.function import call\n"
        "from actors.messages import ModelReply\n"
        "def a(request):\n"
        "    if any(isinstance(item, ModelReply) for item in request.history):\n"
        "        raise RuntimeError('out of order')\n"
        "    return call('write_all')\n"
        "PLAYS = {'a': a}\n",
    )
    said = desk.run()
    assert said.code == 1
    lines = said.err.splitlines()
    assert [line for line in lines if line.startswith("denied   tidy/a-0002: ")]
    assert [line for line in lines if line.startswith("restart  tidy/a-0002: RuntimeError: out of order")]
    assert [line for line in lines if line.startswith("failed   one: ")]
    assert [line for line in lines if line.startswith("failed   two: a step that it needs has failed: one")]


REVIEWED = """\
name: tidy
agents:
  a: {role: child, instructions: i}
  r: {role: reviewer, instructions: i}
  f: {role: fixer, instructions: i}
steps:
  - {id: one, agent: a, prompt: p, output: {type: array}, review: {by: r, fix_by: f}}
  - {id: each, agent: a, for_each: one, prompt: p, review: {by: r, fix_by: f, max_rounds: 2}}
"""
REVIEWERS = """\
import json
def worker(request):
    return "[1]" if request.turn != "t0001" else "none"
def reviewer(request):
    told = json.loads(request.history[-1].text.rpartition("\\n")[2])
    if told["round"] == 2:
        return json.dumps({"verdict": "accepted", "findings": []})
    found = {"id": "a", "place": "", "severity": "major", "message": "wrong"}
    return json.dumps({"verdict": "changes_wanted", "findings": [found]})
def fixer(request):
    return json.dumps({"items": [{"id": "a", "state": "fixed", "reason": "done"}]})
PLAYS = {"a": worker, "r": reviewer, "f": fixer}
"""


def test_each_turn_of_a_review_is_a_line_that_tells_its_round_and_of_items_only_what_not_all_have(desk: Desk) -> None:
    desk.put("tidy.yaml", REVIEWED)
    desk.put("plays.py", REVIEWERS)
    said = desk.run()
    assert said.code == 0
    lines = said.err.splitlines()
    assert lines[:6] == [
        "step     one by tidy/a-0002",
        "work     one: the answer, corrected by tidy/a-0002",
        "review   one: review round 1 of 3 by tidy/r-0003",
        "fix      one: fixes of review round 1 of 3 by tidy/f-0004",
        "review   one: review round 2 of 3 by tidy/r-0003",
        "done     one",
    ]
    assert lines[6:10] == [
        "step     each by tidy/a-0002/a-0005",
        "fix      each[0]: fixes of review round 1 of 2 by tidy/f-0004/f-0007",
        "review   each[0]: review round 2 of 2 by tidy/r-0003/r-0006",
        "done     each (1 items)",
    ]


def test_on_a_terminal_the_steps_are_drawn_as_a_tree_with_a_bar(desk: Desk) -> None:
    code, seen = on_a_terminal(desk)
    assert code == 0
    assert "██  2/2 steps" in seen
    assert "✓ two (a)" in seen
    assert "\x1b[" in seen
    assert "Traceback" not in seen


@pytest.mark.parametrize("columns", [1, 12, 40, 400])
def test_a_terminal_of_any_width_is_drawn_on(desk: Desk, columns: int) -> None:
    code, seen = on_a_terminal(desk, columns)
    assert code == 0
    assert "Traceback" not in seen


@pytest.mark.parametrize(
    "environment",
    [
        {"TERM": "dumb"},
        {"NO_COLOR": "1"},
        {"TERM": ""},
        {"TERM": "no-such-terminal"},
        {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "latin-1"},
    ],
)
def test_a_terminal_that_can_do_little_breaks_nothing(desk: Desk, environment: dict[str, str]) -> None:
    code, seen = on_a_terminal(desk, **environment)
    assert code == 0
    assert "2 steps, 0 failed" in seen
    assert "Traceback" not in seen


def test_without_colour_the_drawing_has_none(desk: Desk) -> None:
    _, seen = on_a_terminal(desk, NO_COLOR="1")
    assert re.findall(r"\x1b\[(?:3|4|9)[0-9]m", seen) == []


def test_text_from_a_model_moves_no_cursor(desk: Desk) -> None:
    desk.put("plays.py", 'def a(request):\n    raise RuntimeError("\\x1b[2J\\rgone\\x07")\nPLAYS = {"a": a}\n')
    said = desk.run()
    assert said.code == 1
    assert re.findall(r"[\x00-\x08\x0b-\x1f\x7f]", said.err) == []


def test_the_stage_of_each_step_that_is_not_over_can_be_told_from_the_record_alone() -> None:
    records = [
        StageStarted("one", Stage.REVIEW, "r", "t2", 1, 3),
        StageStarted("one", Stage.FIX, "f", "t3", 1, 3),
        StageStarted("two", Stage.REVIEW, "r", "t4", 2, 3, again=True),
        StageStarted("three", Stage.REVIEW, "r", "t5", 1, 1),
        StepFinished("three", ok=True, output=""),
        StageStarted("four", Stage.REVIEW, "r", "", 1, 1),
    ]
    state = fold(Entry(number, 0, "", record) for number, record in enumerate(records, start=1))
    assert stages_of(state) == {
        "one": "fixes of review round 1 of 3",
        "two": "review round 2 of 3, corrected",
    }
