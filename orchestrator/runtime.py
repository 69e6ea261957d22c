"""How an agent runs: with which model, for whom, where, within which limits. Values only, no behaviour."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from actors.grants import Access, Grants
from actors.ports import Model
from orchestrator.approver import Approver
from orchestrator.clock import Clock, LoopClock
from orchestrator.journal.store import Store
from orchestrator.restart import Intensity, RestartKind
from orchestrator.standing import AccessHook

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["OWNER", "Observability", "Principal", "Restart", "RuntimeConfig", "SessionLimits"]

OWNER = Grants(
    authorities=("workflow.*", "workspace.*", "secrets.*", "children.*"), access=Access.EXTERNAL, roots=(".",)
)


def _names(names: Iterable[str]) -> frozenset[str]:
    if isinstance(names, str):
        msg = f"expected a collection of field names, got the string {names!r}; write ({names!r},)"
        raise TypeError(msg)
    return frozenset(names)


@attrs.frozen
class Principal:
    """Who acts in a session and what it may do at most. The default is the person at this machine.

    ``owner`` is whose things it works on, if that is somebody else. ``context`` names the fields that tools may need
    and the host provides. ``access`` is asked at every call whether the caller still has its access.
    """

    name: str = "local"
    tenant: str = "local"
    grants: Grants = OWNER
    owner: str = ""
    context: frozenset[str] = attrs.field(default=frozenset(), converter=_names)
    access: AccessHook | None = attrs.field(default=None, eq=False, repr=False)


@attrs.frozen
class Restart:
    """When a crashed actor is started again, and how often."""

    kind: RestartKind = RestartKind.TRANSIENT
    intensity: Intensity = attrs.field(factory=Intensity)


@attrs.frozen
class SessionLimits:
    """Limits of a session's tree of actors.

    ``depth`` counts the levels below the root; ``alive`` the children of one actor at a time; ``total`` all actors a
    session ever starts; ``model_requests`` those in flight at once (``None``: no limit); ``mailbox`` the messages that
    wait for one actor; ``grace_s`` the seconds between a stop, a harder stop, and leaving the task behind.
    """

    depth: int = 3
    alive: int = 16
    total: int = 256
    model_requests: int | None = None
    mailbox: int = 1000
    grace_s: float = 2.0
    restart: Restart = attrs.field(factory=Restart)

    def __attrs_post_init__(self) -> None:
        for name in ("depth", "alive", "total", "model_requests", "mailbox"):
            value = getattr(self, name)
            if value is not None and value < (0 if name in ("depth", "alive") else 1):
                msg = f"SessionLimits.{name} is {value}; give at least {0 if name in ('depth', 'alive') else 1}"
                raise ValueError(msg)
        if not self.grace_s > 0:
            msg = f"SessionLimits.grace_s is {self.grace_s}; give seconds above 0"
            raise ValueError(msg)


@attrs.frozen
class Observability:
    """Where time comes from, how many events a slow reader may lag behind, what the session is called in lists."""

    clock: Clock = attrs.field(factory=LoopClock)
    buffer: int = 10_000
    title: str = ""
    labels: tuple[tuple[str, str], ...] = ()


@attrs.frozen
class RuntimeConfig:
    """With what a definition runs. ``store`` is a URL (`orchestrator.journal.store.open_store`) or an open store."""

    model: Model
    principal: Principal = attrs.field(factory=Principal)
    limits: SessionLimits = attrs.field(factory=SessionLimits)
    workspace: Path | None = attrs.field(default=None, converter=attrs.converters.optional(Path))
    store: str | Store = "memory:"
    approver: Approver | None = None
    observability: Observability = attrs.field(factory=Observability)
