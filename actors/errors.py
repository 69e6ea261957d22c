"""The errors of one actor.

    ActorError
    ├── DefinitionError     a definition that cannot be built; lists every fault at once
    ├── MailboxFull         a bounded mailbox refused a message; the sender knows
    └── ActorStopped        the actor will not answer: it ended before the question did

What a model can adapt to is never an exception: it is a `Denial` inside a `ToolResult`.
What a caller must know is one of these, with fields. Cancellation is neither.
"""

from __future__ import annotations

__all__ = ["ActorError", "ActorStopped", "DefinitionError", "MailboxFull", "OutcomeUnknown", "ToolFault"]


class ActorError(Exception):
    """Base of every error this package raises on purpose."""


class DefinitionError(ActorError):
    """A definition is not valid.

    ``faults`` holds one sentence for each fault found, all of them, in the order of the definition's fields.
    Raised before anything is connected, started or written.
    """

    def __init__(self, subject: str, faults: tuple[str, ...]) -> None:
        self.subject = subject
        self.faults = faults
        lines = "".join(f"\n  - {fault}" for fault in faults)
        super().__init__(f"{subject} is not valid ({len(faults)} fault{'s' if len(faults) != 1 else ''}):{lines}")


class MailboxFull(ActorError):
    """The mailbox of ``actor`` holds ``capacity`` messages already; this one was not taken.

    Nothing was dropped to make room and the control lane stays open. Send again later, or stop the actor.
    """

    def __init__(self, actor: str, capacity: int) -> None:
        self.actor = actor
        self.capacity = capacity
        super().__init__(
            f"the mailbox of {actor} is full ({capacity} messages wait); send again later or stop the actor"
        )


class ActorStopped(ActorError):
    """The actor ended (``reason`` says how) before it answered."""

    def __init__(self, actor: str, reason: str) -> None:
        self.actor = actor
        self.reason = reason
        super().__init__(f"{actor} stopped before it answered: {reason}")


class ToolFault(ActorError):
    """Raised by a tool's own code to tell the model what went wrong and what would help.

    Any other exception of a tool is reported by its type and text; this one is reported as it reads.
    """

    def __init__(self, message: str, *, remedy: str = "") -> None:
        self.message = message
        self.remedy = remedy
        super().__init__(f"{message} {remedy}".strip())


class OutcomeUnknown(ToolFault):
    """Raised by a tool's own code when nobody can tell whether what was asked has happened.

    The call's outcome is then ``unknown``; one that may have had an effect is not run again before that is known.
    """
