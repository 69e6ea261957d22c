"""What the one decision looks at, and what it answers: frozen values, made for each attempt."""

from __future__ import annotations

import enum

import msgspec

from actors.grants import Grants
from actors.messages import Denial
from actors.tools import Tool
from orchestrator.focus import OPEN, Policy

__all__ = [
    "PERMIT",
    "ArgumentFault",
    "Attempt",
    "Capability",
    "Consent",
    "Facts",
    "Identity",
    "NeedsApproval",
    "Permit",
    "Source",
    "Spent",
    "State",
    "Target",
    "Verdict",
    "code_of",
]


class Capability(enum.StrEnum):
    """The state of the right to call: gate 1."""

    LIVE = "live"
    REVOKED = "revoked"
    UNKNOWN = "unknown"
    EXPIRED = "expired"


class Source(enum.StrEnum):
    """The state of a tool's source: gate 3."""

    ALIVE = "alive"
    UNAVAILABLE = "unavailable"
    CHANGED = "changed"


class Identity(enum.StrEnum):
    """Whether the principal still is who the session belongs to, with access: gate 4."""

    OK = "ok"
    CONFLICT = "conflict"
    REVOKED = "revoked"


class Consent(enum.StrEnum):
    """What is known of a person's yes to this very call: gate 14."""

    NONE = "none"
    GIVEN = "given"
    MISMATCH = "mismatch"
    EXPIRED = "expired"
    USED = "used"
    REJECTED = "rejected"


class ArgumentFault(msgspec.Struct, frozen=True):
    """What is wrong with the arguments, and where."""

    path: str
    expected: str
    got: str


class Target(msgspec.Struct, frozen=True):
    """A workspace path that an argument names, as asked for and as resolved; *rule* says why it is outside."""

    requested: str
    resolved: str
    inside: bool
    rule: str = ""


class State(msgspec.Struct, frozen=True):
    """The workflow state a call was made in and the one that holds now, with the tools of the latter."""

    made_in: str
    now: str
    tools: frozenset[str]


class Spent(msgspec.Struct, frozen=True):
    """What the actor's own account cannot pay any more, and which limit of children is reached; empty: nothing."""

    budget: str = ""
    children: str = ""
    detail: str = ""


class Facts(msgspec.Struct, frozen=True):
    """Everything `decide` looks at. The defaults are the absent facts, which permit.

    ``names`` are the tools the actor has; ``expired`` the authorities and access that ended loans had given.
    ``approver`` tells whether a person can be asked; ``source_fault`` what is wrong with the tool's source, or what of
    the tool is different now.
    """

    actor: str
    tool: Tool | None
    names: tuple[str, ...]
    grants: Grants
    policy: Policy = OPEN
    capability: Capability = Capability.LIVE
    source: Source = Source.ALIVE
    source_fault: str = ""
    identity: Identity = Identity.OK
    state: State | None = None
    expired: frozenset[str] = frozenset()
    context: frozenset[str] = frozenset()
    argument_fault: ArgumentFault | None = None
    targets: tuple[Target, ...] = ()
    spent: Spent | None = None
    unresolved: str = ""
    consent: Consent = Consent.NONE
    approver: bool = False
    delegates: bool = False


class Attempt(msgspec.Struct, frozen=True):
    """What is asked: the tool's name, and whether it is a call or only a question for the offer."""

    name: str
    call: bool = True


class Permit(msgspec.Struct, frozen=True):
    """Go ahead."""


class NeedsApproval(msgspec.Struct, frozen=True):
    """A person must say yes to this very call first."""

    tool: str
    actor: str


PERMIT = Permit()
Verdict = Permit | Denial | NeedsApproval


def code_of(verdict: Verdict) -> str:
    """Return the code of a refusal, ``needs_approval``, or an empty string for a permit."""
    if isinstance(verdict, Denial):
        return verdict.code
    return "needs_approval" if isinstance(verdict, NeedsApproval) else ""
