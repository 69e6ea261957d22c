"""``chat`` at a real terminal: turns, steering, approvals in place, Ctrl-C, and taking an earlier chat up."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING

import pytest

from tests.cli.shop import WORDS, ledger, open_gate, stock
from tests.cli.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.desk import Desk

ASKS = 'boss asks to run pay: {"amount":10,"to":"A"}'
PAY = 'call pay {"to":"A","amount":10}\n'
CTRL_C, CTRL_D = "\x03", "\x04"


@pytest.fixture
def shop(desk: Desk) -> Path:
    """The folder of the shop."""
    return stock(desk)


def at(folder: Path, *more: str) -> Terminal:
    """A chat with the boss of the shop."""
    return Terminal(folder, *WORDS, *more)


def session_of(text: str) -> str:
    """The id of the chat's session."""
    found = re.search(r"session (s[0-9a-f]{12})", text)
    assert found is not None
    return found[1]


def until_busy(terminal: Terminal, tool: str, path: str = "boss", times: int = 1) -> None:
    """Ask for the tree until the actor *path* is seen to be busy with *tool*, that many times in all."""
    begin = str(terminal.sheet).count("no command /end")
    for number in range(begin + 1, begin + 200):
        terminal.type("/tree\n", "/end\n")
        sheet = terminal.see("there is no command /end", number)
        if len(re.findall(rf"^ *{path}  .*busy with {tool}", sheet, re.MULTILINE)) >= times:
            return
    raise AssertionError(str(terminal.sheet))


def test_a_line_is_a_turn_and_its_answer_stands_below_it_once(shop: Path) -> None:
    with at(shop) as terminal:
        terminal.prompt()
        terminal.type("hello\n")
        terminal.see("heard: hello")
        terminal.prompt()
        terminal.type('call look {"text":"a b"}\n')
        terminal.see("result: a b")
        terminal.prompt()
        terminal.type("/quit\n")
        assert terminal.end() == 0
        assert terminal.cooked()
    lines = terminal.sheet.lines
    assert lines[0].startswith("chat with boss (run), ")
    begin = lines.index("> hello")
    assert lines[begin : begin + 6] == [
        "> hello",
        "heard: hello",
        '> call look {"text":"a b"}',
        '· look {"text":"a b"} -> ok',
        "result: a b",
        "> /quit",
    ]
    assert lines[begin + 6].startswith("session s")
    assert "; go on with: orchestrator chat --session s" in lines[begin + 6]
    assert terminal.sheet.odd == []
    assert "Traceback" not in str(terminal.sheet)


def test_wide_and_split_characters_and_edited_lines_come_through(shop: Path) -> None:
    with at(shop) as terminal:
        terminal.prompt()
        pizza = "日本🍕é".encode()
        terminal.type(pizza[:4])
        terminal.see("> 日")
        terminal.type(pizza[4:8])
        terminal.see("> 日本")
        terminal.type(pizza[8:], "\x7f\x1b[D\x1b[D!\n")
        terminal.see("heard: 日!本🍕")
        terminal.prompt()
        terminal.type("one \\\n", "two\n")
        terminal.see("heard: one\ntwo")
        terminal.type('"""\n', "/quit\n", '"""\n')
        terminal.see("heard: /quit")
        terminal.type("//etc\n")
        terminal.see("heard: /etc")
        terminal.type("\x1b[2J\x1b]0;x\n")
        terminal.see("heard: 0;x")
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    assert terminal.sheet.odd == []


def test_the_approver_key_that_nothing_asks_for_goes_to_no_agent_and_is_on_no_record(shop: Path) -> None:
    with at(shop) as terminal:
        terminal.prompt()
        key = re.search(r"approver key (\S+)", str(terminal.sheet))
        assert key is not None
        terminal.type(f" {key[1]}\n")
        terminal.see("· this is the approver key; it was not sent")
        terminal.type("hello\n")
        terminal.see("heard: hello")
        terminal.prompt()
        terminal.type("/quit\n")
        assert terminal.end() == 0
    assert f"heard: {key[1]}" not in str(terminal.sheet)
    journals = [path.read_bytes() for path in (shop / "home").rglob("sessions.db*")]
    assert journals
    assert not any(key[1].encode() in journal for journal in journals)


