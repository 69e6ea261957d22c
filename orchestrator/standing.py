"""Who the caller is and what its account may do: asked of the host at every call, never read from arguments.

Resource owner and acting authority are separate: the *owner* is whose things the session works on, the *principal* who
acts. A session is bound to both at its start; a caller that is somebody else, or nobody, is refused, and there is no
fallback to a local default.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Protocol

import attrs

from actors.grants import Access
from orchestrator.facts import Identity
from orchestrator.telemetry import log

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from orchestrator.clock import Deadlines

__all__ = ["AccessCheck", "AccessHook", "Standing", "identity_of", "look_up"]

LOOK_UP_S = 30.0


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


async def look_up(hook: AccessHook, check: AccessCheck, deadlines: Deadlines) -> Standing:
    """Ask the host once. A host that fails, hangs for `LOOK_UP_S` or says nothing gives no access: it is not guessed.

    On cancel the question is withdrawn.
    """
    late: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asking = asyncio.ensure_future(_asked(hook, check))
    key = deadlines.add(LOOK_UP_S, partial(late.set_result, None))
    try:
        await asyncio.wait((asking, late), return_when=asyncio.FIRST_COMPLETED)
        failed = not asking.done() or asking.cancelled() or asking.exception() is not None
    finally:
        deadlines.remove(key)
        asking.cancel()
        asking.add_done_callback(_unheard)
    found = None if failed else asking.result()
    if isinstance(found, Standing):
        return found
    log(logging.WARNING, "standing unknown", actor=check.actor, tool=check.tool)
    return Standing(check.principal, enabled=False)


async def _asked(hook: AccessHook, check: AccessCheck) -> Standing | None:
    """Return what the host says, whatever its hook is made of."""
    return await hook(check)


def _unheard(asking: asyncio.Future[Standing | None]) -> None:
    """Take note of how a look-up ended that nobody listens to any more."""
    if not asking.cancelled():
        asking.exception()
