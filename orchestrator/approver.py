"""Who answers, what they are shown, and what they say: the values of approvals."""

from __future__ import annotations

import enum
import hashlib
import math
import secrets
from typing import Protocol

import attrs
import msgspec

__all__ = ["Answer", "Approver", "Asker", "Question", "Verdict", "key_digest", "new_key"]


class Verdict(enum.StrEnum):
    """What a person says."""

    APPROVE = "approve"
    REJECT = "reject"


class Question(msgspec.Struct, frozen=True):
    """What a person is shown: who asks, as a path from the root down, and exactly what would run."""

    approval: str
    session: str
    actor: str
    tool: str
    description: str
    arguments: str
    target: str
    expires_ms: int


class Answer(msgspec.Struct, frozen=True):
    """A person's answer to one question.

    *arguments* is an edited JSON object, empty to run what was asked. *always* names argument fields: with an approval
    it makes a standing rule for calls of this tool in which these fields have the approved values.
    """

    approval: str
    verdict: Verdict
    key: str
    by: str = "approver"
    reason: str = ""
    arguments: str = ""
    always: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Everything but the key, which no log, trace or error text may hold."""
        shown = (f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__ if name != "key")
        return f"Answer({', '.join(shown)})"


class Asker(Protocol):
    """Somebody who can be asked at once, while the call waits."""

    async def ask(self, question: Question) -> Answer | None:
        """Return the answer, or ``None`` when there is none to be had. On cancel the question is withdrawn."""


@attrs.frozen
class Approver:
    """Who answers. ``key`` proves it; keep it where no agent, tool or child process can read it.

    With an ``asker`` a call waits in place for its answer; without one the turn is parked and ``run`` returns
    ``suspended`` with the pending ids. Questions expire after ``expires_s`` seconds of wall-clock time.

    Raises ValueError for a blank key and for an expiry that is not a number of seconds above 0.
    """

    key: str = attrs.field(repr=False)
    asker: Asker | None = None
    expires_s: float = 86_400.0

    def __attrs_post_init__(self) -> None:
        if not self.key.strip():
            msg = "Approver.key is blank; make one with new_key()"
            raise ValueError(msg)
        if not (self.expires_s > 0 and math.isfinite(self.expires_s)):
            msg = f"Approver.expires_s is {self.expires_s}; give seconds above 0"
            raise ValueError(msg)


def new_key() -> str:
    """Return a fresh approver key."""
    return secrets.token_urlsafe(24)


def key_digest(key: str) -> str:
    """Return what a journal keeps of an approver key."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