def test_what_is_typed_while_a_turn_runs_steers_it_and_is_said_to(shop: Path) -> None:
    with at(shop) as terminal:
        terminal.prompt()
        terminal.type("gate\n")
        until_busy(terminal, "gate")
        terminal.type("more\n")
        terminal.see("· steered: taken up after what runs now")
        open_gate(shop)
        terminal.see("heard: more")
        terminal.prompt()
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    assert str(terminal.sheet).count("heard: more") == 1


def test_the_outcome_of_a_background_child_is_told_though_nobody_typed(shop: Path) -> None:
    with at(shop) as terminal:
        terminal.prompt()
        terminal.type("start gate\n")
        terminal.see("result: worker-0002 was started in the background")
        terminal.prompt()
        until_busy(terminal, "gate", "boss/worker-0002")
        sheet = terminal.prompt()
        assert "\nboss  run  idle  1 turn\n" in sheet
        assert "\n  boss/worker-0002  child, in the background  busy with gate  0 turns\n" in sheet
        terminal.type("half a li")
        terminal.prompt("> half a li")
        open_gate(shop, "wide open")
        terminal.see("· takes up: worker-0002 completed")
        terminal.see("result: wide open")
        terminal.prompt("> half a li")
        terminal.type("ne\n")
        terminal.see("heard: half a line")
        terminal.prompt()
        terminal.type("/tree\n")
        terminal.see("1 actor has ended")
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    lines = terminal.sheet.lines
    begin = lines.index("  [worker-0002] begins, in the background: gate")
    assert "  [worker-0002] gate {} -> ok" in lines[begin:]
    assert "  [worker-0002] result: wide open" in lines[begin:]


ANSWERS: dict[str, tuple[str, list[str], str]] = {
    "yes": ("y\n", ["A 10"], "result: paid 10 to A"),
    "no with a reason": ("n too much\n", [], "The reason: too much"),
    "an empty line": ("\n", [], "nobody answered a0001"),
    "the end of the input": (CTRL_D, [], "nobody answered a0001"),
    "another word, then yes": ("hm\ny\n", ["A 10"], "result: paid 10 to A"),
    "edited": (
        'e {"to":"B","amount":2}\n',
        ["B 2"],
        'with the arguments as a person edited them: {"amount":2,"to":"B"}',
    ),
    "edited wrongly, then no": ('e {"to":1}\nn\n', [], "the tool would refuse these: at $"),
}


@pytest.mark.requirement("I8")
@pytest.mark.parametrize("keys, paid, told", ANSWERS.values(), ids=ANSWERS)
def test_an_approval_is_answered_where_it_is_asked(shop: Path, keys: str, paid: list[str], told: str) -> None:
    with at(shop) as terminal:
        terminal.prompt()
        terminal.type(PAY)
        terminal.see(ASKS)
        terminal.prompt("?")
        terminal.type(keys)
        terminal.see(told)
        terminal.prompt()
        terminal.type("hello\n")
        terminal.see("heard: hello")
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    assert ledger(shop) == paid


@pytest.mark.requirement("I8")
def test_always_makes_a_rule_for_calls_with_the_same_field(shop: Path) -> None:
    with at(shop) as terminal:
        terminal.prompt()
        terminal.type(PAY)
        terminal.see(ASKS)
        terminal.type("a to\n")
        terminal.see("result: paid 10 to A")
        terminal.prompt()
        terminal.type('call pay {"to":"A","amount":3}\n')
        terminal.see("result: paid 3 to A")
        terminal.prompt()
        terminal.type('call pay {"to":"B","amount":3}\n')
        terminal.see("boss asks to run pay", 2)
        terminal.type("n\n")
        terminal.prompt()
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    assert ledger(shop) == ["A 10", "A 3"]


