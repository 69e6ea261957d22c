"""Lines from a pipe or a file: each is a turn, one after another, and the last waits for all that was started."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from actors.errors import ActorStopped
from actors.messages import StopReason
from orchestrator.turn import Turn

if TYPE_CHECKING:
    from orchestrator.cli.dialogue.talk import Talk
    from orchestrator.focus import Policy
    from orchestrator.member import Member
    from orchestrator.session import Session
    from orchestrator.supervisor import Supervisor

__all__ = ["Script"]


class Script:
    """The turns of *root*. ``failed``: one did not complete; ``moved`` is set whenever *talk* told something."""

    def __init__(self, session: Session, supervisor: Supervisor, root: Member, talk: Talk) -> None:
        self.failed = False
        self.moved = asyncio.Event()
        self._session = session
        self._supervisor = supervisor
        self._root = root
        self._talk = talk

    async def turn(self, text: str, policy: Policy) -> bool:
        """Run one turn to its end, behind what was in flight; return False when no other can follow.

        That is when a turn waits for a person, or the root has ended.
        """
        await self._rest(self._root)
        if self._waits or self._root.gone:
            self.failed = True
            return False
        try:
            said = await self._session.send(Turn(text, policy))
        except ActorStopped:
            self.failed = True
            return False
        await self._rest(self._root)
        self.failed |= self._talk.ends.get(said.turn) is not StopReason.COMPLETED
        return not self._waits

    async def finish(self) -> None:
        """Return when nothing of the session moves any more."""
        await self._rest()
        self.failed |= self._waits

    @property
    def _waits(self) -> bool:
        return bool(self._supervisor.journal.state.actors[self._root.path].waiting)

    async def _rest(self, only: Member | None = None) -> None:
        """Return when no actor, or *only* this one, moves, each idle or waiting for a person, and all that is told."""
        while any(_moves(each) for each in self._supervisor.members.values() if only is None or each is only):
            await asyncio.wait(set(self._supervisor.tasks), return_when=asyncio.FIRST_COMPLETED)
        while self._talk.state.seq < self._supervisor.journal.seq:
            self.moved.clear()
            await self.moved.wait()


def _moves(member: Member) -> bool:
    """Tell whether the actor is at work or about to leave."""
    return (member.actor.busy and not member.actor.parked) or (member.parent is None and bool(member.explicit_stop))
