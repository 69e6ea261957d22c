"""One actor's place in its session: who it is, what it holds, whom it started."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from actors.grants import UNLIMITED, attenuate, lend

if TYPE_CHECKING:
    import asyncio

    from actors.actor import Actor
    from actors.grants import Grants
    from orchestrator.account import Account
    from orchestrator.capability import Capability
    from orchestrator.journal.state import SessionState
    from orchestrator.registry import Resolved
    from orchestrator.turn import Result

__all__ = ["Member"]


class Member:
    """The supervisor's entry for one actor. ``base`` is its authority at spawn, without loans."""

    __slots__ = (
        "account",
        "actor",
        "background",
        "base",
        "capability",
        "children",
        "depth",
        "explicit_stop",
        "gone",
        "keep",
        "parent",
        "path",
        "resolved",
        "restarts",
        "state",
        "waiters",
    )

    def __init__(
        self, path: str, resolved: Resolved, parent: Member | None, base: Grants, account: Account, state: SessionState
    ) -> None:
        self.path = path
        self.resolved = resolved
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.base = base
        self.account = account
        self.state = state
        self.actor: Actor = None  # type: ignore[assignment]  # set by the supervisor before anyone sees the member
        self.capability: Capability | None = None
        self.background = False
        self.keep = False
        self.explicit_stop = ""
        self.gone = ""
        self.children: dict[str, Member] | None = None
        self.restarts: tuple[float, ...] = ()
        self.waiters: dict[str, list[asyncio.Future[Result]]] | None = None

    @property
    def id(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    def authority(self, narrowing: Grants | None) -> Grants:
        """Return what the actor may do now: its base, with the live loans of its turn, narrowed by it. Never stored."""
        held, turn = self.base, "" if self.capability is None else self.capability.turn
        for loan in self.state.live_loans(self.path):
            if loan.until == turn:
                held = lend(held, loan.grants)
        return held if narrowing is None else attenuate(held, narrowing)

    def to_share(self) -> Grants:
        """Return what a child may be given at most, no budget asked for: loans and the turn's focus stay here."""
        return attrs.evolve(self.base, budget=UNLIMITED)

    def lost_authorities(self) -> frozenset[str]:
        """Return the authorities that loans gave once and do not give any more."""
        names: frozenset[str] = frozenset()
        for loan in self.state.lost_loans(self.path):
            names |= loan.grants.authorities
        return names

    def alive_children(self) -> int:
        """How many children have not ended."""
        return len(self.children) if self.children else 0

    def subtree(self) -> list[Member]:
        """Return this member and all below it, parents first."""
        found = [self]
        for member in found:
            found.extend((member.children or {}).values())
        return found
