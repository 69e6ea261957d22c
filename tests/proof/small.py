"""Every small history of some shapes, without chance: definition × policy × narrowing × loan × stop, to a depth.

The shape: the root gets a turn, starts a child (or, not being able to, goes on alone), somebody is lent something,
somebody is stopped or the session resumed; then everyone attempts every tool. Every combination of the lists below is
played.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from tests.proof.actor_steps import Call, Delegate, Finish
from tests.proof.host_steps import HostSpawn, Lend, OpenTurn, Resume, StopTree, StopTurn
from tests.proof.pool import LOANS, NARROWINGS, OWNER
from tests.proof.terms import OPEN_FOCUS, Cast, Focus, Node
from tests.proof.world import Differs, Tally, World, isolated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.proof.step import Operation

__all__ = ["histories", "play"]

READER = ("look", "peek")
WRITER = ("peek", "put")
CASTS = tuple(
    Cast(Node("boss", root, tools, (Node("left", child, WRITER if child != "reviewer" else READER),)), OWNER)
    for root, child, tools in (
        ("builder", "child", WRITER),
        ("builder", "child", READER),
        ("builder", "fixer", READER),
        ("builder", "reviewer", WRITER),
        ("fixer", "child", WRITER),
    )
)
FOCI = (OPEN_FOCUS, Focus(denied=frozenset({"peek"})), Focus(allowed=frozenset({"delegate"})))
NARROW = NARROWINGS[:2]
BORROWED = (None, LOANS[0], LOANS[1])
BOSS, LEFT, KEPT = "boss", "boss/left-0003", "boss/left-0002"
LAST: tuple[tuple[Operation, ...], ...] = (
    (),
    (StopTurn(BOSS),),
    (StopTree(KEPT),),
    (StopTree(LEFT),),
    (Finish(LEFT), Finish(BOSS)),
    (Finish(BOSS), Finish(LEFT), Resume("", OWNER)),
)
ATTEMPTS = (("look", '{"n":%d}'), ("peek", '{"n":%d}'), ("put", '{"path":"src/a","n":%d}'))


def histories() -> Iterator[tuple[Cast, tuple[Operation, ...]]]:
    """Every history of the shape; those of the last places differ first."""
    for cast, narrowing, focus, other, loan, last in itertools.product(CASTS, NARROW, FOCI, FOCI[:2], BORROWED, LAST):
        lender, borrower = (KEPT, LEFT) if other is OPEN_FOCUS else (BOSS, KEPT)
        yield (
            cast,
            (
                HostSpawn("", "left"),
                OpenTurn(BOSS, focus, narrowing),
                OpenTurn(KEPT, other, None),
                Delegate(BOSS, "left", background=True),
                *([] if loan is None else [Lend(borrower, lender, loan)]),
                *last,
            ),
        )


async def play(cast: Cast, steps: tuple[Operation, ...], tally: Tally) -> None:
    """Play one history, let everyone attempt everything, and replay it for each. Raises `Differs`."""
    world = World(cast, tally)
    try:
        await world.open()
        for step in steps:
            if possible(world, step):
                await world.do(step)
        for actor in tuple(world.society.alive()):
            for name, arguments in ATTEMPTS:
                if actor.open:
                    await world.do(Call(actor.path, name, arguments))
    finally:
        await world.close()
    for path in world.society.actors:
        try:
            await isolated(cast, path, world.history)
        except Differs:
            tally.differed += 1
            raise


def possible(world: World, step: Operation) -> bool:
    """Whether everyone in *step* is there and in the right place for it."""
    actors = world.society.actors
    actor = actors.get(step.actor)
    if isinstance(step, Lend):
        lender = actors.get(step.lender)
        return actor is not None and bool(actor.turns) and lender is not None and not lender.gone
    if isinstance(step, Finish | Delegate | Call):
        return actor is not None and actor.open
    if isinstance(step, StopTurn):
        return actor is not None and bool(actor.turns)
    return not step.actor or (actor is not None and not actor.gone)
