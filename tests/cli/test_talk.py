"""What a person is told of a session: each text once, each call in one line, nothing that moves the cursor."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from actors.grants import Grants
from actors.messages import (
    CallFinished,
    Denial,
    ModelReplied,
    ModelReply,
    Outcome,
    Retry,
    StopReason,
    ToolCall,
    ToolResult,
    TurnOpened,
    TurnOrigin,
)
from orchestrator.cli.dialogue.editor import Editor
from orchestrator.cli.dialogue.screen import Screen
from orchestrator.cli.dialogue.talk import Talk
from orchestrator.events import Delta, Progressed
from orchestrator.journal.records import ActorRestarted, ActorSpawned, Entry, TurnAccepted, TurnEnded
from tests.cli.terminal import Sheet

if TYPE_CHECKING:
    from orchestrator.journal.records import Record

BOSS, CHILD = "boss", "boss/worker-0002"


class Paper(io.StringIO):
    """A stream that is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        """It is one."""
        return True


class Stage:
    """A talk on paper, and the entries that it is told."""

    def __init__(self) -> None:
        self.paper = Paper()
        self.screen = Screen(self.paper, self.paper, interactive=True)
        self.talk = Talk(self.screen, BOSS)
        self.seq = 0
        for path, parent in ((BOSS, ""), (CHILD, BOSS)):
            number = 2 if parent else 1
            self.add(
                path, ActorSpawned(path.rpartition("/")[2], "f", parent, Grants(), number, background=bool(parent))
            )

    def add(self, actor: str, *records: Record) -> None:
        """Tell *records* about *actor*."""
        for record in records:
            self.seq += 1
            self.talk.entry(Entry(self.seq, 0, actor, record))

    def turn(self, actor: str, turn: str = "t1") -> None:
        """Begin a turn."""
        origin = TurnOrigin.SEND if actor == BOSS else TurnOrigin.DELEGATE
        self.add(actor, TurnAccepted(turn, "go", origin), TurnOpened(turn, "go", origin))

    def stream(self, actor: str, *pieces: str) -> None:
        """Send pieces of text."""
        for piece in pieces:
            self.talk.delta(Delta(actor, piece))

    @property
    def lines(self) -> list[str]:
        """What stands there."""
        sheet = Sheet()
        sheet.write(self.paper.getvalue().replace("\n", "\r\n"))
        assert sheet.odd == []
        return sheet.lines


@pytest.mark.parametrize(
    "pieces, whole, lines",
    [
        (("Hel", "lo"), "Hello", ["Hello", ""]),
        (("Hel",), "Hello", ["Hello", ""]),
        ((), "Hello", ["Hello", ""]),
        (("Hel", "Hello"), "Hello", ["HelHello", ""]),
        (("Bye", "He"), "Hello", ["ByeHe", "Hello", ""]),
        (("a\n", "b\n"), "a\nb\n", ["a", "b", ""]),
        (("\ud83d", "\ude00"), "😀", ["", ""]),
        ((), "", [""]),
    ],
)
def test_a_text_that_streamed_is_not_told_again_when_it_is_whole(
    pieces: tuple[str, ...], whole: str, lines: list[str]
) -> None:
    stage = Stage()
    stage.turn(BOSS)
    stage.stream(BOSS, *pieces)
    stage.add(BOSS, ModelReplied("t1", ModelReply(whole)), TurnEnded("t1", StopReason.COMPLETED, whole))
    assert stage.lines == lines


def test_a_childs_text_is_told_by_lines_behind_its_name_and_breaks_no_text_of_the_root() -> None:
    stage = Stage()
    stage.turn(BOSS)
    stage.turn(CHILD, "t2")
    stage.stream(BOSS, "I wo")
    stage.stream(CHILD, "on", "e\ntw")
    stage.stream(BOSS, "rk")
    stage.add(CHILD, ModelReplied("t2", ModelReply("one\ntwo")), TurnEnded("t2", StopReason.COMPLETED, "one\ntwo"))
    stage.add(BOSS, ModelReplied("t1", ModelReply("I work")))
    assert stage.lines == [
        "  [worker-0002] begins, in the background: go",
        "I wo",
        "  [worker-0002] one",
        "rk",
        "  [worker-0002] two",
        "  [worker-0002] completed",
        "",
    ]


def test_a_turn_that_is_cut_off_ends_its_line_and_says_why() -> None:
    stage = Stage()
    stage.turn(BOSS)
    stage.stream(BOSS, "I was")
    stage.add(BOSS, TurnEnded("t1", StopReason.CANCELLED, "", detail="stopped by a message"))
    stage.turn(BOSS, "t2")
    stage.stream(BOSS, "I am")
    stage.add(BOSS, ActorRestarted(2, "boom\x1b[2J"), ModelReplied("t2", ModelReply("I am back")))
    assert stage.lines == [
        "I was",
        "· cancelled: stopped by a message",
        "I am",
        "· restarted: boom [2J",
        "I am back",
        "",
    ]


