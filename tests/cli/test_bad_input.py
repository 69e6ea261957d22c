"""What cannot be used is refused with exit code 2, in words that name place, fault and remedy; nothing is made."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.desk import Desk, Said

BROKEN = """\
name: broken
agnts: {}
agents:
  a: {role: chld, instructions: "x"}
steps:
  - {id: one, agent: b, prompt: "Do {nope}"}
"""


def refused(desk: Desk, said: Said, *parts: str) -> None:
    """Hold a refusal to its form: exit code 2, words on standard error, nothing made, nothing half-written."""
    assert said.code == 2
    assert said.out == ""
    assert said.err.startswith("orchestrator: ")
    assert "Traceback" not in said.err
    for part in parts:
        assert part in said.err
    assert [path for path in desk.made() if path not in ("reports", "work")] == []


@pytest.mark.parametrize("words", [("check", "broken.yaml"), ("run", "broken.yaml", "--model", "playbook:plays.py")])
def test_every_fault_of_a_workflow_is_told_at_once_with_line_and_column(desk: Desk, words: tuple[str, ...]) -> None:
    desk.put("broken.yaml", BROKEN)
    said = desk.say(*words)
    refused(desk, said, "broken.yaml:2:1: ", "broken.yaml:4:13: ", "broken.yaml:6:22: ", "broken.yaml:6:37: ")
    assert "Did you mean 'agents'?" in said.err


def test_a_broken_agent_file_is_told_at_its_own_line(desk: Desk) -> None:
    desk.put("agents/a.yaml", 'role: child\ninstructions: "x"\ntols: [read_file]\n')
    desk.put("w.yaml", "name: w\nagents:\n  a: {file: agents/a.yaml}\nsteps:\n  - {id: one, agent: a, prompt: p}\n")
    refused(desk, desk.run(what="w.yaml"), "agents/a.yaml:3:1: ", "Did you mean 'tools'?")


def test_an_agent_file_of_its_own_is_checked_as_one(desk: Desk) -> None:
    desk.put("fine.yaml", 'role: child\ninstructions: "x"\ntools: [read_file]\nchildren: [of_the_workflow]\n')
    said = desk.say("check", "fine.yaml")
    assert (said.code, said.out, said.err) == (0, "fine.yaml: fine\n", "")
    desk.put("odd name.yaml", 'role: reviewer\ninstructions: "x"\ntools: [diff_patch_workspace_file, red_file]\n')
    refused(desk, desk.say("check", "odd name.yaml"), "odd name.yaml:3:36: ", "Did you mean 'read_file'?")
    desk.put("writer.yaml", 'role: reviewer\ninstructions: "x"\ntools: [diff_patch_workspace_file]\n')
    refused(desk, desk.say("check", "writer.yaml"), "writer.yaml:1:1: ", "reviewer")
    desk.put("short.yaml", "role: child\n")
    refused(desk, desk.say("check", "short.yaml"), "short.yaml:1:1: ", "instructions")
    desk.put("twice.yaml", "role: child\nrole: run\ninstructions: x\n")
    refused(desk, desk.say("check", "twice.yaml"), "twice.yaml:2:1: ")


@pytest.mark.parametrize(
    "content",
    [bytes(range(256)) * 8, b"", b"\x00", b"- a\n- b\n", b"text", b"a: &x 1\nb: *x\n", b"{" * 5000, b"\xff\xfea\x00"],
)
def test_a_file_that_is_no_workflow_is_refused_in_words(desk: Desk, content: bytes) -> None:
    desk.put("w.yaml", content)
    refused(desk, desk.run(what="w.yaml"), "w.yaml:")
    refused(desk, desk.say("check", "w.yaml"), "w.yaml:")
    said = desk.say("check", "w.yaml", "--json")
    assert said.code == 2
    assert said.err == ""
    assert all({"place", "line", "column", "message", "remedy"} == fault.keys() for fault in json.loads(said.out))


@pytest.mark.parametrize("name", ["missing.yaml", "folder.yaml", "loop.yaml", "missing/deep.yaml"])
def test_a_workflow_that_cannot_be_read_is_refused_by_name(desk: Desk, name: str) -> None:
    (desk.folder / "folder.yaml").mkdir()
    (desk.folder / "loop.yaml").symlink_to("loop.yaml")
    refused(desk, desk.run(what=name), name, "cannot be read")


@pytest.mark.parametrize("workspace, fault", [("missing", "there is no such folder"), ("plays.py", "is not a folder")])
def test_a_workspace_that_is_no_folder_is_refused(desk: Desk, workspace: str, fault: str) -> None:
    said = desk.say("run", "tidy.yaml", "--model", "playbook:plays.py", "--workspace", workspace)
    refused(desk, said, str(desk.folder / workspace), fault)


def test_a_workspace_that_holds_the_state_folder_is_refused_and_no_copy_is_left(desk: Desk) -> None:
    said = desk.say("run", "tidy.yaml", "--model", "playbook:plays.py", "--workspace", ".")
    refused(desk, said, "the copy would lie inside its source")


@pytest.mark.parametrize(
    "model, fault",
    [
        ("nope:gpt", "this release has no such provider"),
        ("playbook", "a model is written provider:model"),
        ("playbook:", "the name of a model is missing behind playbook:"),
        ("openai:gpt@http://me:secret@host/v1", "a key belongs into the environment"),
        ("openai-compatible:gpt", "set OPENAI_BASE_URL"),
        ("playbook:missing.py", "there is no file missing.py"),
        ("playbook:ws", "there is no file ws"),
        ("playbook:raises.py", "raises.py does not run: RuntimeError: boom"),
        ("playbook:exits.py", "exits.py does not run: SystemExit: 0"),
        ("playbook:syntax.py", "syntax.py does not run: SyntaxError"),
        ("playbook:binary.py", "binary.py does not run: "),
        ("playbook:nothing.py", "nothing.py defines no PLAYS"),
        ("playbook:wrong.py", "wrong.py defines no PLAYS"),
    ],
)
def test_a_model_that_leads_nowhere_is_refused_with_the_reason(desk: Desk, model: str, fault: str) -> None:
    desk.put("raises.py", 'raise RuntimeError("boom")')
    desk.put("exits.py", "raise SystemExit(0)")
    desk.put("syntax.py", "def (")
    desk.put("binary.py", bytes(range(256)))
    desk.put("nothing.py", "X = 1")
    desk.put("wrong.py", 'PLAYS = {"a": "text"}')
    refused(desk, desk.run(model=model), fault, "playbook:FILE.py")


def test_a_workflow_without_a_model_is_refused_and_told_how_to_name_one(desk: Desk) -> None:
    refused(desk, desk.say("run", "tidy.yaml"), "needs a model", "--model provider:model")


@pytest.mark.parametrize("words", [("run", "nope"), ("check", "nope"), ("run", "mend.yml")])
def test_an_unknown_product_or_file_is_refused(desk: Desk, words: tuple[str, ...]) -> None:
    refused(desk, desk.say(*words), words[1])


def newer(path: Path) -> None:
    """Make a database that a later release has written, as far as SQLite is asked."""
    with sqlite3.connect(path) as file:
        version = file.execute("PRAGMA user_version").fetchone()[0]
        file.execute(f"PRAGMA user_version = {version + 1000}")
    file.close()


COMMANDS = [
    ("run", "tidy.yaml", "--model", "playbook:plays.py", "--workspace", "ws"),
    ("sessions", "list"),
    ("sessions", "show", "s1"),
    ("sessions", "events", "s1"),
    ("sessions", "resume", "s1"),
]


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize("kind", ["folder", "garbage", "text", "newer", "scheme", "beneath a file", "no file"])
def test_a_store_that_cannot_be_used_is_refused_before_anything_is_made(
    desk: Desk, words: tuple[str, ...], kind: str
) -> None:
    place = desk.folder / "store.db"
    url = f"sqlite:///{place}"
    if kind == "folder":
        place.mkdir()
    elif kind == "garbage":
        place.write_bytes(bytes(range(256)) * 32)
    elif kind == "text":
        place.write_text("not a database, but long enough to be read as one\n" * 100)
    elif kind == "newer":
        assert desk.run("--store", url).code == 0
        for path in sorted(desk.home.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        newer(place)
    elif kind == "beneath a file":
        url = f"sqlite:///{desk.folder / 'plays.py' / 'store.db'}"
    else:
        url = "nope:store" if kind == "scheme" else "sqlite:///"
    before = place.read_bytes() if place.is_file() else b""
    refused(desk, desk.say(*words, "--store", url), "store")
    assert (place.read_bytes() if place.is_file() else b"") == before
    assert desk.made() == []


@pytest.mark.parametrize("command", ["show", "events", "resume"])
def test_an_unknown_session_is_refused_and_close_ids_are_named(desk: Desk, command: str) -> None:
    said = desk.run("--json")
    session = json.loads(said.out)["session"]
    for name, hint in (("nope", "list the sessions"), (f"{session[:-1]}x", session)):
        refused_now = desk.say("sessions", command, name)
        assert (refused_now.code, refused_now.out) == (2, "")
        assert f"no session {name!r}" in refused_now.err
        assert hint in refused_now.err


@pytest.mark.parametrize(
    "words, fault",
    [
        (("bogus",), "bogus"),
        (("sessions", "bogus"), "bogus"),
        (("run", "tidy.yaml", "--bogus"), "--bogus"),
        (("run",), "what"),
        (("run", "tidy.yaml", "more.yaml"), "more.yaml"),
        (("sessions", "events", "s1", "--after", "x"), "after"),
        (("sessions", "show"), "session"),
        (("run", "tidy.yaml", "--workspace"), "workspace"),
    ],
)
def test_words_that_are_no_command_are_refused_and_help_is_named(
    desk: Desk, words: tuple[str, ...], fault: str
) -> None:
    refused(desk, desk.say(*words), fault, "orchestrator --help")


@pytest.mark.parametrize("report", ["plays.py", "plays.py/deep/report"])
def test_a_report_folder_that_cannot_be_is_refused_before_the_run(desk: Desk, report: str) -> None:
    refused(desk, desk.run("--report", report), "--report", "plays.py is not a folder")
    assert not desk.home.exists()


def test_a_report_that_cannot_be_written_at_the_end_is_told_and_leaves_no_half_file(desk: Desk) -> None:
    (desk.folder / "report" / "report.md" / "taken").mkdir(parents=True)
    said = desk.run("--report", "report")
    assert said.code == 2
    assert "--report" in said.err
    assert "Traceback" not in said.err
    assert sorted(path.name for path in (desk.folder / "report").iterdir()) == ["report.md"]


@pytest.mark.parametrize("words", [COMMANDS[0], ("sessions", "list"), ("sessions", "resume", "s1")])
@pytest.mark.parametrize("home", ["plays.py", "plays.py/deep"])
def test_a_state_folder_that_cannot_be_is_refused_by_every_command_that_needs_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], home: str
) -> None:
    monkeypatch.setenv("ORCHESTRATOR_HOME", home)
    refused(desk, desk.say(*words), "plays.py", "ORCHESTRATOR_HOME")


def test_the_doctor_names_a_state_folder_that_cannot_be_and_the_remedy(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCHESTRATOR_HOME", "plays.py")
    said = desk.say("doctor")
    assert said.code == 1
    assert "missing  state folder" in said.out
    assert "set ORCHESTRATOR_HOME" in said.out
    found = {item["name"]: item for item in json.loads(desk.say("doctor", "--json").out)}
    assert not found["state folder"]["there"]
    assert found["python"]["there"]


def test_an_agent_file_is_no_workflow_and_the_command_to_talk_with_it_is_told(desk: Desk) -> None:
    refused(desk, desk.run(what="reader.md"), "is one agent, no workflow; talk with it: orchestrator chat reader.md")


@pytest.mark.parametrize(
    "words",
    [
        ("check", "agent.md"),
        ("chat", "agent.md", "--model", "playbook:plays.py"),
        ("check", "\x1b[2J.yaml"),
        ("run", "\x1b[2J.yaml", "--model", "playbook:plays.py"),
        ("run", "tidy.yaml", "--model", "playbook:\x1b[2J.py"),
        ("chat", "agent.md", "--\x1b[2J"),
    ],
)
def test_a_name_in_a_fault_moves_no_cursor(desk: Desk, words: tuple[str, ...]) -> None:
    desk.put("agent.md", '---\nname: a\nrole: run\nchildren: ["\\e[2J.md"]\n---\nx\n')
    said = desk.say(*words)
    assert said.code == 2
    assert "[2J" in said.err
    assert "\x1b" not in said.err + said.out


def test_the_folder_of_a_session_moves_no_cursor_in_the_list(desk: Desk) -> None:
    folder = desk.folder / "\x1b[2J"
    folder.mkdir()
    assert desk.say("run", "tidy.yaml", "--model", "playbook:plays.py", "--workspace", str(folder)).code == 0
    said = desk.say("sessions", "list")
    assert "[2J" in said.out
    assert "\x1b" not in said.out