@pytest.mark.requirement("I8", "B65")
def test_a_childs_question_shows_its_path_and_is_answered_in_place(shop: Path) -> None:
    with at(shop) as terminal:
        terminal.prompt()
        terminal.type(f"ask {PAY}")
        terminal.see('boss/worker-0002 asks to run pay: {"amount":10,"to":"A"}')
        terminal.type("y\n")
        terminal.see("result: result: paid 10 to A")
        terminal.prompt()
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    assert ledger(shop) == ["A 10"]


@pytest.mark.requirement("I8")
def test_lines_typed_before_a_question_is_shown_are_no_answer_and_are_not_lost(shop: Path) -> None:
    with at(shop) as terminal:
        terminal.prompt()
        terminal.type(f"{PAY}y\ny\n")
        terminal.see("· steered", 2)
        terminal.see(ASKS)
        terminal.type("n\n")
        terminal.see("heard: y")
        terminal.prompt()
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    assert ledger(shop) == []


@pytest.mark.requirement("I8")
def test_half_a_line_typed_before_a_question_is_no_part_of_its_answer_and_comes_back(shop: Path) -> None:
    with at(shop) as terminal:
        terminal.prompt()
        terminal.type("gate pay\n")
        until_busy(terminal, "gate")
        terminal.type("y")
        terminal.prompt("> y")
        open_gate(shop)
        terminal.see("boss asks to run pay")
        terminal.prompt("?")
        terminal.type("\n")
        terminal.see("nobody answered")
        terminal.prompt("> y")
        terminal.type("ou\n")
        terminal.see("heard: you")
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    assert ledger(shop) == []


def by_key(terminal: Terminal) -> None:
    """Press Ctrl-C."""
    terminal.type(CTRL_C)


def by_signal(terminal: Terminal) -> None:
    """Send SIGINT."""
    terminal.signal()


@pytest.mark.requirement("B26", "B44")
@pytest.mark.parametrize("interrupt", [by_key, by_signal])
def test_ctrl_c_ends_the_turn_and_not_the_session(shop: Path, interrupt: Callable[[Terminal], None]) -> None:
    with at(shop) as terminal:
        terminal.prompt()
        terminal.type("call stuck\n")
        until_busy(terminal, "stuck")
        interrupt(terminal)
        terminal.see("· cancelled: stopped by a message")
        terminal.prompt()
        terminal.type("hello\n")
        terminal.see("heard: hello")
        terminal.prompt()
        terminal.type("/tree\n")
        terminal.see("boss  run  idle  2 turns")
        terminal.type(CTRL_D)
        assert terminal.end() == 0


def test_ctrl_c_leaves_a_background_child_alone_and_stop_ends_it(shop: Path) -> None:
    with at(shop) as terminal:
        terminal.prompt()
        terminal.type("start gate\n")
        terminal.see("was started in the background")
        terminal.prompt()
        until_busy(terminal, "gate", "boss/worker-0002")
        terminal.type("call stuck\n")
        until_busy(terminal, "stuck")
        terminal.type(CTRL_C)
        terminal.see("· cancelled")
        terminal.prompt()
        until_busy(terminal, "gate", "boss/worker-0002", 2)
        terminal.type("/stop\n")
        terminal.see("[worker-0002] cancelled")
        terminal.prompt()
        terminal.type(CTRL_D)
        assert terminal.end() == 0


def test_a_second_ctrl_c_at_a_stubborn_tool_presses_on_and_harms_nothing(shop: Path) -> None:
    with at(shop) as terminal:
        terminal.prompt()
        terminal.type("call stubborn\n")
        until_busy(terminal, "stubborn")
        terminal.type(CTRL_C)
        terminal.see("· stopping the turn")
        terminal.type(CTRL_C)
        terminal.see("· stopping the turn", 2)
        terminal.see("· cancelled")
        terminal.prompt()
        terminal.type("hello\n")
        terminal.see("heard: hello")
        terminal.prompt()
        terminal.type(CTRL_D)
        assert terminal.end() == 0
        session = session_of(str(terminal.sheet))
    with at(shop, "--session", session) as again:
        assert again.end() == 2
    with Terminal(shop, "chat", "--session", session) as again:
        again.see("2 turns so far; the last said: heard: hello")
        again.prompt()
        again.type("hi\n")
        again.see("heard: hi")
        again.type(CTRL_D)
        assert again.end() == 0


