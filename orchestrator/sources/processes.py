"""Processes that must not outlive their session: found by a mark in their environment, ended for good.

Rules:

- A server is started with a mark of its own in its environment, which its children inherit, whatever group or session
  they move to. The mark is on record before the process exists, so that whoever takes the session up after a kill can
  end what was left.
- A process that was started with another environment has lost the mark. The leader of the group is on record too, with
  the time of its birth, because its number may belong to another process by now: its group is found while it lives.
- Ending asks first (SIGTERM), then does not ask (SIGKILL); every wait is bounded.
- Processes are found under ``/proc``. Where there is none, only the process group of the live server is ended.
"""

from __future__ import annotations

import os
import secrets
import signal
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["MARK", "birth", "end", "end_group", "findable", "group_of", "led", "marked", "new_mark"]

MARK = "ORCHESTRATOR_SOURCE"
PROC = Path("/proc")
BOOT = PROC / "sys/kernel/random/boot_id"
GRACE_S = 1.0
GROUP_EVERY_S = 0.02
DEAD = frozenset("ZXx")


def new_mark() -> str:
    """Return a mark that no other process has."""
    return secrets.token_hex(16)


def _pids() -> Iterator[int]:
    if PROC.is_dir():
        yield from (int(entry.name) for entry in PROC.iterdir() if entry.name.isdecimal())


def _alive(pid: int) -> tuple[int, bool]:
    """Return the process group of *pid*, and whether it still runs. Raises OSError for one that is gone."""
    fields = (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    return int(fields[2]), fields[0].decode() not in DEAD


def marked(mark: str) -> tuple[int, ...]:
    """Return the processes that carry *mark*, those that are no more than a name (zombies) left out."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for pid in _pids():
        with suppress(OSError, IndexError, ValueError):
            if wanted in (PROC / str(pid) / "environ").read_bytes().split(b"\0") and _alive(pid)[1]:
                found.append(pid)
    return tuple(found)


def group_of(leader: int) -> tuple[int, ...]:
    """Return the running processes of the group that *leader* leads or led."""
    found = []
    for pid in _pids():
        with suppress(OSError, IndexError, ValueError):
            group, runs = _alive(pid)
            if group == leader and runs:
                found.append(pid)
    return tuple(found)


def birth(pid: int) -> str:
    """Return when the process *pid* began, which no other process of its number shares; empty: there is none."""
    with suppress(OSError, IndexError):
        fields = (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
        return f"{BOOT.read_text(encoding='ascii').strip()}/{fields[19].decode()}"
    return ""


def led(leader: int, born: str) -> tuple[int, ...]:
    """Return the running processes of the group that *leader* leads, if that is the process *born* then."""
    return group_of(leader) if born and birth(leader) == born else ()


async def end(find: Callable[[], tuple[int, ...]], *, grace_s: float = GRACE_S) -> bool:
    """End every process that *find* returns; tell whether none is left. Bounded: two rounds, then a last look."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        pids = find()
        if not pids:
            return True
        await _signal(pids, number, grace_s)
    return not find()


def findable() -> bool:
    """Tell whether processes can be found here."""
    return PROC.is_dir()


async def end_group(leader: int, *, grace_s: float = GRACE_S) -> bool:
    """End the process group of *leader*, a child of ours, where processes cannot be found; tell whether it is gone."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if not _sent(leader, number):
            return True
        with anyio.move_on_after(grace_s):
            while _sent(leader, 0):  # noqa: ASYNC110  # nobody tells of the end of what is no child of ours
                await anyio.sleep(GROUP_EVERY_S)
    return not _sent(leader, 0)


def _sent(group: int, number: int) -> bool:
    """Send a signal to a process group; tell whether there was anybody to send it to."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


async def _signal(pids: tuple[int, ...], number: signal.Signals, grace_s: float) -> None:
    """Send a signal to each process and wait until they are gone, at most *grace_s* seconds."""
    with ExitStack() as stack:
        handles = []
        for pid in pids:
            with suppress(ProcessLookupError, PermissionError):
                handle = os.pidfd_open(pid)
                stack.callback(os.close, handle)
                handles.append(handle)
                signal.pidfd_send_signal(handle, number)
        with anyio.move_on_after(grace_s):
            for handle in handles:
                await anyio.wait_readable(handle)
