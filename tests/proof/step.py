"""What an operation of a history is.

It is a value with the paths of the actors it is about. ``choices`` lists what may come next, ``act`` does it to the
real session, ``expect`` does it to the naive account; both say in a word what came of it. ``blurred`` is the same
operation without its focus, ``withheld`` what is left of it when its call was refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

from tests.proof.naive import names_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from tests.proof.people import Actor
    from tests.proof.society import Society
    from tests.proof.stage import Stage

__all__ = ["Operation", "Step", "at_work", "idle", "tools_of"]


class Operation(Protocol):
    """One thing that happens. ``actor`` is the path of the actor whose operation it is, empty for the host's."""

    @property
    def actor(self) -> str:
        """Whose operation it is."""

    @classmethod
    def choices(cls, society: Society) -> list[tuple[Sequence[object], ...]]:
        """For each actor that could do it now, the values of each field to choose from."""

    @property
    def is_call(self) -> bool:
        """Whether it attempts a call of a tool."""

    async def act(self, stage: Stage) -> str:
        """Do it to the session."""

    def expect(self, society: Society) -> str:
        """Do it to the account."""

    def blurred(self) -> Operation:
        """The same without any focus."""

    def withheld(self) -> Operation | None:
        """What is left of it when its call was refused; ``None``: a call of nothing, which is refused as well."""

    def __str__(self) -> str:
        """What happens, in words."""


@attrs.frozen
class Step:
    """What operations share: they have no focus and attempt no call."""

    actor: str

    @property
    def is_call(self) -> bool:
        """Most operations are no calls."""
        return False

    def blurred(self) -> Self:
        """Most operations have no focus."""
        return self

    def withheld(self) -> Operation | None:
        """Nothing in particular is left of most refused calls."""
        return None


def idle(society: Society) -> list[Actor]:
    """Who has no turn."""
    return [actor for actor in society.alive() if not actor.turns]


def at_work(society: Society) -> list[Actor]:
    """Whose model is being asked."""
    return [actor for actor in society.alive() if actor.open]


def tools_of(actor: Actor) -> frozenset[str]:
    """The tools of an actor."""
    return names_of(actor.node.role, actor.node.tools, parent=bool(actor.node.children))
