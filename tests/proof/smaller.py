"""Makes a history that differs smaller: as long as something still differs, operations are left out."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import attrs

from tests.proof.actor_steps import Delegate
from tests.proof.host_steps import HostSpawn
from tests.proof.world import Differs, Tally, World, isolated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.proof.step import Operation
    from tests.proof.terms import Cast

__all__ = ["smallest"]

NUMBER = re.compile(r"-(\d{4})")


def smallest(found: Differs, *, compares: bool) -> Differs:
    """Return a difference with the shortest history that leaving out single operations leads to.

    Without *compares* only the replays count, not the specification.
    """
    best, place = found, len(found.history)
    with asyncio.Runner() as runner:
        while place:
            place = min(place, len(best.history)) - 1
            shorter = runner.run(differs(best.cast, without(best.history, place), compares=compares))
            if shorter is not None:
                best = shorter
    return best


def without(history: Sequence[Operation], place: int) -> list[Operation]:
    """Leave out one operation; where it started an actor, later ones have lower numbers."""
    left_out, rest = history[place], list(history[place + 1 :])
    if isinstance(left_out, Delegate | HostSpawn):
        number = 2 + sum(isinstance(step, Delegate | HostSpawn) for step in history[:place])
        rest = [renumbered(step, number) for step in rest]
    return [*history[:place], *rest]


def renumbered(step: Operation, gone: int) -> Operation:
    """The operation with every actor's number above *gone* one lower."""

    def lower(match: re.Match[str]) -> str:
        number = int(match[1])
        return f"-{number - (number > gone):04d}"

    changed = {
        name: NUMBER.sub(lower, value)
        for name, value in attrs.asdict(step, recurse=False).items()  # type: ignore[arg-type]  # each is attrs.frozen
        if isinstance(value, str)
    }
    return attrs.evolve(step, **changed)  # type: ignore[misc]  # each operation is attrs.frozen


async def differs(cast: Cast, history: Sequence[Operation], *, compares: bool) -> Differs | None:
    """Play *history*, leaving out what cannot happen; return in what it differs, if it does."""
    world = World(cast, Tally(), compares=compares)
    try:
        await world.open()
        for step in history:
            if can_happen(world, step):
                await world.do(step)
        await world.close()
        for actor in world.society.actors:
            await isolated(cast, actor, world.history)
    except Differs as found:
        return found
    finally:
        await world.close()
    return None


def can_happen(world: World, step: Operation) -> bool:
    """Whether *step* is among what can come next."""
    return any(
        all(value in values for value, values in zip(attrs.astuple(step, recurse=False), choice, strict=True))  # type: ignore[arg-type]  # each is attrs.frozen
        for choice in type(step).choices(world.society)
    )
