"""One conversation: lines become turns, a turn in flight is steered, Ctrl-C ends the turn and not the session.

Rules:

- At a terminal nothing waits for a turn: a line that comes while one runs steers it. From a pipe each line is a turn,
  one after another, and the chat ends when the last and all that it started have ended.
- Ctrl-C ends the turn that runs; a second one presses on. With no turn it drops the typed line, and on an empty line
  the second in a row ends the chat. Without a terminal it ends the chat at once, as a SIGTERM or SIGHUP always does.
- However it ends, the session is left to be parked, and what runs goes on when it is taken up again.
"""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

from actors.errors import MailboxFull
from actors.loop import Phase
from actors.messages import StopReason
from orchestrator.cli.lines import Lines
from orchestrator.cli.slash import Slash
from orchestrator.events import Delta, Gap
from orchestrator.turn import Stop, Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from orchestrator.cli.console import Console
    from orchestrator.cli.talk import Talk
    from orchestrator.member import Member
    from orchestrator.session import Session
    from orchestrator.supervisor import Supervisor

__all__ = ["Conversation"]

STOPPED = 130
SAID = {
    "steered": "taken up after what runs now",
    "queued": "queued behind what runs now",
}


class Conversation:
    """A person, by *console*, and the root of *session*."""

    def __init__(self, session: Session, supervisor: Supervisor, console: Console, talk: Talk) -> None:
        self._session = session
        self._supervisor = supervisor
        self._console = console
        self._screen = console.screen
        self._talk = talk
        self._root = next(member for member in supervisor.members.values() if member.parent is None)
        self._slash = Slash(console.screen, supervisor, talk, self._root)
        self._lines = Lines()
        self._over: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._moved = asyncio.Event()
        self._warned = False
        self._failed = False
        self._tasks: set[asyncio.Task[Any]] = set()

    async def go(self, heard: int) -> int:
        """Talk until an end; return the exit code. What the journal has after entry *heard* is told.

        Signals are taken from here on, and ignored from the end on: the caller gives them back once all is closed.
        Raises `StoreError` when the journal fails.
        """
        loop = asyncio.get_running_loop()
        for number, handler in self._handlers().items():
            loop.add_signal_handler(number, handler)
        # A turn that never is: only the journal's failure answers this wait before the session is closed.
        fault = self._supervisor.results.wait(self._root, "")
        ends: tuple[asyncio.Future[Any], ...] = (self._over, fault)
        self._spawn(self._show(heard))
        self._spawn(self._console.pump(self._take))
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if fault.done():
                fault.result()
            return self._over.result()
        finally:
            self._end(STOPPED)
            tasks = tuple(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def _handlers(self) -> dict[int, Callable[[], None]]:
        handlers: dict[int, Callable[[], None]] = {
            signal.SIGINT: self._interrupt,
            signal.SIGTERM: lambda: self._end(STOPPED),
            signal.SIGHUP: lambda: self._end(STOPPED),
        }
        if self._screen.interactive:
            handlers |= {signal.SIGCONT: self._console.again, signal.SIGWINCH: self._console.again}
        return handlers

    def _end(self, code: int) -> None:
        if not self._over.done():
            self._over.set_result(code)

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        """A part of the conversation has ended; what it raised ends the conversation."""
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not self._over.done():
            self._over.set_exception(error)

    @property
    def _busy(self) -> bool:
        """Whether a turn of the root is in flight or waits."""
        return bool(self._supervisor.journal.state.actors[self._root.path].waiting)

    async def _show(self, heard: int) -> None:
        """Tell every event as it comes; after a gap, what the journal has of it."""
        journal = self._supervisor.journal
        async for event in self._session.events(after=heard):
            if isinstance(event, Gap):
                for entry in await journal.read(event.first - 1):
                    if entry.seq <= event.last:
                        self._talk.entry(entry)
            elif isinstance(event, Delta):
                self._talk.delta(event)
            else:
                self._talk.entry(event)
            if self._screen.gone or self._root.gone:
                self._end(1)
            self._console.rest(resting=not self._busy)
            self._moved.set()

    async def _take(self, line: str | None) -> None:
        """Take a line, or the end of the input; after the end of the chat nothing is taken."""
        if self._over.done():
            return
        self._warned = False
        if line is None:
            await self._input_over()
            return
        text = self._lines.add(line)
        if text is None or not text.strip():
            return
        if self._lines.command(text):
            await self._command(text)
        else:
            await self._message(text.removeprefix("/") if text.startswith("//") else text)

    async def _command(self, line: str) -> None:
        what = self._slash.run(line)
        if what == "/quit":
            self._end(int(self._failed))
        elif what == "/stop":
            self._screen.say("· stopping everything")
            self._spawn(self._session.send(Stop("tree")))

    async def _message(self, text: str) -> None:
        """Steer the turn in flight by *text*, or begin one with it."""
        if not self._screen.interactive:
            await self._turn(text)
            return
        actor = self._root.actor
        steers = actor.state.phase is not Phase.IDLE and not actor.mailbox.stopping(actor.state.turn)
        try:
            said = await self._session.send(text if steers else Turn(text, self._slash.policy))
        except MailboxFull as full:
            self._screen.say(f"· not taken: {full}")
            return
        if said.how in SAID:
            self._screen.say(f"· {said.how}: {SAID[said.how]}")

    async def _turn(self, text: str) -> None:
        """Run one turn to its end, behind what an earlier chat or a notice began; where a person is needed, end."""
        await self._rest(self._root)
        if not self._busy:
            self._screen.say(f"> {text}")
            said = await self._session.send(Turn(text, self._slash.policy))
            await self._rest(self._root)
            self._failed |= self._talk.ends.get(said.turn) is not StopReason.COMPLETED
        if self._busy:
            self._end(1)

    async def _input_over(self) -> None:
        """The input has ended: so does the chat, without a terminal once nothing moves any more."""
        if not self._screen.interactive:
            if self._lines.begun:
                self._screen.say("· a text was begun and not ended; it was not sent")
                self._failed = True
            await self._rest()
            self._failed |= self._busy
        self._end(int(self._failed))

    async def _rest(self, only: Member | None = None) -> None:
        """Return when no actor, or *only* this one, moves, each idle or waiting for a person, and all that is told."""
        members = self._supervisor.members
        while any(
            each.actor.busy and not each.actor.parked
            for each in tuple(members.values())
            if only is None or each is only
        ):
            await asyncio.wait(set(self._supervisor.tasks), return_when=asyncio.FIRST_COMPLETED)
        while self._talk.state.seq < self._supervisor.journal.seq:
            self._moved.clear()
            await self._moved.wait()

    def _interrupt(self) -> None:
        if self._over.done():
            return
        if not self._screen.interactive:
            self._end(STOPPED)
        elif self._busy:
            self._screen.say("· stopping the turn")
            self._spawn(self._session.send(Stop("turn")))
        elif self._console.asking:
            self._console.no_answer()
        elif self._console.clear() or self._lines.drop():
            self._warned = False
        elif self._warned:
            self._end(STOPPED)
        else:
            self._warned = True
            self._screen.say("· Ctrl-C again, or Ctrl-D, ends the chat")
