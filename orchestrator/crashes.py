"""What becomes of an actor whose activation ended with an exception: it is restarted, or given up.

A restarted actor is rebuilt from the journal under a new incarnation; its old capability is dead. One that crashes
more often than its intensity allows ends, with its open turns failed and its children stopped; its parent is owed the
failure.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from actors.loop import Phase
from actors.messages import EndTurn, StopReason, TurnStopped, Usage
from orchestrator.journal.fault import StoreError
from orchestrator.journal.records import ActorRestarted
from orchestrator.recovery import loop_of, take_up
from orchestrator.restart import Decision, on_exit
from orchestrator.telemetry import log

if TYPE_CHECKING:
    from actors.actor import Actor
    from orchestrator.member import Member
    from orchestrator.supervisor import Supervisor

__all__ = ["Crashes"]


class Crashes:
    """The crashes of one session's actors."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    async def take(self, actor: Actor, reason: str) -> None:
        """An activation ended with an exception: restart the actor from the journal, or end it and tell the parent."""
        member = self._supervisor.members.get(actor.path)
        if member is None or member.actor is not actor:
            return
        actor.crashed()
        if member.capability is not None:
            member.capability.revoked = True
            member.capability = None
        restart = self._supervisor.limits.restart
        decision, member.restarts = on_exit(
            restart.kind,
            crashed=True,
            restarts=member.restarts,
            now=self._supervisor.clock.now(),
            intensity=restart.intensity,
        )
        try:
            if decision is Decision.RESTART:
                incarnation = self._supervisor.journal.state.actors[member.path].incarnation + 1
                log(logging.WARNING, "actor restarted", actor=member.path, incarnation=incarnation, reason=reason)
                self._supervisor.journal.append(member.path, ActorRestarted(incarnation, reason))
                await self._restart(member)
            else:
                await self._escalate(member, reason)
        except StoreError as error:
            self._supervisor.fail(error)

    async def _restart(self, member: Member) -> None:
        """Rebuild *member* from the journal under a new incarnation and let it go on."""
        loop = await loop_of(self._supervisor.journal, member.path)
        old, member.actor = member.actor, self._supervisor.actor_of(member)
        for accepted in self._supervisor.journal.state.actors[member.path].waiting:
            stop = old.mailbox.take_stop(accepted.turn)
            if stop is not None:
                member.actor.mailbox.stop(stop)
        await take_up(self._supervisor, member, loop, stuck=False)

    async def _escalate(self, member: Member, reason: str) -> None:
        """Too many crashes: fail what is open, end the actor; its parent is owed the failure."""
        detail = f"{member.path} crashed too often: {reason}"
        log(logging.ERROR, "actor gave up", actor=member.path, reason=reason)
        actor = member.actor
        member.explicit_stop = member.explicit_stop or detail
        for accepted in tuple(self._supervisor.journal.state.actors[member.path].waiting):
            if actor.state.phase is Phase.IDLE or actor.state.turn != accepted.turn:
                end = EndTurn(accepted.turn, StopReason.FAILED, "", Usage(), detail)
            else:
                end = actor.end(TurnStopped(accepted.turn, StopReason.FAILED, detail))
            await self._supervisor.ended(actor, end)
        for child in tuple((member.children or {}).values()):
            await self._supervisor.stops.tree(child, detail, how=StopReason.FAILED)
        self._supervisor.exit(member, detail)
