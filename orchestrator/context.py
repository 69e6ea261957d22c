"""What a tool is told about the call it serves, built by the bridge from the capability, never from arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from actors.grants import Grants

if TYPE_CHECKING:
    from orchestrator.journal.state import SessionState
    from orchestrator.journal.work import FindingRecorded, FixRecorded

__all__ = ["PARKED", "CallContext", "Delivered", "SessionRecord"]

PARKED = object()
"""What an intrinsic tool answers when what it waits for waits for a person."""


class SessionRecord:
    """What the actors of a session have put on its record, to read."""

    __slots__ = ("_state",)

    def __init__(self, state: SessionState) -> None:
        self._state = state

    def finding(self, number: int) -> FindingRecorded | None:
        """Return the finding with this number, or ``None``."""
        found = self._state.findings
        return found[number - 1][1] if 1 <= number <= len(found) else None

    def fix(self, number: int) -> FixRecorded | None:
        """Return the proposed change with this number, or ``None``."""
        found = self._state.fixes
        return found[number - 1][1] if 1 <= number <= len(found) else None


class CallContext(msgspec.Struct, frozen=True):
    """The `actors.tools.ToolContext` of one call."""

    session: str
    actor: str
    turn: str
    call_id: str
    principal: str
    owner: str
    grants: Grants
    workspace: Any
    record: SessionRecord

    @property
    def idempotency_key(self) -> str:
        """The same text for every attempt at this one call, and for no other call."""
        return f"{self.session}/{self.actor}/{self.call_id}"


class Delivered(msgspec.Struct, frozen=True):
    """An intrinsic tool's answer that also delivers outcomes of child turns, or says that it failed."""

    text: str
    discharged: tuple[str, ...] = ()
    failed: bool = False
