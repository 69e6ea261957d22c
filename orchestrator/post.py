"""What stands behind an `ActorRef`: delivery to one actor of a session, with the waits that would never end refused.

Rules:

- A message steers the turn in flight or starts one, under the terms of the actor's last turn: never wider.
- An ask opens a turn and waits for its end. Whoever waits is on record here while it waits, so a cycle is seen before
  it closes, whether its waits are asks, foreground delegations or collections.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from actors.errors import ActorStopped
from actors.messages import EndTurn, StopReason, TurnOrigin
from actors.ref import ActorRef
from actors.text import clean
from orchestrator.journal.records import TurnAccepted

if TYPE_CHECKING:
    from orchestrator.member import Member
    from orchestrator.supervisor import Supervisor

__all__ = ["Mail"]


class Mail:
    """The post of one session (`actors.ref.Post`); actors are named by their paths."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    def ref(self, path: str) -> ActorRef:
        """Return the handle of the actor *path*."""
        return ActorRef(path, self)

    def tell(self, actor: str, text: str) -> str:
        """Deliver *text*; see `ActorRef.tell`."""
        member = self._member(actor)
        text = clean(text)
        if member.actor.steer(text):
            return "steered"
        busy = bool(self._supervisor.journal.state.actors[actor].waiting)
        self._accept(member, text)
        return "queued" if busy else "started"

    async def ask(self, actor: str, text: str, asker: str | None) -> EndTurn:
        """Open a turn and wait for its end; see `ActorRef.ask`. Raises `WouldDeadlock`."""
        member = self._member(actor)
        with self._supervisor.waits.hold(asker, actor):
            turn = self._accept(member, clean(text))
            try:
                result = await self._supervisor.results.wait(member, turn)
            except asyncio.CancelledError:
                self._supervisor.stops.turn(member, turn, StopReason.CANCELLED, "the asker gave up waiting")
                raise
        return EndTurn(turn, result.stop_reason, result.output, result.usage, "; ".join(result.diagnostics))

    async def stop(self, actor: str, reason: str) -> None:
        """Stop an actor and all below it; see `ActorRef.stop`. An actor that has ended is left as it is."""
        member = self._supervisor.members.get(actor)
        if member is not None:
            await self._supervisor.stops.tree(member, clean(reason))

    def _member(self, actor: str) -> Member:
        member = self._supervisor.members.get(actor)
        if member is None:
            known = self._supervisor.journal.state.actors.get(actor)
            raise ActorStopped(actor, "there is no such actor" if known is None else known.exited)
        return member

    def _accept(self, member: Member, text: str) -> str:
        policy, grants = self._supervisor.journal.state.actors[member.path].last_terms
        turn = self._supervisor.next_turn()
        return self._supervisor.accept(member, TurnAccepted(turn, text, TurnOrigin.SEND, policy, grants))
