"""``chat`` from a pipe, its beginning and its end, and who it is with."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.dialogue.partner import find_partner
from orchestrator.cli.fault import InputFault
from orchestrator.products.audited import shipped_manifest
from orchestrator.products.manifest import load_manifest
from tests.cli.shop import WORDS, ledger, open_gate, piped, stock
from tests.cli.terminal import ROOT, Terminal
from tests.sources.stage import SERVER, entry

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.desk import Desk

PAY = 'call pay {"to":"A","amount":10}\n'
AGENT = """\
---
name: boss
role: builder
tools: [list_files]
children: [worker.md]
model: playbook:plays.py
---
Do it.
"""
WORKER = "---\nname: worker\nrole: child\ntools: [list_files]\n---\nDo it.\n"


@pytest.fixture
def shop(desk: Desk) -> Path:
    """The folder of the shop."""
    return stock(desk)


def session_of(text: str) -> str:
    """The id of the chat's session."""
    found = re.search(r"session (s[0-9a-f]{12})", text)
    assert found is not None
    return found[1]


def test_each_line_of_a_pipe_is_a_turn_and_standard_output_has_the_answers_alone(shop: Path) -> None:
    said = piped(shop, 'hello\r\ncall look {"text":"日本"}\n\n"""\na\nb\n"""\nlast', *WORDS)
    assert (said.returncode, said.stdout) == (0, "heard: hello\nresult: 日本\nheard: a\nb\nheard: last\n")
    assert "> hello\n" in said.stderr
    assert '· look {"text":"日本"} -> ok\n' in said.stderr
    assert said.stderr.splitlines()[-1].startswith("session s")


def test_commands_work_from_a_pipe_too(shop: Path) -> None:
    said = piped(shop, "/deny look\ncall look\n/tree\n/quit\nnever\n", *WORDS)
    assert said.returncode == 0
    assert "look {} -> denied (denied_by_policy)" in said.stderr
    assert "\nboss  run  idle  1 turn\n" in said.stderr
    assert "never" not in said.stderr


def test_the_chat_ends_when_the_last_line_and_all_that_it_started_have_ended(shop: Path) -> None:
    said = piped(shop, 'start call look {"text":"done"}\n', *WORDS)
    assert said.returncode == 0
    assert "· takes up: worker-0002 completed" in said.stderr
    assert said.stdout.splitlines()[-1] == "result: done"


@pytest.mark.parametrize("text", ["crash\n", '"""\nbegun\n'])
def test_a_turn_that_fails_and_a_text_that_is_not_whole_end_with_1(shop: Path, text: str) -> None:
    said = piped(shop, text, *WORDS)
    assert said.returncode == 1
    assert "Traceback" not in said.stderr


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\xff\xfe\x00\n", b"\xf0\x9f\n", b"a" * 100_000])
def test_whatever_bytes_come_nothing_breaks(shop: Path, data: bytes) -> None:
    said = piped(shop, data, *WORDS)
    assert said.returncode == 0
    assert "Traceback" not in said.stderr


def test_an_agent_that_crashes_again_and_again_ends_the_chat(shop: Path) -> None:
    said = piped(shop, "crash\nhello\n", *WORDS)
    assert (said.returncode, said.stdout) == (1, "")
    assert "· restarted: RuntimeError: boom" in said.stderr
    assert said.stderr.splitlines()[-1].endswith(" is over: boss crashed too often: RuntimeError: boom")


def test_a_closed_standard_input_is_told(shop: Path) -> None:
    command = f"exec {sys.executable} -m orchestrator.cli.main {' '.join(WORDS)} <&-"
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{shop}"}
    done = subprocess.run(command, shell=True, cwd=shop, env=env, capture_output=True, check=False, timeout=60)
    assert done.returncode == 2
    assert b"standard input: is closed" in done.stderr


