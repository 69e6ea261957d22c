"""One conversation: lines become turns, a turn in flight is steered, Ctrl-C ends the turn and not the session.

Rules:

- At a terminal nothing waits for a turn: a line that comes while one runs steers it. From a pipe each line is a turn,
  one after another, and the chat ends when the last and all that it started have ended.
- Ctrl-C ends the turn that runs; a second one presses on. With no turn it drops the typed line, and on an empty line
  the second in a row ends the chat. Without a terminal it ends the chat at once, as a SIGTERM or SIGHUP always does.
- The approver key goes to no agent and to no journal: a line that is it, where no question asks for it, is dropped.
- However it ends, the session is left to be parked, and what runs goes on when it is taken up again.
"""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

from actors.errors import ActorStopped, MailboxFull
from actors.loop import Phase
from orchestrator.approver import key_digest
from orchestrator.cli.dialogue.ending import Ending
from orchestrator.cli.dialogue.lines import Lines
from orchestrator.cli.dialogue.script import Script
from orchestrator.cli.dialogue.slash import Slash
from orchestrator.events import Delta, Gap, Progressed
from orchestrator.journal.records import Entry
from orchestrator.turn import Stop, Turn

if TYPE_CHECKING:
    from orchestrator.cli.dialogue.console import Console
    from orchestrator.cli.dialogue.talk import Talk
    from orchestrator.session import Session
    from orchestrator.supervisor import Supervisor

__all__ = ["Conversation"]

STOPPED = 130
SAID = {
    "steered": "taken up after what runs now",
    "queued": "behind what runs now",
}


class Conversation:
    """A person, by *console*, and the root of *session*; *talk* tells what happens."""

    def __init__(self, session: Session, supervisor: Supervisor, console: Console, talk: Talk) -> None:
        self._session = session
        self._supervisor = supervisor
        self._console = console
        self._screen = console.screen
        self._talk = talk
        self._root = next(member for member in supervisor.members.values() if member.parent is None)
        self._slash = Slash(console.screen, supervisor, talk, self._root)
        self._script = Script(session, supervisor, self._root, talk)
        self._lines = Lines()
        self._ending = Ending()
        self._warned = False

    async def go(self, heard: int) -> int:
        """Talk until an end; return the exit code. What the journal has after entry *heard* is told.

        Signals are taken from here on, and ignored from the end on: the caller gives them back once all is closed.
        Raises `StoreError` when the journal fails.
        """
        take = asyncio.get_running_loop().add_signal_handler
        take(signal.SIGINT, self._interrupt)
        take(signal.SIGTERM, self._ending.end, STOPPED)
        take(signal.SIGHUP, self._ending.end, STOPPED)
        if self._screen.interactive:
            take(signal.SIGCONT, self._console.again)
            take(signal.SIGWINCH, self._console.again)
        # A turn that never is: only the journal's failure answers this wait before the session is closed.
        fault = self._supervisor.results.wait(self._root, "")
        self._ending.run(self._show(heard))
        self._ending.run(self._console.pump(self._take))
        return await self._ending.wait(fault)

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
            elif isinstance(event, Progressed):
                self._talk.progress(event)
            elif isinstance(event, Entry):
                self._talk.entry(event)
            if self._screen.gone or self._root.gone:
                self._ending.end(STOPPED if self._screen.gone and self._screen.interactive else 1)
            self._console.rest(resting=not self._busy)
            self._script.moved.set()

    async def _take(self, line: str | None) -> None:
        """Take a line, or the end of the input; after the end of the chat nothing is taken."""
        if self._ending.over:
            return
        self._warned = False
        if line is None:
            await self._input_over()
            return
        text = self._lines.add(line)
        if text is None or not text.strip():
            return
        if self._lines.command(text):
            self._command(text)
            return
        text = text.removeprefix("/") if text.startswith("//") else text
        opened = self._supervisor.journal.state.opened
        if opened is not None and opened.approver and key_digest(text.strip()) == opened.approver:
            self._screen.say("· this is the approver key; it was not sent, and nothing asks for it now")
            return
        if self._screen.interactive:
            await self._message(text)
            return
        self._screen.say(f"> {text}")
        if not await self._script.turn(text, self._slash.policy):
            self._ending.end(1)

    def _command(self, line: str) -> None:
        what = self._slash.run(line)
        if what == "/quit":
            self._ending.end(int(self._script.failed))
        elif what == "/stop":
            self._screen.say("· stopping everything")
            self._ending.run(self._session.send(Stop("tree")))

    async def _message(self, text: str) -> None:
        """Steer the turn in flight by *text*, or begin one with it."""
        actor = self._root.actor
        steers = actor.state.phase is not Phase.IDLE and not actor.mailbox.stopping(actor.state.turn)
        try:
            said = await self._session.send(text if steers else Turn(text, self._slash.policy))
        except (MailboxFull, ActorStopped) as refused:
            self._screen.say(f"· not taken: {refused}")
            return
        if said.how in SAID:
            self._screen.say(f"· {said.how}: {SAID[said.how]}")

    async def _input_over(self) -> None:
        """The input has ended: so does the chat, without a terminal once nothing moves any more."""
        if self._lines.begun:
            self._screen.say("· a text was begun and not ended; it was not sent")
        if not self._screen.interactive:
            self._script.failed |= self._lines.begun
            await self._script.finish()
        hung_up = self._screen.interactive and self._console.keyboard.over
        self._ending.end(STOPPED if hung_up else int(self._script.failed))

    def _interrupt(self) -> None:
        """Ctrl-C: end the turn, or withdraw the question, or drop the line, or the second time end the chat."""
        if self._ending.over:
            return
        if not self._screen.interactive:
            self._ending.end(STOPPED)
        elif self._busy:
            self._screen.say("· stopping the turn")
            self._ending.run(self._session.send(Stop("turn")))
        elif self._console.no_answer() or self._console.clear() or self._lines.drop():
            self._warned = False
        elif self._warned:
            self._ending.end(STOPPED)
        else:
            self._warned = True
            self._screen.say("· Ctrl-C again, or Ctrl-D, ends the chat")
