"""The records of consent: what a person was asked, what was answered, and standing rules."""

from __future__ import annotations

import msgspec

__all__ = ["ApprovalAnswered", "ApprovalAsked", "ApprovalLapsed", "RuleMade", "StateMoved"]


class ApprovalAsked(msgspec.Struct, frozen=True, tag="approval_asked"):
    """A person is asked about one call of the entry's actor. What is here is what is shown, and all that may run.

    *digest* is of the canonical *arguments*; *revision* of the definition, the tool, the turn's policy and grants and
    the workflow state; *expires_ms* is wall-clock time, because it must hold across restarts.
    """

    approval: str
    turn: str
    call: str
    tool: str
    version: str
    arguments: str
    digest: str
    target: str
    revision: str
    expires_ms: int


class ApprovalAnswered(msgspec.Struct, frozen=True, omit_defaults=True, tag="approval_answered"):
    """The one answer that counts. *arguments* are those that may run: the edited ones where *edited*."""

    approval: str
    approved: bool
    by: str
    reason: str = ""
    arguments: str = ""
    digest: str = ""
    edited: bool = False


class ApprovalLapsed(msgspec.Struct, frozen=True, tag="approval_lapsed"):
    """Nobody answered in time. It is no refusal; the agent may ask again."""

    approval: str


class RuleMade(msgspec.Struct, frozen=True, tag="rule_made"):
    """A standing yes: for this tool of this definition, as long as these argument fields have these values.

    *fields* pairs argument names with canonical JSON values; *by* who made it; *expires_ms* 0 for the session's life.
    """

    rule: str
    tool: str
    version: str
    fingerprint: str
    fields: tuple[tuple[str, str], ...]
    by: str
    expires_ms: int = 0


class StateMoved(msgspec.Struct, frozen=True, tag="state_moved"):
    """The workflow is in *state* now; *by* the host, or the tool whose success moved it."""

    state: str
    by: str
