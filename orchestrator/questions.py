"""A tool that asks the person in the middle of its call: the same question, by the same right, as ``ask_person``.

Rules:

- Who may not call ``ask_person`` in this turn asks through no server either: the one decision is asked first.
- A question waits in place for somebody at hand. A call that runs at a server cannot be parked, so with nobody at hand
  there is no answer, and the server is told so.
- What is typed becomes the content that the server asked for: a JSON object, or one value where it asks for one field;
  its defaults fill the rest. What does not fit its schema is no answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from actors.text import clip
from orchestrator.facts import Attempt, NeedsApproval
from orchestrator.gathering import Asked
from orchestrator.policy import decide
from orchestrator.validators import compile_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from actors.tools import ToolContext
    from orchestrator.approvals import Approvals
    from orchestrator.gathering import Gathering
    from orchestrator.journal.journal import Journal
    from orchestrator.member import Member

__all__ = ["Questions", "content_of"]

TOOL = "ask_person"
MAX_QUESTION = 4000


class Questions:
    """The questions that tools of one session ask on their way."""

    def __init__(
        self, journal: Journal, members: Mapping[str, Member], gathering: Gathering, approvals: Approvals
    ) -> None:
        self._journal = journal
        self._members = members
        self._gathering = gathering
        self._approvals = approvals
        self._asked = 0

    async def ask(self, context: ToolContext, source: str, message: str, schema: Mapping[str, Any] | None) -> Any:
        """Return the content that the person gave, ``False`` for a no, ``None`` for no answer.

        *schema* tells the fields that are wanted; without one a yes is all there is to say. On cancel the question is
        withdrawn.
        """
        member = self._members.get(context.actor)
        capability = None if member is None else member.capability
        if capability is None or capability.turn != context.turn or not self._approvals.at_hand:
            return None
        known = capability.member.resolved.tools.get(TOOL)
        if known is None:
            return None
        verdict = decide(Attempt(TOOL, call=False), self._gathering.facts(Asked(capability, TOOL, known=known)))
        if not isinstance(verdict, NeedsApproval):
            return None
        self._asked += 1
        call = f"{context.call_id}/{self._asked}"
        await self._approvals.obtain(capability, call, known, {"question": question(source, message, schema)})
        state = self._journal.state
        approval = state.approvals.get(state.asked_for.get((context.actor, call), ""))
        answered = None if approval is None else approval.answered
        if answered is None:
            return None
        return content_of(answered.reason, schema) if answered.approved else False


def question(source: str, message: str, schema: Mapping[str, Any] | None) -> str:
    """Return what the person is shown."""
    fields = fields_of(schema)
    if schema is None or not fields:
        return clip(f"{source} asks: {message}", MAX_QUESTION)
    required = schema.get("required")
    required = required if isinstance(required, list) else []
    lines = [
        f"- {name}{'' if name in required else ' (may be left out)'}: {clip(_shown(told), 300)}"
        for name, told in fields.items()
    ]
    how = "Say yes with the value." if len(fields) == 1 else 'Say yes with JSON, such as {"field": "value"}.'
    return clip("\n".join((f"{source} asks: {message}", *lines, how)), MAX_QUESTION)


def fields_of(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the fields that *schema* asks for, whatever a server sent as one."""
    fields = None if schema is None else schema.get("properties")
    return fields if isinstance(fields, dict) else {}


def _shown(told: Any) -> str:
    if not isinstance(told, dict):
        return "any value"
    choice = told.get("enum")
    kind = f"one of {', '.join(map(str, choice))}" if isinstance(choice, list) else str(told.get("type", "any value"))
    default = f", by default {told['default']}" if "default" in told else ""
    return f"{kind}{default}. {told.get('description') or told.get('title') or ''}".rstrip(". ")


def content_of(text: str, schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return what the person said as the content that *schema* asks for; ``None`` where it does not fit."""
    if not schema:
        return {}
    fields = fields_of(schema)
    content = {name: told["default"] for name, told in fields.items() if isinstance(told, dict) and "default" in told}
    content |= _said(text.strip(), fields)
    try:
        validator = compile_schema(msgspec.json.encode(schema).decode())
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None
    return content if validator.is_valid(content) else None


def _said(text: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that *text* gives: a JSON object of them, or the value of the only one."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        value = text
    if isinstance(value, dict):
        return value
    if not text or len(fields) != 1:
        return {}
    ((name, told),) = fields.items()
    wants_text = isinstance(told, dict) and told.get("type") == "string"
    return {name: text if wants_text and not isinstance(value, str) else value}
