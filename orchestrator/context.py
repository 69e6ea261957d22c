"""What a tool is told about the call it serves, built by the bridge from the capability, never from arguments."""

from __future__ import annotations

from typing import Any

import msgspec

from actors.grants import Grants

__all__ = ["CallContext", "Delivered"]


class CallContext(msgspec.Struct, frozen=True):
    """The `actors.tools.ToolContext` of one call."""

    session: str
    actor: str
    turn: str
    call_id: str
    principal: str
    grants: Grants
    workspace: Any

    @property
    def idempotency_key(self) -> str:
        """The same text for every attempt at this one call, and for no other call."""
        return f"{self.session}/{self.actor}/{self.call_id}"


class Delivered(msgspec.Struct, frozen=True):
    """An intrinsic tool's answer that also delivers outcomes of child turns, or says that it failed."""

    text: str
    discharged: tuple[str, ...] = ()
    failed: bool = False
