"""The person at the terminal as the approver: asked in place, while the call waits."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

from anyio import to_thread

from actors.tools import Approval
from orchestrator.approver import Answer, Approver, Question, Verdict, new_key
from orchestrator.cli.line import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.tools import Tool

__all__ = ["TerminalAsker", "approver_for", "tell_waiting"]


class TerminalAsker:
    """Asks at the terminal; an empty line is no answer, and the agent is told that nobody answered."""

    def __init__(self, key: str, stream: TextIO) -> None:
        self._key = key
        self._stream = stream

    async def ask(self, question: Question) -> Answer | None:
        """Show exactly what would run and return what the person says. On cancel the prompt is left behind."""
        print(f"\n{question.actor} asks to run {question.tool}: {one_line(question.arguments)}", file=self._stream)
        print("y yes, n no, n REASON no with a reason, empty line: no answer", file=self._stream, flush=True)
        line = (await to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)).strip()
        word, _, reason = line.partition(" ")
        verdict = {"y": Verdict.APPROVE, "yes": Verdict.APPROVE, "n": Verdict.REJECT, "no": Verdict.REJECT}.get(word)
        return None if verdict is None else Answer(question.approval, verdict, self._key, "terminal", reason)


def approver_for(tools: Iterable[Tool], *, resumed: bool, stream: TextIO) -> Approver | None:
    """Return who answers for a run whose tools may need a person: the terminal, or whoever has the key, later.

    The key of a run that parks is told once and kept nowhere. A resumed run always parks: the key that counts is
    the one its session was started with.
    """
    if all(tool.approval is Approval.NEVER for tool in tools):
        return None
    key = new_key()
    if resumed:
        return Approver(key)
    if sys.stdin.isatty():
        return Approver(key, TerminalAsker(key, stream))
    print(f"approver key {key} (needed to answer what agents ask; it is kept nowhere)", file=stream)
    return Approver(key)


def tell_waiting(session: str, waiting: tuple[str, ...], store: str, stream: TextIO) -> None:
    """Say which approvals a run waits for, and how to answer."""
    where = f" --store {store}" if store else ""
    for approval in waiting:
        print(f"waits for {approval}: orchestrator approvals show {session} {approval}{where}", file=stream)
    print(f"answer with: orchestrator approvals approve|reject {session} ID{where}", file=stream)
    print(f"then go on with: orchestrator sessions resume {session}{where}", file=stream)