def test_a_regular_file_and_nothing_at_all_can_be_the_input(shop: Path) -> None:
    (shop / "lines").write_text("one\ntwo\n")
    command = (sys.executable, "-m", "orchestrator.cli.main", *WORDS)
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{shop}"}
    with (shop / "lines").open("rb") as lines:
        done = subprocess.run(command, cwd=shop, env=env, stdin=lines, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"heard: one\nheard: two\n")
    none = subprocess.DEVNULL
    done = subprocess.run(command, cwd=shop, env=env, stdin=none, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.requirement("I8", "B65")
def test_from_a_pipe_a_question_parks_the_turn_and_says_how_to_answer_and_go_on(shop: Path) -> None:
    said = piped(shop, f"{PAY}hello\n", *WORDS)
    assert (said.returncode, said.stdout) == (1, "")
    assert '· asks to run pay: {"amount":10,"to":"A"} (a0001)' in said.stderr
    session = session_of(said.stderr)
    assert f"answer with: orchestrator approvals approve|reject {session} ID" in said.stderr
    assert said.stderr.rstrip().endswith(f"then go on with: orchestrator chat --session {session}")
    key = re.search(r"approver key (\S+)", said.stderr)
    assert key is not None
    assert piped(shop, f"{key[1]}\n", "approvals", "approve", session, "a0001").returncode == 0
    again = piped(shop, "hello\n", "chat", "--session", session)
    assert (again.returncode, again.stdout) == (0, "result: paid 10 to A\nheard: hello\n")
    assert ledger(shop) == ["A 10"]


def test_sessions_lists_a_chat_and_resume_tells_what_takes_it_up(shop: Path, desk: Desk) -> None:
    session = session_of(piped(shop, "hello\n", *WORDS).stderr)
    assert f"{session}  closed" in desk.say("sessions", "list").out
    assert "chat with boss of shop/product.yaml" in desk.say("sessions", "list").out
    refused = desk.say("sessions", "resume", session)
    assert refused.code == 2
    assert f"is a chat; go on with: orchestrator chat --session {session}" in refused.err


def test_a_store_of_ones_own_is_named_in_what_takes_the_chat_up(shop: Path) -> None:
    said = piped(shop, "hello\n", *WORDS, "--store", "sqlite:///own.db")
    session = session_of(said.stderr)
    assert said.stderr.rstrip().endswith(f"orchestrator chat --session {session} --store sqlite:///own.db")
    again = piped(shop, "hi\n", "chat", "--session", session, "--store", "sqlite:///own.db")
    assert (again.returncode, again.stdout) == (0, "heard: hi\n")
    assert "· 1 turn so far; the last said: heard: hello" in again.stderr


def test_a_chat_is_taken_up_from_any_folder(shop: Path, desk: Desk) -> None:
    desk.put("in/boss.md", AGENT)
    desk.put("in/worker.md", WORKER)
    desk.put("in/plays.py", (shop / "plays.py").read_text())
    session = session_of(piped(shop, "hello\n", "chat", "in/boss.md").stderr)
    for words in ((), ("../in/boss.md",), (str(shop / "in" / "boss.md"),)):
        again = piped(shop / "ws", "hi\n", "chat", *words, "--session", session)
        assert (again.returncode, again.stdout) == (0, "heard: hi\n")


def test_a_session_is_taken_up_as_it_was_begun_or_not_at_all(shop: Path, desk: Desk) -> None:
    session = session_of(piped(shop, "hello\n", *WORDS).stderr)
    for words, fault in (
        (("--agent", "boss"), "goes on as it began"),
        (("support-desk",), "is a chat with"),
    ):
        refused = desk.say("chat", *words, "--session", session)
        assert refused.code == 2
        assert fault in refused.err
    assert f"no session 's{session[1:-1]}x'" in desk.say("chat", "--session", f"{session[:-1]}x").err
    run = json.loads(desk.run("--json").out)["session"]
    assert f"go on with: orchestrator sessions resume {run}" in desk.say("chat", "--session", run).err
    (shop / "ws").rename(shop / "moved")
    assert "is gone; put it back" in desk.say("chat", "--session", session).err


@pytest.mark.parametrize(
    "words, fault",
    [
        ((), "nobody to talk with was named"),
        (("suport-desk",), "is neither a product"),
        (("open-catalog",), "the agent needs a model; give --model provider:model"),
        (("worker.md",), "or name it in the file: model: provider:model"),
        (("missing.md",), "missing.md:1:1: "),
        (("broken.md",), "broken.md:2:1: the agent lacks the key 'role'"),
        (("support-desk", "--agent", "des"), "there are: desk. Did you mean 'desk'?"),
        (("support-desk", "--caller", "traine"), "there are: agent, trainee. Did you mean 'trainee'?"),
        (("worker.md", "--caller", "x"), "--caller x: there is none of that name here; leave it out"),
        (("worker.md", "--model", "nope:x"), "model 'nope:x'"),
        (("worker.md", "--model", "playbook:plays.py", "--workspace", "nope"), "there is no such folder"),
        (("worker.md", "--store", "nope:x", "--model", "playbook:plays.py"), "store"),
    ],
)
def test_words_that_lead_nowhere_are_refused_and_nothing_is_made(
    desk: Desk, words: tuple[str, ...], fault: str
) -> None:
    desk.put("worker.md", WORKER)
    desk.put("broken.md", "---\nname: x\n---\nx")
    said = desk.say("chat", *words)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("orchestrator: ")
    assert fault in said.err
    assert "Traceback" not in said.err
    assert desk.made() == []


def test_an_agent_file_is_talked_with_by_its_own_model_and_checked_without_one(shop: Path, desk: Desk) -> None:
    desk.put("in/boss.md", AGENT)
    desk.put("in/worker.md", WORKER)
    desk.put("in/plays.py", (shop / "plays.py").read_text())
    assert desk.say("check", "in/boss.md").out == "in/boss.md: fine\n"
    said = piped(shop, "hello\nask call list_files\n", "chat", "in/boss.md", "--workspace", "ws")
    assert said.returncode == 0
    assert said.stdout.startswith("heard: hello\nresult: result: ")
    assert "  [worker-0002] list_files {} -> ok\n" in said.stderr
    desk.put("in/worker.md", WORKER.replace("tools", "tols"))
    refused = desk.say("check", "in/boss.md")
    assert (refused.code, refused.err) == (
        2, "orchestrator: in/worker.md:4:1: the agent has no key 'tols'. Did you mean 'tools'?\n",
    )  # fmt: skip


def test_each_agent_file_may_name_a_model_of_its_own(shop: Path, desk: Desk) -> None:
    desk.put("boss.md", AGENT)
    desk.put("worker.md", WORKER.replace("role:", "model: playbook:other.py\nrole:"))
    desk.put("other.py", 'PLAYS = {"worker": lambda request: "other"}\n')
    said = piped(shop, "ask x\n", "chat", "boss.md")
    assert (said.returncode, said.stdout) == (0, "result: other\n")


def test_the_tools_of_a_server_that_an_agent_file_names_are_there_and_its_questions_are_asked_in_place(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    question = {"message": "Whom shall I greet?", "requestedSchema": fields}
    script = {"tools": [entry("greet"), entry("look")], "acts": {"greet": "ask"}, "question": question}
    monkeypatch.setenv("GREETER", json.dumps(script))
    head = AGENT.replace("children: [worker.md]", "mcp:\n  s: {command: [python, server], access: read, env: {}}")
    head = head.replace("[python, server]", json.dumps([sys.executable, SERVER])).replace(
        "env: {}", 'env: {SCRIPT: "${GREETER}"}'
    )
    (shop / "boss.md").write_text(head)
    with Terminal(shop, "chat", "boss.md") as terminal:
        terminal.prompt()
        terminal.type("/tools\n")
        terminal.see("permitted       s__look")
        terminal.type("call s__greet\n")
        terminal.see("boss asks to run ask_person")
        terminal.see("Whom shall I greet?")
        terminal.type("y Ada\n")
        terminal.see("· s__greet {} -> ok")
        terminal.see('"name": "Ada"')
        terminal.prompt()
        terminal.type("\x04")
        assert terminal.end() == 0


def test_the_support_desk_is_talked_with_offline_in_a_folder_of_its_own(desk: Desk) -> None:
    said = piped(desk.folder, "Case: Nobody wants 10.00 back on invoice i-302.\n", "chat", "support-desk")
    assert said.returncode == 0
    assert "There is no customer Nobody." in said.stdout
    assert [name for name in desk.made() if name.startswith("work/desk-")]


def test_without_a_name_it_is_the_first_agent_of_the_file_and_the_first_caller_of_it(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(shop)
    boss = find_partner("shop/product.yaml", "", "")
    assert (boss.definition.name, boss.names, boss.caller, boss.asks) == ("boss", ("boss", "worker"), "clerk", True)
    visitor = find_partner("shop/product.yaml", "", "visitor")
    assert (visitor.principal.grants.authorities, visitor.asks) == (frozenset({"shop.read"}), False)
    assert find_partner("shop/product.yaml", "worker", "").definition.name == "worker"
    assert find_partner("mend", "", "").definition.name == "builder"
    assert find_partner("tidy.yaml", "", "").definition.name == "a"
    with pytest.raises(InputFault, match="calls boss, not worker"):
        find_partner("shop/product.yaml", "worker", "clerk")


def test_a_caller_of_a_shipped_catalog_has_what_the_file_gives_it_and_no_more() -> None:
    path = shipped_manifest("open-catalog")
    assert path is not None
    for caller in load_manifest(path).callers:
        partner = find_partner("open-catalog", "", caller.name)
        assert partner.principal.grants == caller.grants
        assert partner.principal.context == caller.context - {"principal", "workspace"}
        assert partner.workspace is ("workspace" in caller.context)
    desk = find_partner("support-desk", "", "")
    assert desk.definition.tools.states is not None
    assert desk.asks


def test_text_streams_as_it_comes_once_and_the_model_is_closed_at_the_end(shop: Path) -> None:
    with Terminal(shop, *WORDS[:4], program="tests.cli.streaming") as terminal:
        terminal.prompt()
        terminal.type("go\n")
        terminal.see("one two")
        assert "three" not in str(terminal.sheet)
        open_gate(shop)
        terminal.see("four")
        terminal.prompt()
        terminal.type("\x04")
        assert terminal.end() == 0
    lines = terminal.sheet.lines
    begin = lines.index("> go")
    assert lines[begin + 1 : begin + 3] == ["one two three [2J", "four"]
    assert str(terminal.sheet).count("two") == 1
    assert terminal.sheet.odd == []
    assert (shop / "closed").read_text() == "playbook:" + str(shop / "plays.py")


def test_a_stream_that_is_stopped_leaves_what_came_and_the_next_turn_streams_anew(shop: Path) -> None:
    with Terminal(shop, *WORDS[:4], program="tests.cli.streaming") as terminal:
        terminal.prompt()
        terminal.type("go\n")
        terminal.see("one two")
        terminal.type("\x03")
        terminal.see("· cancelled")
        terminal.prompt()
        terminal.type("on\n")
        terminal.see("one two", 2)
        open_gate(shop)
        terminal.see("four")
        terminal.type("\x04")
        assert terminal.end() == 0
    assert terminal.sheet.lines.count("one two") == 1
    assert terminal.sheet.lines.count("one two three [2J") == 1


def test_an_agent_whose_tools_ask_nobody_can_still_ask_the_person_at_the_terminal(shop: Path) -> None:
    (shop / "alone.md").write_text(AGENT.replace("children: [worker.md]\n", ""))
    with Terminal(shop, "chat", "alone.md") as terminal:
        terminal.prompt()
        terminal.type("/tools\n")
        terminal.see("needs approval  ask_person")
        terminal.type('call ask_person {"question": "Which one?"}\n')
        terminal.see("boss asks to run ask_person")
        terminal.type("y the second\n")
        terminal.see("the second")
        terminal.prompt()
        terminal.type("\x04")
        assert terminal.end() == 0
