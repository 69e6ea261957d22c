"""Who holds a session, and whether that still counts.

A holder on this machine is asked for by process id and start time, so neither a reused id nor a changed clock misleads:
if it lives the session is held, if it is dead the session is free at once. A holder elsewhere can only be judged by the
expiry it keeps renewing. That expiry is *wall-clock* time, because it is compared across machines; a wrong clock
can therefore hand a session over too early, and the fence then stops the slower writer from storing anything.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path

import msgspec

__all__ = ("LEASE_MS", "RENEW_EVERY_S", "Holder", "Lease", "is_alive", "is_held", "this_process")

LEASE_MS = 30_000
"""How long a lease lasts after its last renewal, in wall-clock milliseconds."""

RENEW_EVERY_S = 10.0
"""How often an open lease is renewed, in seconds of the monotonic clock."""

PROC = Path("/proc")


class Holder(msgspec.Struct, frozen=True):
    """A process: *host* (one boot of one machine and process namespace), *pid*, and *started* ("" if not known)."""

    host: str
    pid: int
    started: str


class Lease(msgspec.Struct, frozen=True):
    """One taking of one session. *token* is this taking's own name, unlike any other's."""

    key: int
    session: str
    fence: int
    token: str
    last: int
    dropped: int = 0


def this_process() -> Holder:
    """The process that calls. Reads ``/proc`` where there is one."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()
        host = f"{boot} {(PROC / 'self/ns/pid').readlink()}"
    except OSError:
        host = platform.node()
    return Holder(host, os.getpid(), start_time(os.getpid()))


def start_time(pid: int) -> str:
    """When *pid* started, in the kernel's own ticks; "" if it is dead, or if there is no ``/proc`` to ask."""
    try:
        stat = (PROC / str(pid) / "stat").read_text("utf-8", "replace")
    except OSError:
        return ""
    state, *rest = stat.rpartition(")")[2].split()
    return "" if state in {"Z", "X"} else rest[18]


def is_alive(holder: Holder, here: Holder) -> bool | None:
    """Whether *holder* lives, asked by *here*; None if that cannot be told from here."""
    if holder.host != here.host:
        return None
    if here.started and holder.started:
        return start_time(holder.pid) == holder.started
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return None
    return True if holder.pid == here.pid else None


def is_held(*, alive: bool | None, expires_ms: int, now_ms: int) -> bool:
    """Whether a lease stands: by the holder's life where that is known, by its expiry where it is not."""
    return now_ms < expires_ms if alive is None else alive
