"""What the host does in a history: turns, messages, loans, starts, stops, resumes, moves of the workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from tests.proof.people import written_out
from tests.proof.pool import LOANS, NARROWINGS, PRINCIPALS, foci
from tests.proof.step import Step, idle, tools_of
from tests.proof.terms import OPEN_FOCUS, STATES, Focus, Holding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.proof.society import Society
    from tests.proof.stage import Stage

__all__ = ["HostSpawn", "Lend", "OpenTurn", "Resume", "StopTree", "StopTurn", "Tell", "Transition"]

MAX_ACTORS = 6


@attrs.frozen
class OpenTurn(Step):
    """The host gives an idle actor a turn, with a policy and a narrowing."""

    focus: Focus
    narrowing: Holding | None

    @classmethod
    def choices(cls, society: Society) -> list[tuple[Sequence[object], ...]]:
        """Any idle actor."""
        return [((actor.path,), foci(tools_of(actor)), (None, None, *NARROWINGS)) for actor in idle(society)]

    async def act(self, stage: Stage) -> str:
        """Give the turn."""
        await stage.turn(self.actor, self.focus, self.narrowing)
        return ""

    def expect(self, society: Society) -> str:
        """A turn of the root takes up what the root is owed."""
        actor = society.actors[self.actor]
        narrowing = None if self.narrowing is None else written_out(self.narrowing)
        society.accept(actor, self.focus, narrowing, "step" if actor.parent else "send")
        if actor.parent is None:
            actor.owed = []
        return ""

    def blurred(self) -> OpenTurn:
        """A turn without a policy."""
        return attrs.evolve(self, focus=OPEN_FOCUS)

    def __str__(self) -> str:
        return f"{self.actor} gets a turn ({self.focus}; grants: {self.narrowing or 'not narrowed'})"


@attrs.frozen
class Tell(Step):
    """Somebody sends an idle actor a message: a turn under the terms of its last one."""

    @classmethod
    def choices(cls, society: Society) -> list[tuple[Sequence[object], ...]]:
        """Any idle actor."""
        return [((actor.path,),) for actor in idle(society)]

    async def act(self, stage: Stage) -> str:
        """Send it."""
        await stage.tell(self.actor)
        return ""

    def expect(self, society: Society) -> str:
        """The terms are those of the last turn."""
        actor = society.actors[self.actor]
        society.accept(actor, *actor.last, "send")
        return ""

    def __str__(self) -> str:
        return f"{self.actor} gets a message"


@attrs.frozen
class StopTurn(Step):
    """The host stops an actor's turn."""

    @classmethod
    def choices(cls, society: Society) -> list[tuple[Sequence[object], ...]]:
        """Any actor with a turn."""
        return [((actor.path,),) for actor in society.alive() if actor.turns]

    async def act(self, stage: Stage) -> str:
        """Stop it."""
        await stage.stop_turn(self.actor)
        return ""

    def expect(self, society: Society) -> str:
        """Its loans end with it, and a child it waited for."""
        society.stop_turn(society.actors[self.actor])
        return ""

    def __str__(self) -> str:
        return f"the turn of {self.actor} is stopped"


@attrs.frozen
class StopTree(Step):
    """The host stops an actor and all below it; the root stays."""

    @classmethod
    def choices(cls, society: Society) -> list[tuple[Sequence[object], ...]]:
        """Anyone."""
        return [((actor.path,),) for actor in reversed(society.alive())]

    async def act(self, stage: Stage) -> str:
        """Stop it."""
        await stage.stop_tree(self.actor)
        return ""

    def expect(self, society: Society) -> str:
        """Loans that it made give nothing any more."""
        actor = society.actors[self.actor]
        if actor.parent is None:
            society.stop_all()
        else:
            society.stop_tree(actor)
        return ""

    def __str__(self) -> str:
        return f"{self.actor} is stopped with all below it"


@attrs.frozen
class HostSpawn(Step):
    """The host starts an actor below the root, which stays until it is stopped."""

    child: str

    @classmethod
    def choices(cls, society: Society) -> list[tuple[Sequence[object], ...]]:
        """Each child of the root's definition."""
        room = society.started < MAX_ACTORS
        return [(("",), [node.name for node in society.root.node.children])] if room else []

    async def act(self, stage: Stage) -> str:
        """Start it."""
        await stage.host_spawn(self.child)
        return ""

    def expect(self, society: Society) -> str:
        """It holds a part of what the root holds."""
        node = next(node for node in society.root.node.children if node.name == self.child)
        society.spawn(society.root, node, kept=True)
        return ""

    def __str__(self) -> str:
        return f"the host starts {self.child}"


@attrs.frozen
class Lend(Step):
    """One actor lends another something until the turn of the other ends."""

    lender: str
    what: Holding

    @classmethod
    def choices(cls, society: Society) -> list[tuple[Sequence[object], ...]]:
        """Anyone to anyone else in a turn; what would be lent and adds something comes more often."""
        found: list[tuple[Sequence[object], ...]] = []
        for borrower in society.alive():
            for lender in society.alive() if borrower.turns else ():
                useful = [loan for loan in LOANS if society.lendable(lender, borrower, loan)]
                if lender is not borrower:
                    found += [((borrower.path,), (lender.path,), useful or LOANS)] * (4 if useful else 1)
        return found

    async def act(self, stage: Stage) -> str:
        """Lend."""
        return "lent" if await stage.lend(self.lender, self.actor, self.what) else "not lent"

    def expect(self, society: Society) -> str:
        """No more than the one holds and the other's role may hold."""
        made = society.lend(society.actors[self.lender], society.actors[self.actor], self.what)
        return "lent" if made else "not lent"

    def __str__(self) -> str:
        return f"{self.lender} lends {self.actor} {self.what} for this turn"


@attrs.frozen
class Resume(Step):
    """The session is closed and taken up again, perhaps with less, or more, in the principal's hands."""

    principal: Holding

    @classmethod
    def choices(cls, _: Society) -> list[tuple[Sequence[object], ...]]:
        """Any time."""
        return [(("",), PRINCIPALS)]

    async def act(self, stage: Stage) -> str:
        """Close and open."""
        await stage.close()
        await stage.open(self.principal)
        return ""

    def expect(self, society: Society) -> str:
        """Nobody holds more than was recorded, nor more than the principal holds now."""
        society.resume(self.principal)
        return ""

    def __str__(self) -> str:
        return f"the session is closed and resumed; the principal holds {self.principal}"


@attrs.frozen
class Transition(Step):
    """The host moves the workflow."""

    state: str

    @classmethod
    def choices(cls, society: Society) -> list[tuple[Sequence[object], ...]]:
        """To any state, also the present one."""
        return [(("",), list(STATES))] if society.root.node.staged else []

    async def act(self, stage: Stage) -> str:
        """Move it."""
        await stage.move(self.state)
        return ""

    def expect(self, society: Society) -> str:
        """What was called in the state before is stale."""
        society.move(self.state)
        return ""

    def __str__(self) -> str:
        return f"the host moves the workflow to {self.state}"