def test_a_line_typed_while_a_turn_is_being_stopped_is_a_turn_of_its_own_with_the_focus_of_now(shop: Path) -> None:
    with at(shop) as terminal:
        terminal.prompt()
        terminal.type("call stubborn\n")
        until_busy(terminal, "stubborn")
        terminal.type(CTRL_C)
        terminal.see("· stopping the turn")
        until_busy(terminal, "stubborn", times=2)
        terminal.type("/deny look\n")
        terminal.type("call look\n")
        terminal.see("· queued: behind what runs now")
        terminal.type(CTRL_C)
        terminal.see("· cancelled")
        terminal.see("· look {} -> denied (denied_by_policy): look is not available to boss in this turn")
        terminal.prompt()
        terminal.type("/tree\n")
        terminal.see("boss  run  idle  2 turns")
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    assert "· steered" not in str(terminal.sheet)


@pytest.mark.requirement("I11")
def test_a_tool_that_never_yields_is_named_and_does_not_keep_the_command(shop: Path) -> None:
    with at(shop) as terminal:
        terminal.prompt()
        terminal.type("call mule\n")
        until_busy(terminal, "mule")
        terminal.type("/quit\n")
        terminal.see("is parked; go on with")
        terminal.see("left behind: boss")
        assert terminal.end() == 0
        assert terminal.cooked()


def test_ctrl_c_at_a_question_withdraws_it_and_ends_the_turn(shop: Path) -> None:
    with at(shop) as terminal:
        terminal.prompt()
        terminal.type(PAY)
        terminal.see(ASKS)
        terminal.prompt("?")
        terminal.type(CTRL_C)
        terminal.see("· cancelled")
        terminal.prompt()
        terminal.type("y\n")
        terminal.see("heard: y")
        terminal.type("/approvals\n")
        terminal.see("nothing waits for an answer")
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    assert ledger(shop) == []


def test_ctrl_c_at_the_prompt_drops_the_line_then_warns_then_ends(shop: Path) -> None:
    with at(shop) as terminal:
        terminal.prompt()
        terminal.type("nonsense")
        terminal.prompt("> nonsense")
        terminal.type(CTRL_C)
        terminal.prompt()
        terminal.type(CTRL_C)
        terminal.see("· Ctrl-C again, or Ctrl-D, ends the chat")
        terminal.prompt()
        terminal.type("hello\n")
        terminal.see("heard: hello")
        terminal.prompt()
        terminal.type(CTRL_C)
        terminal.see("· Ctrl-C again", 2)
        terminal.type(CTRL_C)
        assert terminal.end() == 130
        assert terminal.cooked()
    assert "heard: nonsense" not in str(terminal.sheet)
    assert "is parked; go on with: orchestrator chat --session" in str(terminal.sheet)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_end_parks_the_session_and_what_ran_goes_on_when_it_is_taken_up(
    shop: Path, number: signal.Signals
) -> None:
    with at(shop) as terminal:
        terminal.prompt()
        terminal.type("gate\n")
        until_busy(terminal, "gate")
        terminal.signal(number)
        terminal.see("is parked; go on with")
        assert terminal.end() == 130
        assert terminal.cooked()
    with Terminal(shop, "chat", "--session", session_of(str(terminal.sheet))) as again:
        until_busy(again, "gate")
        open_gate(shop, "again")
        again.see("result: again")
        again.prompt()
        again.type(CTRL_D)
        assert again.end() == 0


