"""Whether what a turn has spent is all that it may spend. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.messages import StopReason

if TYPE_CHECKING:
    from actors.messages import Limits, Usage

__all__ = ["spent"]


def spent(limits: Limits, usage: Usage) -> StopReason | None:
    """Tell which limit of the turn is used up, if one is."""
    if limits.tokens is not None and usage.tokens >= limits.tokens:
        return StopReason.MAX_TOKENS
    if limits.money is not None and usage.money is not None and usage.money >= limits.money:
        return StopReason.MAX_MONEY
    return None
