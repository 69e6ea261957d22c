"""What happens when an actor's task ends with an exception, pure: restart within an intensity, then escalate.

A *permanent* actor is always restarted, a *transient* one only after a crash, a *temporary* one never. More than
``most`` restarts within ``within_s`` seconds are too many: the fault goes to the parent.
"""

from __future__ import annotations

import enum

import attrs

__all__ = ["Decision", "Intensity", "RestartKind", "on_exit"]


class RestartKind(enum.StrEnum):
    """When an actor is started again after its task ended."""

    PERMANENT = "permanent"
    TRANSIENT = "transient"
    TEMPORARY = "temporary"


class Decision(enum.StrEnum):
    """What the supervisor does: start it again, let it be, or tell the parent."""

    RESTART = "restart"
    LEAVE = "leave"
    ESCALATE = "escalate"


@attrs.frozen
class Intensity:
    """At most ``most`` restarts within ``within_s`` seconds. Raises ValueError for figures below 0."""

    most: int = 3
    within_s: float = 5.0

    def __attrs_post_init__(self) -> None:
        if self.most < 0 or not self.within_s > 0:
            msg = f"Intensity({self.most}, {self.within_s}) is not possible; give most >= 0 and within_s > 0"
            raise ValueError(msg)


def on_exit(
    kind: RestartKind, *, crashed: bool, restarts: tuple[float, ...], now: float, intensity: Intensity
) -> tuple[Decision, tuple[float, ...]]:
    """Return what to do, and the restart times to remember. Times are seconds of one monotonic clock."""
    if kind is RestartKind.TEMPORARY:
        return (Decision.ESCALATE if crashed else Decision.LEAVE), restarts
    if kind is RestartKind.TRANSIENT and not crashed:
        return Decision.LEAVE, restarts
    recent = tuple(at for at in restarts if now - at < intensity.within_s)
    if len(recent) >= intensity.most:
        return Decision.ESCALATE, recent
    return Decision.RESTART, (*recent, now)
