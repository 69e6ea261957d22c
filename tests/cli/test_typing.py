"""What is typed: keys to a line, lines to a text, a line to an answer. All pure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.approver import Answer, Question, Verdict
from orchestrator.cli.answers import Again, answer_of
from orchestrator.cli.dialogue.editor import Editor, Pressed
from orchestrator.cli.dialogue.lines import Lines
from orchestrator.cli.line import lines_of, width

LEFT, RIGHT, UP, DOWN, HOME, END, DELETE = "\x1b[D", "\x1b[C", "\x1b[A", "\x1b[B", "\x1b[H", "\x1b[F", "\x1b[3~"


def typed(keys: str, editor: Editor | None = None) -> list[str | Pressed]:
    """Press *keys* and return the lines that they complete, and the ends."""
    editor = editor or Editor()
    came = (editor.press(key) for key in keys)
    return [each for each in came if each is not Pressed.GOES_ON]


@pytest.mark.parametrize(
    "keys, line",
    [
        ("hello\n", "hello"),
        ("hello\r", "hello"),
        ("helo\x7flo\n", "hello"),
        ("helo\x08\x08llo\n", "hello"),
        ("\x7f\x7fa\n", "a"),
        (f"ello{HOME}h\n", "hello"),
        ("ello\x01h\x05!\n", "hello!"),
        (f"hllo{LEFT}{LEFT}{LEFT}e{END}!\n", "hello!"),
        (f"hxello{HOME}{RIGHT}{DELETE}\n", "hello"),
        ("hxello\x01\x06\x04\n", "hello"),
        ("one two  \x17three\n", "one three"),
        ("one two\x15three\n", "three"),
        ("one two\x01\x06\x06\x06\x0b\n", "one"),
        ("\x1bOD\x1b[5;3~\x1b[200~a\x1b[201~\n", "a"),
        ("a\x00\x02\x06\x1bxb\n", "ab"),
        ("日本語\x7f👍🏽é\n", "日本👍🏽é"),
        ("a\tb\n", "a\tb"),
        ("\n", ""),
    ],
)
def test_a_key_means_what_it_means_in_every_shell(keys: str, line: str) -> None:
    assert typed(keys) == [line]


def test_ctrl_d_ends_the_input_on_an_empty_line_only() -> None:
    assert typed("\x04") == [Pressed.END]
    assert typed("ab\x04\x01\x04\n\x04") == ["b", Pressed.END]


def test_the_arrows_go_through_what_was_typed_before_and_back_to_what_was_begun() -> None:
    editor = Editor()
    assert typed(f"one\ntwo\ntwo\n\nbeg{UP}{UP}{UP}!\n", editor) == ["one", "two", "two", "", "one!"]
    typed(f"beg{UP}{UP}{DOWN}{DOWN}{DOWN}un", editor)
    assert editor.text == "begun"


def test_a_secret_line_is_shown_as_nothing_and_not_remembered() -> None:
    editor = Editor(secret=True)
    typed("key", editor)
    assert editor.shown(80) == ("", 0)
    assert typed(f"\n{UP}\n", editor) == ["key", ""]


@given(st.text(max_size=60), st.integers(min_value=-3, max_value=40))
def test_whatever_is_typed_fits_into_its_row_and_holds_nothing_that_moves_the_cursor(keys: str, columns: int) -> None:
    editor = Editor()
    typed(keys, editor)
    shown, behind = editor.shown(columns)
    assert width(shown) <= max(0, columns)
    assert 0 <= behind <= width(shown)
    assert all(piece.isprintable() for piece in shown)


@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc",)), max_size=200))
def test_text_without_control_characters_is_the_line_that_was_typed(text: str) -> None:
    assert typed(f"{text}\n") == [text]


def test_a_very_long_line_is_taken_in_and_shown_at_once() -> None:
    editor = Editor()
    typed("x日" * 100_000, editor)
    assert editor.shown(10) == ("x日x日x日", 0)
    assert typed("\n", editor) == ["x日" * 100_000]


def test_wide_letters_take_two_cells_and_marks_none() -> None:
    assert [width(text) for text in ("abc", "日本", "e\u0301", "\u200d")] == [3, 4, 1, 0]


def test_text_of_others_keeps_its_lines_and_loses_what_moves_the_cursor() -> None:
    assert lines_of("a\n\tb\x1b[2Jc\r\x07\u202e\udc80\u2028d") == "a\n    b [2Jc     d"
    assert lines_of("👩\u200d🚀") == "👩\u200d🚀"


def texts(*lines: str) -> list[str]:
    """Return the texts that *lines* make whole."""
    held = Lines()
    return [text for line in lines if (text := held.add(line)) is not None]


@pytest.mark.parametrize(
    "lines, whole",
    [
        (("one", "two"), ["one", "two"]),
        (("one \\", "two\\", "three"), ["one \ntwo\nthree"]),
        (('"""', "one", "  two \\", '"""', "x"), ["one\n  two \\", "x"]),
        (('"""one', 'two"""'), ["one\ntwo"]),
        (('"""one"""',), ["one"]),
        (('say """x"""',), ['say """x"""']),
        (('"""', "/quit", '"""'), ["/quit"]),
    ],
)
def test_a_backslash_or_three_quotes_make_one_text_of_several_lines(lines: tuple[str, ...], whole: list[str]) -> None:
    assert texts(*lines) == whole


def test_a_command_is_one_plain_line_with_one_slash() -> None:
    held = Lines()
    for line, command in (("/quit", True), ("//etc", False), ("a /quit", False), (" /quit", False)):
        text = held.add(line)
        assert text is not None
        assert held.command(text) is command
    assert held.add('"""') is None
    assert held.begun
    text = held.add('/quit"""')
    assert text is not None
    assert not held.command(text)


