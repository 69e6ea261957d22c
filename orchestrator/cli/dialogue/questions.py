"""The person of a chat as the approver: asked on the console that they type at, while the call waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.approver import Answer, key_digest
from orchestrator.arguments import parse
from orchestrator.cli.answers import CHOICE, Again, answer_of, shown

if TYPE_CHECKING:
    from orchestrator.approver import Question
    from orchestrator.cli.dialogue.console import Console
    from orchestrator.supervisor import Supervisor

__all__ = ["ChatAsker"]

KEY = "approver key, as it was told when the session was started (it is not shown; empty line: no answer)"


class ChatAsker:
    """Asks on *console*. Without a *key* the person is asked for it first: the one that *digest* is of."""

    def __init__(self, console: Console, key: str, digest: str = "") -> None:
        self._console = console
        self._key = key
        self._digest = digest
        self.supervisor: Supervisor | None = None

    async def ask(self, question: Question) -> Answer | None:
        """Show exactly what would run and return what the person says. On cancel no line is taken."""
        if not self._key:
            self._key = await self._console.ask(self._is_key, "", *shown(question), KEY, mark="key? ", secret=True)
        if not self._key:
            return None
        return await self._console.ask(lambda line: self._judge(line, question), "", *shown(question), CHOICE)

    def _is_key(self, line: str) -> str:
        key = line.strip()
        if key and key_digest(key) != self._digest:
            msg = "this is not the key of this session"
            raise Again(msg)
        return key

    def _judge(self, line: str, question: Question) -> Answer | None:
        """Return the answer that *line* is; edited arguments must satisfy the tool's schema."""
        answer = answer_of(line, question, self._key)
        if answer is None or not answer.arguments or self.supervisor is None:
            return answer
        spawned = self.supervisor.journal.state.actors[question.actor].spawned
        resolved = self.supervisor.registry.get(spawned.fingerprint)
        known = None if resolved is None else resolved.tools.get(question.tool)
        if known is not None:
            arguments, fault = parse(answer.arguments, known.validator)
            if arguments is None and fault is not None:
                msg = f"the tool would refuse these: at {fault.path} expected {fault.expected}, got {fault.got}"
                raise Again(msg)
        return answer
