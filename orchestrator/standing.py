"""Who the caller is and what its account may do: asked of the host at every call, never read from arguments.

Resource owner and acting authority are separate: the *owner* is whose things the session works on, the *principal* who
acts. A session is bound to both at its start; a caller that is somebody else, or nobody, is refused, and there is no
fallback to a local default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

from actors.grants import Access
from orchestrator.facts import Identity

if TYPE_CHECKING:
    from collections.abc import Awaitable

__all__ = ["AccessCheck", "AccessHook", "Standing", "identity_of"]


@attrs.frozen
class Standing:
    """What the host knows now: who calls (``None``: nobody), the account's access, whether it is enabled."""

    principal: str | None
    access: Access = attrs.field(default=Access.EXTERNAL, converter=Access)
    enabled: bool = True


@attrs.frozen
class AccessCheck:
    """What the host is asked about: one call of one session."""

    session: str
    principal: str
    tenant: str
    owner: str
    actor: str
    tool: str


class AccessHook(Protocol):
    """Looks the caller up; asked exactly once for each call."""

    def __call__(self, check: AccessCheck) -> Awaitable[Standing]:
        """Return the caller's standing now."""


def identity_of(principal: str, bound: Access, standing: Standing | None) -> Identity:
    """Return whether the caller still is *principal*, with at least the access *bound* when its session began."""
    if standing is None:
        return Identity.OK
    if standing.principal != principal:
        return Identity.CONFLICT
    if not standing.enabled or standing.access.level < bound.level:
        return Identity.REVOKED
    return Identity.OK