@pytest.mark.requirement("I9", "I8")
def test_a_chat_that_was_killed_at_a_question_goes_on_with_it_and_wants_the_key(shop: Path) -> None:
    with at(shop) as terminal:
        terminal.prompt()
        terminal.type("hello\n")
        terminal.see("heard: hello")
        terminal.type(PAY)
        terminal.see(ASKS)
        terminal.process.kill()
        terminal.process.wait()
    key = re.search(r"approver key (\S+)", str(terminal.sheet))
    assert key is not None
    with Terminal(shop, "chat", "--session", session_of(str(terminal.sheet))) as again:
        again.see("approver key, as it was told")
        again.prompt("key?")
        again.type("wrong\n")
        again.see("this is not the key of this session")
        again.type(f"{key[1]}\n")
        again.see("y yes, n no")
        assert again.sheet.lines.count(ASKS) == 2
        again.type("y\n")
        again.see("result: paid 10 to A")
        again.prompt()
        again.type(CTRL_D)
        assert again.end() == 0
    assert key[1] not in str(again.sheet)
    assert ledger(shop) == ["A 10"]


def test_tools_are_shown_with_the_verdict_of_the_next_turn_and_the_focus_changes_it(shop: Path) -> None:
    with at(shop) as terminal:
        terminal.prompt()
        terminal.type("/tools\n")
        screen = terminal.see("collect_child")
        assert "permitted       look           read" in screen
        assert "needs approval  pay            external" in screen
        terminal.type("/deny look\n")
        terminal.see("from the next turn on: every tool, without look")
        terminal.type("/tools\n")
        terminal.see("denied          look           read      denied_by_policy: look is not available")
        terminal.type("call look\n")
        terminal.see("· look {} -> denied (denied_by_policy): look is not available to boss in this turn")
        terminal.prompt()
        terminal.type("/reset\n", "call look\n")
        terminal.see("result: nothing")
        terminal.prompt()
        terminal.type("/allow pay\n")
        terminal.see("from the next turn on: only pay and what looks things up")
        terminal.type("/deny lok\n")
        terminal.see("there is no tool lok. Did you mean 'look'?")
        terminal.type("/tols\n")
        terminal.see("there is no command /tols. Did you mean '/tools'?")
        terminal.type("/help\n")
        terminal.see("/approvals       what waits for a person's answer")
        terminal.type(CTRL_D)
        assert terminal.end() == 0


def test_a_caller_without_the_authority_is_told_the_code_and_the_remedy(shop: Path) -> None:
    with at(shop, "--caller", "visitor") as terminal:
        terminal.prompt()
        terminal.type("/tools\n")
        terminal.see("denied          pay            external  authority_missing: pay needs the authority shop.pay")
        terminal.type(PAY)
        terminal.see("-> denied (authority_missing): pay needs the authority shop.pay, which boss does not hold. The")
        terminal.prompt()
        assert "approver key" not in str(terminal.sheet)
        terminal.type(CTRL_D)
        assert terminal.end() == 0


def test_a_terminal_that_is_hung_up_leaves_a_session_that_can_be_taken_up(shop: Path) -> None:
    with at(shop) as terminal:
        terminal.prompt()
        terminal.type("hello\n")
        terminal.see("heard: hello")
        terminal.hang_up()
        assert terminal.process.wait(20) == 130
    with Terminal(shop, "chat", "--session", session_of(str(terminal.sheet))) as again:
        again.see("1 turn so far; the last said: heard: hello")
        again.prompt()
        again.type(CTRL_D)
        assert again.end() == 0


def test_a_line_longer_than_any_terminals_own_limit_comes_through_whole(shop: Path) -> None:
    with at(shop) as terminal:
        terminal.prompt()
        terminal.paste("ab日" * 10_000)
        terminal.type("!\n")
        terminal.see("ab日!")
        terminal.see("heard: ab日")
        terminal.prompt()
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    assert f"heard: {'ab日' * 10_000}!" in terminal.sheet.lines


@pytest.mark.parametrize("columns", [1, 10, 400])
def test_a_terminal_of_any_width_can_be_typed_at(shop: Path, columns: int) -> None:
    with Terminal(shop, *WORDS, columns=columns) as terminal:
        terminal.see("/help tells")
        terminal.type("a line longer than ten\n")
        terminal.see("heard: a line longer than ten")
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    assert "Traceback" not in str(terminal.sheet)
