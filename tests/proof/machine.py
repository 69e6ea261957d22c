"""Random histories, made by Hypothesis: a state machine that does one operation a step."""

from __future__ import annotations

import asyncio
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from tests.proof.operations import OPERATIONS
from tests.proof.pool import CASTS
from tests.proof.smaller import smallest
from tests.proof.world import Differs, Tally, World, isolated

__all__ = ["search"]


class Histories(RuleBasedStateMachine):
    """One random history; what it adds up to is compared at each step, and replayed for each actor at its end."""

    tally = Tally()
    against_specification = True

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.world: World | None = None
        self.sound = True

    @initialize(cast=st.sampled_from(CASTS))
    def start(self, cast: Any) -> None:
        """Begin with a cast."""
        self.world = World(cast, self.tally, compares=self.against_specification)
        self.runner.run(self.world.open())

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        """Do one of the operations that are possible now."""
        assert self.world is not None
        society = self.world.society
        possible = {kind: choices for kind in OPERATIONS if (choices := kind.choices(society))}
        kind = data.draw(st.sampled_from([kind for kind in possible for _ in range(OPERATIONS[kind])]))
        choice = data.draw(st.sampled_from(possible[kind]))
        operation = kind(*(data.draw(st.sampled_from(list(values))) for values in choice))
        self.sound = False
        self.runner.run(self.world.do(operation))
        self.sound = True

    def teardown(self) -> None:
        """Play the history once for each actor, without the focus of all others; then let everything go."""
        world = self.world
        try:
            if world is not None:
                self.runner.run(world.close())
                for actor in world.society.actors if self.sound else ():
                    self.runner.run(self.isolate(world, actor))
        finally:
            self.runner.close()

    async def isolate(self, world: World, actor: str) -> None:
        """Hold the history of *actor* to the one without the others' focus."""
        try:
            await isolated(world.cast, actor, world.history)
        except Differs:
            self.tally.differed += 1
            raise


def search(
    histories: int, *, seed: int | None = None, steps: int = 30, against_specification: bool = True
) -> tuple[Tally, str]:
    """Play so many random histories; return what was checked and, in words, the smallest that differed, if any.

    With a *seed* the same histories are played each time. Without *against_specification* only the replays are
    compared: that an actor cannot tell whether others have a policy.
    """
    tally = Tally()
    kind = type("Search", (Histories,), {"tally": tally, "against_specification": against_specification})
    chosen = settings(
        max_examples=histories,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        phases=(Phase.generate,),
        verbosity=Verbosity.quiet,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )
    if seed is not None:
        kind = hypothesis.seed(seed)(kind)
    try:
        run_state_machine_as_test(kind, settings=chosen)
    except Differs as found:
        tally.differed = 1
        return tally, str(smallest(found, compares=against_specification))
    return tally, ""
