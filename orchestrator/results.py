"""Who waits for which turn, and what they get: each waiter its own future, each turn one result."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec.structs import replace

from actors.loop import failures
from actors.messages import EndTurn, StopReason
from orchestrator.turn import Result

if TYPE_CHECKING:
    from orchestrator.journal.fault import StoreError
    from orchestrator.member import Member
    from orchestrator.supervisor import Supervisor

__all__ = ["Results"]


class Results:
    """The waiters of one session's turns. ``unheard`` is the root's last result that nobody waited for."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self.unheard: Result | None = None

    def wait(self, member: Member, turn: str) -> asyncio.Future[Result]:
        """Return a future of the turn's result, the caller's own: cancelling it stops nothing."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        if self._supervisor.fault is not None:
            future.set_exception(self._supervisor.fault)
            return future
        if member.actor.state.turn == turn and self._rests(member):
            future.set_result(self.suspended(member))
            return future
        if member.waiters is None:
            member.waiters = {}
        member.waiters.setdefault(turn, []).append(future)
        return future

    def answer(self, member: Member, end: EndTurn) -> None:
        """Give everyone who waits for the turn its result."""
        if member.waiters and end.turn in member.waiters:
            self.give(member, end.turn, self._result(member, end))
        elif member.parent is None:
            self.unheard = self._result(member, end)

    def give(self, member: Member, turn: str, result: Result) -> None:
        """Give everyone who waits for *turn* this result."""
        for future in (member.waiters or {}).pop(turn, ()):
            if not future.done():
                future.set_result(result)

    def at_rest(self, member: Member) -> None:
        """Tell whoever waits for the parked turn of *member*, or of those above it, that it waits for a person."""
        each: Member | None = member
        while each is not None and self._rests(each):
            self.give(each, each.actor.state.turn, self.suspended(each))
            each = None if each.background else each.parent

    def _rests(self, member: Member) -> bool:
        """Whether nothing of the turn in flight moves: it is parked, and so is each child that it waits for."""
        children = (child for child in (member.children or {}).values() if not child.background)
        return member.actor.parked and all(self._rests(child) or not child.actor.busy for child in children)

    def suspended(self, member: Member) -> Result:
        """Return the result of a turn that waits for a person."""
        end = EndTurn(member.actor.state.turn, StopReason.SUSPENDED, "", member.actor.state.usage)
        return replace(self._result(member, end), pending=self._supervisor.approvals.pending())

    def _result(self, member: Member, end: EndTurn) -> Result:
        notes = (*((end.detail,) if end.detail else ()), *self._supervisor.abandoned)
        failed = failures(member.actor.state)
        fingerprint = member.resolved.definition.fingerprint
        return Result(end.output, end.reason, end.usage, failed, notes, fingerprint, end.turn)

    def fail(self, fault: StoreError) -> None:
        """Give everyone who waits the *fault*."""
        for member in self._supervisor.members.values():
            for futures in (member.waiters or {}).values():
                for future in futures:
                    if not future.done():
                        future.set_exception(fault)
                        future.exception()
