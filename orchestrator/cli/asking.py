"""The person at the terminal as the approver: asked in place, while the call waits."""

from __future__ import annotations

import asyncio
import io
import os
import sys
import termios
from typing import TYPE_CHECKING, TextIO, cast

import anyio

from actors.tools import Approval
from orchestrator.approver import Answer, Approver, Question, new_key
from orchestrator.cli.answers import CHOICE, Again, answer_of, shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.tools import Tool

__all__ = ["TerminalAsker", "approver_for", "plain", "tell_waiting", "told_key"]

MAX_TYPED_BYTES = 4096


class TerminalAsker:
    """Asks at the terminal, one question at a time; what was typed before a question is shown is no answer to it.

    An empty line, or the end of the input, is no answer, and the agent is told that nobody answered. Words that are
    no answer are asked about again.
    """

    def __init__(self, key: str, stream: TextIO) -> None:
        self._key = key
        self._stream = stream
        self._free = asyncio.Lock()

    async def ask(self, question: Question) -> Answer | None:
        """Show exactly what would run and return what the person says. On cancel nothing that is typed is taken."""
        async with self._free:
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
            print("", *shown(question), sep="\n", file=self._stream)
            while True:
                print(CHOICE, file=self._stream, flush=True)
                try:
                    return answer_of(await _typed(), question, self._key)
                except Again as again:
                    if again.args:
                        print(again, file=self._stream)


async def _typed() -> str:
    """Return the next line that is typed, empty at the end of the input. On cancel no line is taken."""
    await anyio.wait_readable(sys.stdin.fileno())
    return os.read(sys.stdin.fileno(), MAX_TYPED_BYTES).decode(errors="replace")


class PlainLines(io.TextIOBase):
    """A terminal that nothing is drawn on twice, so that a question and what is typed below it stay where they are."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write *text* as it is."""
        return self._stream.write(text)

    def flush(self) -> None:
        """Bring what was written to the terminal."""
        self._stream.flush()


def plain(stream: TextIO, approver: Approver | None) -> TextIO:
    """Return where progress is told: lines without a live picture when the same terminal is asked."""
    asked = approver is not None and approver.asker is not None
    return cast("TextIO", PlainLines(stream)) if asked else stream


def told_key(key: str) -> str:
    """Return the line that tells a new approver key."""
    return f"approver key {key} (needed to answer later what agents ask; it is kept nowhere)"


def approver_for(tools: Iterable[Tool], *, sources: bool, resumed: bool, stream: TextIO) -> Approver | None:
    """Return who answers for a run whose tools may need a person: the terminal, or whoever has the key, later.

    With *sources* there are tools of servers, any of which its server may change: a person must be able to say yes. The
    key is told once and kept nowhere: what a run that stops has asked is answered with it. A resumed run always
    parks: the key that counts is the one its session was started with.
    """
    if not sources and all(tool.approval is Approval.NEVER for tool in tools):
        return None
    key = new_key()
    if resumed:
        return Approver(key)
    print(told_key(key), file=stream)
    seen = sys.stdin.isatty() and stream.isatty()  # a question in a file would wait for ever
    return Approver(key, TerminalAsker(key, stream) if seen else None)


def tell_waiting(
    session: str, waiting: tuple[str, ...], where: str, stream: TextIO, go_on: str = "orchestrator sessions resume"
) -> None:
    """Say which approvals a run waits for, how to answer, and the command *go_on* that takes the session up.

    *where* is what each command needs besides to find the session.
    """
    for approval in waiting:
        print(f"waits for {approval}: orchestrator approvals show {session} {approval}{where}", file=stream)
    print(f"answer with: orchestrator approvals approve|reject {session} ID{where}", file=stream)
    print(f"then go on with: {go_on} {session}{where}", file=stream)