def test_what_was_begun_can_be_dropped() -> None:
    held = Lines()
    held.add("one\\")
    assert (held.drop(), held.begun, held.drop()) == (True, False, False)
    assert held.add("two") == "two"


QUESTION = Question("a1", "s1", "boss", "pay", "Pays.", '{"to":"A","amount":10}', "A", 0)


@pytest.mark.parametrize(
    "line, answer",
    [
        ("y", Answer("a1", Verdict.APPROVE, "k", "terminal")),
        (" YES  fine ", Answer("a1", Verdict.APPROVE, "k", "terminal", "fine")),
        ("n", Answer("a1", Verdict.REJECT, "k", "terminal")),
        ("no too much", Answer("a1", Verdict.REJECT, "k", "terminal", "too much")),
        ('e {"to": "B"}', Answer("a1", Verdict.APPROVE, "k", "terminal", arguments='{"to": "B"}')),
        ("a to", Answer("a1", Verdict.APPROVE, "k", "terminal", always=("to",))),
        ("always to, amount", Answer("a1", Verdict.APPROVE, "k", "terminal", always=("to", "amount"))),
        ("", None),
        ("   ", None),
    ],
)
def test_a_line_below_a_question_is_its_answer(line: str, answer: Answer | None) -> None:
    assert answer_of(line, QUESTION, "k") == answer


@pytest.mark.parametrize(
    "line, told",
    [
        ("maybe", ""),
        ("yesterday", ""),
        ("e", "these are no arguments"),
        ("e [1]", "these are no arguments"),
        ("e {", "these are no arguments"),
        ("a", "name the fields that must be the same; there are: to, amount"),
        ("a too", "the call has no field 'too'; there are: to, amount"),
    ],
)
def test_a_line_that_is_no_answer_is_asked_about_again(line: str, told: str) -> None:
    with pytest.raises(Again) as again:
        answer_of(line, QUESTION, "k")
    assert str(again.value).startswith(told)
