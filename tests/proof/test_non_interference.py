"""What an actor may do is never changed by the focus of another; and the proof of it can fail."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import attrs
import pytest

from tests.proof.actor_steps import Call, Delegate
from tests.proof.host_steps import HostSpawn, OpenTurn
from tests.proof.leaks import FOCUS_LEAKS, LEAKS
from tests.proof.machine import search
from tests.proof.naive import Held, held, lead
from tests.proof.operations import OPERATIONS
from tests.proof.pool import ATTEMPTS, CASTS, NARROWINGS, OWNER
from tests.proof.small import histories, play
from tests.proof.smaller import smallest, without
from tests.proof.society import Society
from tests.proof.terms import OPEN_FOCUS
from tests.proof.world import Differs, Tally, World

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from tests.proof.step import Operation
    from tests.proof.terms import Cast


@pytest.mark.requirement("I3", "I5", "I6")
def test_random_histories_agree_with_the_specification_and_nobody_feels_the_policy_of_another() -> None:
    tally, words = search(20)
    assert words == ""
    assert tally.histories >= 20
    assert tally.calls > 0
    assert tally.verdicts > tally.calls


@pytest.mark.requirement("I5", "I6")
def test_small_histories_of_every_kind_agree_with_the_specification() -> None:
    tally, every = Tally(), list(histories())
    with asyncio.Runner() as runner:
        for cast, steps in every[:: len(every) // 100]:
            runner.run(play(cast, steps, tally))
    assert tally.histories >= 100
    assert tally.differed == 0


@pytest.mark.requirement("I5")
@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.__name__)
def test_a_planted_leak_is_found(leak: Callable[[], AbstractContextManager[None]]) -> None:
    with leak():
        tally, words = search(400, seed=3)
    assert tally.differed == 1
    assert "should" in words or "says" in words


@pytest.mark.requirement("I5")
@pytest.mark.parametrize("leak", FOCUS_LEAKS, ids=lambda leak: leak.__name__)
def test_a_leak_of_focus_is_found_without_any_specification(leak: Callable[[], AbstractContextManager[None]]) -> None:
    with leak():
        tally, words = search(400, seed=3, against_specification=False)
    assert tally.differed == 1
    assert "without the policies of all but" in words


@pytest.mark.requirement("I3", "I7")
@pytest.mark.parametrize("cast", CASTS, ids=lambda cast: cast.root.role)
def test_every_attempt_is_answered_as_the_specification_says(cast: Cast) -> None:
    async def run(tally: Tally) -> None:
        for narrowing in NARROWINGS:
            world = World(cast, tally)
            await world.open()
            try:
                await world.do(OpenTurn("boss", OPEN_FOCUS, narrowing))
                for name, arguments in ATTEMPTS:
                    if world.society.root.open:
                        await world.do(Call("boss", name, arguments))
            finally:
                await world.close()

    tally = Tally()
    asyncio.run(run(tally))
    assert tally.calls > len(NARROWINGS)


def test_what_differs_is_told_in_words_and_made_smaller() -> None:
    steps = [HostSpawn("", "right"), HostSpawn("", "left"), OpenTurn("boss", OPEN_FOCUS, None)]

    class Wrong(World):
        async def do(self, operation: object) -> str:
            said = await super().do(operation)  # type: ignore[arg-type]  # the test's own operations
            self.society.root.turns.clear()
            return said

    async def run() -> Differs:
        world = Wrong(CASTS[0], Tally())
        await world.open()
        try:
            for step in [*steps, HostSpawn("", "left")]:
                await world.do(step)
        except Differs as found:
            return found
        finally:
            await world.close()
        pytest.fail("the two agreed")

    found = asyncio.run(run())
    assert str(found).splitlines()[1:4] == [
        "1. the host starts right",
        "2. the host starts left",
        "3. boss gets a turn (no policy; grants: not narrowed)",
    ]
    assert smallest(found, compares=True) is found, "the true kernel agrees, so nothing is smaller"


def test_leaving_out_a_start_gives_later_actors_lower_numbers() -> None:
    steps: list[Operation] = [
        HostSpawn("", "left"),
        HostSpawn("", "right"),
        OpenTurn("boss/right-0003", OPEN_FOCUS, None),
        Delegate("boss/right-0003/leaf-0004", "twig", background=True),
    ]
    left = without(steps, 0)
    assert [step.actor for step in left] == ["", "boss/right-0002", "boss/right-0002/leaf-0003"]


def test_the_specification_writes_out_what_a_pattern_and_a_root_cover() -> None:
    assert held(frozenset({"workspace.*"}), "write", frozenset({"src"})) == Held(
        frozenset({"workspace.read", "workspace.write", "workspace.other"}), 1, frozenset({"src", "src/a", "src/b"})
    )
    assert [lead(path) for path in ("./src//b", "src/../a", "src/../../a", "/a", "out/a", ".")] == [
        "src/b",
        "a",
        None,
        None,
        None,
        ".",
    ]


def test_every_operation_can_happen_in_some_cast() -> None:
    seen: set[str] = set()

    async def run() -> None:
        for cast in (CASTS[0], *(cast for cast in CASTS if cast.approver)):
            world = World(cast, Tally())
            await world.open()
            try:
                await world.do(OpenTurn("boss", OPEN_FOCUS, None))
                await world.do(Delegate("boss", "left", background=True))
                await world.do(HostSpawn("", "right"))
                await world.do(Call("boss", "sign", '{"key":"a"}'))
                seen.update(kind.__name__ for kind in OPERATIONS if kind.choices(world.society))
            finally:
                await world.close()

    asyncio.run(run())
    assert seen == {kind.__name__ for kind in OPERATIONS}


def test_the_specification_gives_a_child_half_of_the_calls_that_its_parent_has_left() -> None:
    society = Society(attrs.evolve(CASTS[0], principal=attrs.evolve(OWNER, calls=10)))
    society.accept(society.root, OPEN_FOCUS, None, "send")
    assert society.attempt("boss", "look", "{}") == "permitted"
    child = society.delegate(society.root, society.root.node.children[0], background=True)
    assert (child.limit, society.root.left) == (4, 5)
    assert [society.attempt(child.path, "look", "{}") for _ in range(5)] == ["permitted"] * 4 + ["budget_exhausted"]
    society.end(child)
    assert society.root.left == 5
