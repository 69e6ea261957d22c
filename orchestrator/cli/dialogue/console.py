"""The person's end of a conversation: what is typed, line by line, and questions that a line answers.

Rules:

- One reader of standard input, whoever waits for a line. A line goes to the question that is shown, and otherwise to
  the conversation. What was typed before a question was shown, whole lines or half of one, is no answer to it.
- At a terminal keys are read one by one and edited here; from a pipe or a file lines come as they are. Reading
  needs no thread, and to cancel it leaves nothing behind. Half a character waits for its rest.
- Lines are taken one at a time: the next is read when the last was taken.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from orchestrator.cli.answers import CHOICE, Again
from orchestrator.cli.dialogue.editor import Editor, Pressed
from orchestrator.cli.dialogue.keyboard import Keyboard
from orchestrator.cli.dialogue.keys import Keys

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from orchestrator.cli.dialogue.screen import Screen

__all__ = ["Console"]

MARK = "> "
Settled = TypeVar("Settled")


@attrs.frozen(eq=False)
class Shown:
    """A question that is shown: *judge* makes an answer of a line, or raises `Again`."""

    judge: Callable[[str], Any]
    editor: Editor
    answer: asyncio.Future[Any]

    def settle(self, line: str) -> str:
        """Take *line* as the answer, and return an empty text; or return why it is none."""
        try:
            settled = self.judge(line)
        except Again as again:
            return str(again) or CHOICE
        if not self.answer.done():
            self.answer.set_result(settled)
        return ""


class Console:
    """Standard input *stdin* (a descriptor) and the *screen*; ``keyboard.over`` tells that the input has ended."""

    def __init__(self, stdin: int, screen: Screen) -> None:
        self.screen = screen
        self.keyboard = Keyboard(stdin)
        self._editor = Editor()
        self._part = ""
        self._resting = False
        self._keys = Keys(stdin) if screen.interactive else None
        self._question: Shown | None = None
        self._one_question = asyncio.Lock()
        self._reading = asyncio.Lock()
        self._waiting: list[str | None] = []
        self._take: Callable[[str | None], Awaitable[None]] | None = None

    async def pump(self, take: Callable[[str | None], Awaitable[None]]) -> None:
        """Hand every line that answers no question to *take*, and ``None`` at the end of the input; then return.

        Ctrl-D on an empty line is an end after which reading goes on. On cancel the terminal is as it was before.
        """
        self._take = take
        with self._keys or nullcontext():
            self._show_typed()
            try:
                while not self.keyboard.over:
                    await self.keyboard.wait()
                    async with self._reading:
                        await self._read()
            finally:
                self.screen.still()
                self.screen.typing("", None, always=False)

    async def ask(
        self, judge: Callable[[str], Settled], *shown: str, mark: str = "? ", secret: bool = False
    ) -> Settled:
        """Show the lines *shown* and return what *judge* makes of the line that is typed then; one question at a time.

        *judge* raises `Again` for a line that is no answer. On cancel the question is withdrawn and takes no line.
        """
        async with self._one_question:
            async with self._reading:
                while self.keyboard.ready() and not self.keyboard.over:
                    await self._read()
                answer: asyncio.Future[Settled] = asyncio.get_running_loop().create_future()
                question = self._question = Shown(judge, Editor(secret=secret), answer)
                for line in shown:
                    self.screen.say(line)
                self.screen.typing(mark, question.editor, always=True)
            try:
                return await answer
            finally:
                self._question = None
                self._show_typed()

    def no_answer(self) -> bool:
        """Take an empty line as what the person says to the question that is shown; return whether one is."""
        if self._question is None:
            return False
        self._judge(self._question, "")
        return True

    def rest(self, *, resting: bool) -> None:
        """Tell whether nothing is going on, so that the prompt stands there though nothing is typed."""
        if resting is not self._resting:
            self._resting = resting
            self._show_typed()

    def clear(self) -> bool:
        """Drop the line that is being typed; return whether there was one."""
        editor = self._editor if self._question is None else self._question.editor
        was = bool(editor.text)
        editor.clear()
        self.screen.refresh()
        return was

    def again(self) -> None:
        """Take the terminal again: the process was stopped and goes on, or the terminal has another width."""
        if self._keys is not None:
            self._keys.take()
        self.screen.refresh()

    def _show_typed(self) -> None:
        if self._question is None:
            self.screen.typing(MARK, self._editor, always=self._resting)

    async def _read(self) -> None:
        """Take in what is there, and hand over the lines that it completes."""
        text = self.keyboard.read()
        if self._keys is None:
            *lines, self._part = (self._part + text).split("\n")
            if self.keyboard.over and self._part:
                lines.append(self._part)
            self._waiting.extend(line.removesuffix("\r") for line in lines)
        else:
            for character in text:
                self._press(character)
            self.screen.refresh()
        if self.keyboard.over:
            self._waiting.append(None)
        while self._waiting and self._take is not None:
            await self._take(self._waiting.pop(0))

    def _press(self, character: str) -> None:
        question = self._question
        editor = self._editor if question is None else question.editor
        pressed = editor.press(character)
        if pressed is Pressed.GOES_ON:
            return
        line = "" if pressed is Pressed.END else pressed
        assert isinstance(line, str)
        self.screen.keep("" if editor.secret else line)
        if question is not None:
            self._judge(question, line)
        else:
            self._waiting.append(None if pressed is Pressed.END else line)

    def _judge(self, question: Shown, line: str) -> None:
        """Settle *question* by *line*, or say why it is not settled."""
        told = question.settle(line)
        if told:
            self.screen.say(told)
            return
        self._question = None
        self._show_typed()
