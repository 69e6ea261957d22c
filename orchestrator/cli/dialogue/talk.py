"""What a session does, told to a person as it happens, from its events alone.

Rules:

- The root's text is shown as it streams, once: a reply that was streamed is not shown again when it is whole.
- A child's text is shown a line at a time, behind its name, indented by its depth.
- A call is one line: its name, its arguments in short, what became of it. A denial tells code, message and remedy.
- ``state`` is the fold of what was told so far, loops included, so what is told about now is what was seen.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from actors.messages import CallFinished, ModelFailed, ModelReplied, Outcome, Steered, StopReason, TurnOrigin
from actors.text import clip
from orchestrator.cli.dialogue.texts import Texts, say
from orchestrator.cli.line import exact, one_line
from orchestrator.journal.consent import ApprovalAsked, ApprovalLapsed, StateMoved
from orchestrator.journal.fold import apply
from orchestrator.journal.records import ActorRestarted, Noted, TurnAccepted, TurnEnded, TurnParked
from orchestrator.journal.state import SessionState

if TYPE_CHECKING:
    from actors.messages import ToolCall, ToolResult
    from orchestrator.cli.dialogue.screen import Screen
    from orchestrator.events import Delta, Progressed
    from orchestrator.journal.records import Entry, Record

__all__ = ["Talk"]

MAX_ARGUMENTS = 120


class Talk:
    """Tells *screen* what happens in the session whose root is *root*."""

    def __init__(self, screen: Screen, root: str) -> None:
        self.state = SessionState()
        self.turns: Counter[str] = Counter()
        self.ends: dict[str, StopReason] = {}
        self._screen = screen
        self._root = root
        self._texts = Texts(screen, root)

    def delta(self, delta: Delta) -> None:
        """Tell a piece of an actor's text."""
        self._texts.piece(delta.actor, delta.text)

    def progress(self, event: Progressed) -> None:
        """Tell how far a call is, as its tool says."""
        call = next((each for each in pending(self.state, event.actor) if each.id == event.call), None)
        share = f"{event.done:g}" if event.total is None else f"{event.done:g} of {event.total:g}"
        name = "a call" if call is None else one_line(clip(call.name, MAX_ARGUMENTS))
        self._say(event.actor, f"{name}: {share}{f', {event.text}' if event.text else ''}")

    def entry(self, entry: Entry, *, aloud: bool = True) -> None:
        """Take an entry of the journal; tell it if it is to be told *aloud*."""
        if aloud:
            self._tell(entry.actor, entry.record)
        apply(self.state, entry)
        record = entry.record
        if isinstance(record, TurnEnded):
            self.turns[entry.actor] += 1
            self.ends[record.turn] = record.reason

    def _tell(self, path: str, record: Record) -> None:
        if isinstance(record, ModelReplied):
            self._texts.whole(path, record.reply.text)
        elif isinstance(record, CallFinished):
            self._say(path, self._call(path, record.result))
        elif isinstance(record, TurnAccepted):
            self._accepted(path, record)
        elif isinstance(record, TurnEnded):
            self._ended(path, record)
        elif isinstance(record, ActorRestarted):
            self._texts.cut(path)
            self._say(path, f"restarted: {record.reason}")
        elif isinstance(record, ModelFailed):
            self._texts.cut(path)
        elif isinstance(record, Steered) and record.notices:
            self._say(path, f"takes up meanwhile: {self._outcomes(record.notices)}")
        else:
            self._tell_of_people(path, record)

    def _tell_of_people(self, path: str, record: Record) -> None:
        """Tell what concerns the people around a session: questions, waits, moves, notes."""
        if isinstance(record, ApprovalAsked) and not self._screen.interactive:
            self._say(path, f"asks to run {record.tool}: {exact(record.arguments)} ({record.approval})")
        elif isinstance(record, ApprovalLapsed):
            self._say(path, f"nobody answered {record.approval}")
        elif isinstance(record, TurnParked):
            self._say(path, "waits for a person")
        elif isinstance(record, StateMoved):
            self._say(path, f"workflow: {record.state}")
        elif isinstance(record, Noted):
            self._say(path, f"{record.kind}: {record.text}")

    def _accepted(self, path: str, record: TurnAccepted) -> None:
        if record.notices:
            self._say(path, f"takes up: {self._outcomes(record.notices)}")
        elif record.origin is TurnOrigin.DELEGATE:
            how = ", in the background" if self.state.actors[path].spawned.background else ""
            self._say(path, f"begins{how}: {record.text}")

    def _ended(self, path: str, record: TurnEnded) -> None:
        self._texts.cut(path)
        detail = f": {record.detail}" if record.detail else ""
        if path != self._root or record.reason is not StopReason.COMPLETED or detail:
            self._say(path, f"{record.reason.value}{detail}")

    def _outcomes(self, turns: tuple[str, ...]) -> str:
        owed = (self.state.outcomes[turn] for turn in turns if turn in self.state.outcomes)
        return ", ".join(f"{each.child.rpartition('/')[2]} {each.status.value}" for each in owed)

    def _call(self, path: str, result: ToolResult) -> str:
        arguments = next((call.arguments for call in pending(self.state, path) if call.id == result.call_id), "")
        call = f"{one_line(clip(result.name, MAX_ARGUMENTS))} {exact(clip(arguments, MAX_ARGUMENTS))}"
        if result.denial is not None:
            reason = result.text if result.text.startswith(result.denial.text) else result.denial.text
            return f"{call} -> denied ({result.denial.code}): {reason}"
        if result.outcome is Outcome.OK:
            return f"{call} -> ok"
        return f"{call} -> {result.outcome.value}: {result.text}"

    def _say(self, path: str, text: str) -> None:
        say(self._screen, path, text)


def pending(state: SessionState, path: str) -> tuple[ToolCall, ...]:
    """Return the calls of the last reply to the actor *path*."""
    actor = state.actors.get(path)
    return () if actor is None else actor.loop.pending
