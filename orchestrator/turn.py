"""What is asked of an agent this time, and what came of it."""

from __future__ import annotations

import attrs
import msgspec

from actors.grants import Grants
from actors.messages import Limits, StopReason, Usage
from orchestrator.focus import OPEN, Policy

__all__ = ["DeliveryResult", "Result", "Stop", "Transition", "Turn"]


@attrs.frozen
class Turn:
    """One input, with the focus (``policy``), the narrowing of authority (``grants``) and the limits of this turn.

    ``grants`` only narrows and reaches the children this turn starts; ``policy`` reaches nobody else.
    """

    input: str
    policy: Policy = OPEN
    grants: Grants | None = None
    limits: Limits = attrs.field(factory=Limits)


class Result(msgspec.Struct, frozen=True):
    """How a turn ended: the final text, the reason, what was spent, each denied or failed call in a sentence.

    ``diagnostics`` names what was left behind (``abandoned``) and why a turn failed; ``pending`` the approvals that a
    ``suspended`` turn waits for.
    """

    output: str
    stop_reason: StopReason
    usage: Usage
    failures: tuple[str, ...]
    diagnostics: tuple[str, ...]
    fingerprint: str
    turn: str
    pending: tuple[str, ...] = ()


class Stop(msgspec.Struct, frozen=True):
    """A control message: ``turn`` ends the foreground turn, ``tree`` everything below it as well."""

    scope: str = "turn"

    def __post_init__(self) -> None:
        if self.scope not in ("turn", "tree"):
            msg = f"Stop.scope is {self.scope!r}; it is 'turn' or 'tree'"
            raise ValueError(msg)


class Transition(msgspec.Struct, frozen=True):
    """A control message: the host moves the workflow to the state *to*."""

    to: str
    by: str = "host"


class DeliveryResult(msgspec.Struct, frozen=True):
    """What became of a message, and the turn it joined.

    *how* is ``steered``, ``started``, ``queued``, ``stopping``, ``moved`` or ``answered``.
    """

    how: str
    turn: str
