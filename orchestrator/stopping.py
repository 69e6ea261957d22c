"""Stopping: a turn, an actor with all below it, a whole session.

Rules:

- A subtree is marked before any of it is cancelled; what was asked to stop starts nothing any more.
- What does not yield is cancelled again after the grace time, and after another one it is left behind, named.
- Stopping a turn closes its history. Ending a session records nothing: what was in flight goes on at the resume.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from actors.messages import EndTurn, StopReason, TurnStopped, Usage
from orchestrator.telemetry import log

if TYPE_CHECKING:
    from orchestrator.capability import Capability
    from orchestrator.member import Member
    from orchestrator.supervisor import Supervisor

__all__ = ["Stopping"]

UNWANTED = "the turn that waited for it was stopped"


class Stopping:
    """The stops of one session."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    def turn(self, member: Member, turn: str, reason: StopReason, detail: str = "") -> None:
        """Stop a turn, in flight or waiting; of a parked one also the children that it waits for. Never waits."""
        if member.actor.parked and member.actor.state.turn == turn:
            for child in tuple((member.children or {}).values()):
                if not child.background and self._supervisor.journal.state.actors[child.path].spawned.cause == turn:
                    self.soon(child)
        capability = member.capability
        if capability is not None and capability.turn == turn:
            capability.stopping = True
        if member.actor.stop(TurnStopped(turn, reason, detail)) and capability is not None:
            self._supervisor.deadlines.add(self._supervisor.limits.grace_s, lambda: self._insist(member, capability))

    def _insist(self, member: Member, capability: Capability) -> None:
        """The grace time is over: cancel again, and arm the last resort."""
        if member.capability is capability:
            for task in tuple(capability.running.values()):
                task.cancel()
            member.actor.stop(TurnStopped(capability.turn, StopReason.CANCELLED))
            self._supervisor.deadlines.add(
                self._supervisor.limits.grace_s, lambda: self._leave_behind(member, capability)
            )

    def _leave_behind(self, member: Member, capability: Capability) -> None:
        """The code does not yield: end the turn without it, and say so."""
        if member.capability is capability and not capability.revoked:
            capability.revoked = True
            names = ", ".join(sorted(capability.running)) or "the model request"
            log(logging.WARNING, "task abandoned", actor=member.path, turn=capability.turn, calls=names)
            self._supervisor.abandoned.append(
                f"abandoned: {member.path} in turn {capability.turn} did not yield to a stop ({names})"
            )
            member.actor.abandon()

    def soon(self, member: Member) -> None:
        """Mark and cancel *member* and all below it now; they end by themselves."""
        members = member.subtree()
        for each in members:
            each.explicit_stop = each.explicit_stop or UNWANTED
        for each in reversed(members):
            for accepted in tuple(self._supervisor.journal.state.actors[each.path].waiting):
                self.turn(each, accepted.turn, StopReason.CANCELLED, UNWANTED)

    async def tree(self, member: Member, reason: str, *, how: StopReason = StopReason.CANCELLED) -> None:
        """Stop *member* and all below it for good; return when each has ended. Stopping twice is fine."""
        members = member.subtree()
        for each in members:
            if not each.explicit_stop:
                each.explicit_stop = reason
            if each.capability is not None:
                each.capability.stopping = True
        waits = []
        for each in reversed(members):
            for accepted in tuple(self._supervisor.journal.state.actors[each.path].waiting):
                waits.append(self._supervisor.results.wait(each, accepted.turn))
                self.turn(each, accepted.turn, how, reason)
        if waits:
            await asyncio.wait(waits)
        for each in reversed(members):
            self._supervisor.exit(each, reason)

    async def all(self) -> None:
        """Cancel every task of the session, recording nothing, and answer whoever waits for a turn: it is suspended.

        What does not yield within the grace time twice is left behind and named.
        """
        for member in self._supervisor.members.values():
            if member.capability is not None:
                member.capability.revoked = True
            member.actor.halt()
        tasks = {task for task in self._supervisor.tasks if task is not asyncio.current_task()}
        for _ in range(2):
            for task in tasks:
                task.cancel()
            if tasks:
                _, tasks = await asyncio.wait(tasks, timeout=self._supervisor.limits.grace_s)
        self._supervisor.abandoned.extend(
            f"abandoned: a task of {task.get_name()} did not yield to the end of the session" for task in tasks
        )
        for member in self._supervisor.members.values():
            for turn in tuple(member.waiters or ()):
                detail = "the session was closed; resume it to go on"
                self._supervisor.results.answer(member, EndTurn(turn, StopReason.SUSPENDED, "", Usage(), detail))
        self._supervisor.deadlines.close()
