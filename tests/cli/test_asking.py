"""The person at the terminal: one question at a time, shown as it would run, and what is typed is for the one shown."""

from __future__ import annotations

import asyncio
import io
import os
import pty
import sys
from typing import TYPE_CHECKING

import pytest

from orchestrator.approver import Answer, Question, Verdict
from orchestrator.cli.asking import TerminalAsker

if TYPE_CHECKING:
    from collections.abc import Iterator


class Paper(io.StringIO):
    """What is shown; ``choices`` counts how often an answer was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.choices = asyncio.Semaphore(0)

    def flush(self) -> None:
        """A choice was offered."""
        self.choices.release()


def question(name: str) -> Question:
    """A question of this name."""
    return Question(name, "s1", "boss/c", "pay", "Pays.", f'{{"to":"{name}\u202e"}}', "", 0)


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Where to type what the terminal of this process reads."""
    head, tail = pty.openpty()
    with os.fdopen(tail) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        yield head
    os.close(head)


async def test_of_two_questions_at_once_the_second_is_shown_when_the_first_is_answered(keyboard: int) -> None:
    shown = Paper()
    asker = TerminalAsker("the key", shown)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        one, two = group.create_task(asker.ask(question("a1"))), group.create_task(asker.ask(question("a2")))
        await shown.choices.acquire()
        assert ('"a1' in shown.getvalue(), '"a2' in shown.getvalue()) == (True, False)
        os.write(keyboard, b"y\n")
        await shown.choices.acquire()
        os.write(keyboard, b"n too much\n")
    assert one.result() == Answer("a1", Verdict.APPROVE, "the key", "terminal")
    assert two.result() == Answer("a2", Verdict.REJECT, "the key", "terminal", "too much")


async def test_a_question_that_is_withdrawn_takes_no_line_from_the_next(keyboard: int) -> None:
    shown = Paper()
    asker = TerminalAsker("the key", shown)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        one = group.create_task(asker.ask(question("a1")))
        await shown.choices.acquire()
        one.cancel()
        await asyncio.wait([one])
        two = group.create_task(asker.ask(question("a2")))
        await shown.choices.acquire()
        os.write(keyboard, b"no\n")
    assert one.cancelled()
    assert two.result() == Answer("a2", Verdict.REJECT, "the key", "terminal")


async def test_a_character_that_does_not_print_is_shown_as_its_escape(keyboard: int) -> None:
    shown = Paper()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        asked = group.create_task(TerminalAsker("the key", shown).ask(question("a1")))
        await shown.choices.acquire()
        os.write(keyboard, b"\n")
    assert asked.result() is None
    assert '{"to":"a1\\u202e"}' in shown.getvalue()