DENIED = Denial("denied_by_policy", "w", "boss", 6, "w is not available.", "Ask the user.", Retry.NEVER)


@pytest.mark.parametrize(
    "result, line",
    [
        (ToolResult("1", "w", "fine"), '· w {"a":1} -> ok'),
        (ToolResult("1", "w", "it broke\nbadly", Outcome.ERROR), '· w {"a":1} -> error: it broke badly'),
        (ToolResult("1", "w", "w was stopped.", Outcome.CANCELLED), '· w {"a":1} -> cancelled: w was stopped.'),
        (
            ToolResult("1", "w", DENIED.text, Outcome.DENIED, DENIED),
            '· w {"a":1} -> denied (denied_by_policy): w is not available. Ask the user.',
        ),
    ],
)
def test_a_call_is_one_line_with_its_arguments_and_what_became_of_it(result: ToolResult, line: str) -> None:
    stage = Stage()
    stage.turn(BOSS)
    reply = ModelReply("", (ToolCall("1", "w", '{"a":1}'),))
    stage.add(BOSS, ModelReplied("t1", reply), CallFinished("t1", result))
    assert stage.lines == [line, ""]


def test_long_arguments_are_shown_in_part_and_nothing_in_them_hides() -> None:
    stage = Stage()
    stage.turn(BOSS)
    reply = ModelReply("", (ToolCall("1", "w", '{"a":"\u202e' + "x" * 500 + '"}'),))
    stage.add(BOSS, ModelReplied("t1", reply), CallFinished("t1", ToolResult("1", "w", "fine")))
    assert stage.lines[0].startswith('· w {"a":"\\u202exxx')
    assert stage.lines[0].endswith("x… -> ok")


def test_entries_that_were_seen_before_are_folded_and_not_told() -> None:
    stage = Stage()
    stage.talk.entry(Entry(3, 0, BOSS, TurnAccepted("t1", "go", TurnOrigin.SEND)), aloud=False)
    stage.talk.entry(Entry(4, 0, BOSS, TurnOpened("t1", "go", TurnOrigin.SEND)), aloud=False)
    stage.talk.entry(Entry(5, 0, BOSS, ModelReplied("t1", ModelReply("Hello"))), aloud=False)
    stage.talk.entry(Entry(6, 0, BOSS, TurnEnded("t1", StopReason.FAILED, "Hello")), aloud=False)
    assert stage.lines == [""]
    assert (stage.talk.turns[BOSS], stage.talk.ends) == (1, {"t1": StopReason.FAILED})


def test_the_typed_line_stands_below_whatever_is_told() -> None:
    stage, editor = Stage(), Editor()
    stage.screen.typing("> ", editor, always=True)
    for key in "wait":
        editor.press(key)
    stage.screen.refresh()
    stage.turn(BOSS)
    stage.stream(BOSS, "Hel", "lo\n")
    assert stage.lines == ["Hel", "lo", "> wait"]
    stage.screen.typing("", None, always=False)
    assert stage.lines == ["Hel", "lo", ""]


def test_a_prompt_without_a_typed_line_does_not_stand_in_a_text_that_flows() -> None:
    stage = Stage()
    stage.screen.typing("> ", Editor(), always=True)
    stage.turn(BOSS)
    stage.stream(BOSS, "Hel")
    assert stage.lines == ["Hel"]
    stage.stream(BOSS, "lo\n")
    assert stage.lines == ["Hello", ">"]


def test_what_a_stream_cannot_encode_is_replaced_and_a_reader_that_is_gone_is_noticed() -> None:
    class Latin(Paper):
        encoding = "latin-1"

    class Gone(Paper):
        def write(self, text: str) -> int:
            raise BrokenPipeError(len(text))

    paper = Latin()
    Screen(paper, paper, interactive=False).say("é→日")
    assert paper.getvalue() == "é??\n"
    screen = Screen(Gone(), paper, interactive=False)
    screen.flow("x")
    assert screen.gone


def test_the_progress_of_a_call_is_told_with_its_name_and_how_far_it_is() -> None:
    stage = Stage()
    stage.turn(BOSS)
    stage.add(BOSS, ModelReplied("t1", ModelReply("", (ToolCall("c1", "crawl"),))))
    stage.talk.progress(Progressed(BOSS, "c1", 3, 10, "page\x1b[2J 3"))
    stage.talk.progress(Progressed(BOSS, "c1", 0.5, None, ""))
    stage.talk.progress(Progressed(BOSS, "gone", 1, 1, ""))
    told = "\n".join(stage.lines)
    assert "crawl: 3 of 10, page" in told
    assert "crawl: 0.5\n" in told
    assert "a call: 1 of 1" in told
    assert "\x1b" not in told
