"""Leaks to plant into the kernel, each as a context manager. A proof that cannot find them proves nothing."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any
from unittest import mock

from msgspec.structs import replace

from actors.grants import attenuate, lend
from actors.messages import TurnOrigin
from orchestrator import supervisor as supervising
from orchestrator.children import Children
from orchestrator.gathering import Gathering
from orchestrator.member import Member
from orchestrator.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

__all__ = ["FOCUS_LEAKS", "LEAKS"]


@contextlib.contextmanager
def policy_of_the_session() -> Iterator[None]:
    """The policy is kept once for the session, not for the turn: the last one given holds for everybody."""
    opened, facts = Supervisor.opened, Gathering.facts
    last: dict[int, Any] = {}

    def open_turn(self: Any, actor: Any, turn: str) -> Any:
        capability = opened(self, actor, turn)
        last[id(self.journal)] = capability.policy  # type: ignore[attr-defined]  # the toolbox is the capability
        return capability

    def gather(self: Any, asked: Any, *rest: Any, **more: Any) -> Any:
        asked.capability.policy = last[id(self._journal)]
        return facts(self, asked, *rest, **more)

    with mock.patch.object(Supervisor, "opened", open_turn), mock.patch.object(Gathering, "facts", gather):
        yield


@contextlib.contextmanager
def policy_inherited() -> Iterator[None]:
    """A child's task runs under the policy of the turn that started it."""
    accept = Supervisor.accept

    def inherit(self: Any, member: Any, turn: Any) -> str:
        if turn.origin is TurnOrigin.DELEGATE:
            turn = replace(turn, policy=member.parent.capability.policy)
        return accept(self, member, turn)

    with mock.patch.object(Supervisor, "accept", inherit):
        yield


@contextlib.contextmanager
def loan_passed_on() -> Iterator[None]:
    """What is lent to an actor goes to the children it starts."""
    start = Children._start

    def start_with_loans(self: Any, capability: Any, *rest: Any, **more: Any) -> Any:
        member = capability.member
        own, member.base = member.base, member.authority(None)
        try:
            return start(self, capability, *rest, **more)
        finally:
            member.base = own

    with mock.patch.object(Children, "_start", start_with_loans):
        yield


@contextlib.contextmanager
def loan_that_stays() -> Iterator[None]:
    """A loan does not end with its turn: what was lent once is held for good."""

    def authority(self: Any, narrowing: Any) -> Any:
        held = self.base
        for loan in self.state.live_loans(self.path):
            held = lend(held, loan.grants)
        return held if narrowing is None else attenuate(held, narrowing)

    with (
        mock.patch.object(supervising, "end_loans"),
        mock.patch.object(Member, "authority", authority),
    ):
        yield


@contextlib.contextmanager
def narrowing_forgotten() -> Iterator[None]:
    """What a turn narrows does not reach the children it starts."""
    start = Children._start

    def start_wide(self: Any, capability: Any, *rest: Any, **more: Any) -> Any:
        narrowing, capability.narrowing = capability.narrowing, None
        try:
            return start(self, capability, *rest, **more)
        finally:
            capability.narrowing = narrowing

    with mock.patch.object(Children, "_start", start_wide):
        yield


# Leaks of focus: a replay without the others' policies finds them, with no specification at all.
FOCUS_LEAKS: tuple[Callable[[], AbstractContextManager[None]], ...] = (policy_of_the_session, policy_inherited)
LEAKS = (*FOCUS_LEAKS, loan_passed_on, loan_that_stays, narrowing_forgotten)
