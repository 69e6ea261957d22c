"""Everything that can happen in a history: one small class an operation, listed in `OPERATIONS`.

An operation is a value with the paths of the actors it is about. ``choices`` lists what may come next, ``act`` does it
to the real session, ``expect`` does it to the naive account; both say in a word what came of it. ``blurred`` is the same
operation without its focus, ``withheld`` what is left of it when its call was refused.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Protocol

import attrs

from tests.proof.naive import names_of
from tests.proof.pool import ATTEMPTS, LOANS, NARROWINGS, PRINCIPALS, foci
from tests.proof.society import written_out
from tests.proof.stage import encoded
from tests.proof.terms import OPEN_FOCUS, STATES, Focus, Holding

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from tests.proof.society import Actor, Society
    from tests.proof.stage import Stage

__all__ = ["OPERATIONS", "Operation"]

PERMITTED = "permitted"
NO_FOCUS: tuple[Focus, ...] = (OPEN_FOCUS,)
# An argument of an operation is chosen from a list; the first of a list is the simplest.
Choice = "tuple[Sequence[object], ...]"


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
        """What is left of it when its call was refused."""

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
        """The model hears of a refusal all the same: a call of nothing is left of most refused calls."""
        return Call(self.actor, "nothing", '{"n":%d}')


def idle(society: Society) -> list[Actor]:
    """Who has no turn."""
    return [actor for actor in society.alive() if not actor.turns]


def at_work(society: Society) -> list[Actor]:
    """Whose model is being asked."""
    return [actor for actor in society.alive() if actor.open]


def cut_off(society: Society) -> bool:
    """A known gap: a ``delegate`` that waits for its child is decided anew at a resume, and may be refused then.

    Until it finds its child whatever the gates say by now, no history resumes at such a moment.
    """
    waiting = [actor for actor in society.alive() if actor.waits_for is not None and actor.turns]
    task = encoded(child="x", task="x")
    return any(society.decide(actor.path, "delegate", task) != PERMITTED for actor in waiting)


def node_names(actor: Actor) -> frozenset[str]:
    """The tools of an actor."""
    return names_of(actor.node.role, actor.node.tools, parent=bool(actor.node.children))


@attrs.frozen
class OpenTurn(Step):
    """The host gives an idle actor a turn, with a policy and a narrowing."""

    focus: Focus
    narrowing: Holding | None

    @classmethod
    def choices(cls, society: Society) -> list[tuple[Sequence[object], ...]]:
        """Any idle actor."""
        return [((actor.path,), foci(node_names(actor)), NARROWINGS) for actor in idle(society)]

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
class Finish(Step):
    """An actor gives its final answer; what it did for its parent is told to the parent, which may wake it."""

    @classmethod
    def choices(cls, society: Society) -> list[tuple[Sequence[object], ...]]:
        """Any actor at work."""
        return [((actor.path,),) for actor in at_work(society)]

    async def act(self, stage: Stage) -> str:
        """Answer."""
        await stage.finish(self.actor)
        return ""

    def expect(self, society: Society) -> str:
        """An actor that was sent a message meanwhile goes on."""
        actor = society.actors[self.actor]
        if actor.steered:
            actor.steered = False
        else:
            society.end(actor)
        return ""

    def __str__(self) -> str:
        return f"{self.actor} gives its final answer"


@attrs.frozen
class Call(Step):
    """An actor calls a tool: one it has or not, well or badly."""

    name: str
    arguments: str

    @classmethod
    def choices(cls, society: Society) -> list[tuple[Sequence[object], ...]]:
        """Any attempt by any actor at work."""
        found: list[tuple[Sequence[object], ...]] = []
        for actor in at_work(society):
            for name, group in itertools.groupby(ATTEMPTS, key=lambda attempt: attempt[0]):
                found.append(((actor.path,), (name,), [arguments for _, arguments in group]))
        return found

    @property
    def is_call(self) -> bool:
        """It is."""
        return True

    async def act(self, stage: Stage) -> str:
        """Call."""
        return await stage.call(self.actor, self.name, stage.numbered(self.arguments))

    def expect(self, society: Society) -> str:
        """Ask the naive specification."""
        return society.attempt(self.actor, self.name, self.arguments.replace("%d", "7"))

    def __str__(self) -> str:
        return f"{self.actor} calls {self.name!r} with {self.arguments.replace('%d', '1')}"


@attrs.frozen
class Delegate(Step):
    """An actor starts one of its children on a task, and waits for it or not."""

    child: str
    background: bool

    @classmethod
    def choices(cls, society: Society) -> list[tuple[Sequence[object], ...]]:
        """Any child of the definition of any actor at work."""
        return [
            ((actor.path,), [node.name for node in actor.node.children], (True, False))
            for actor in at_work(society)
            if actor.node.children
        ]

    @property
    def is_call(self) -> bool:
        """It is."""
        return True

    @property
    def arguments(self) -> str:
        """What the model writes."""
        return encoded(child=self.child, task="do %d", background=self.background)

    async def act(self, stage: Stage) -> str:
        """Call ``delegate``."""
        return await stage.call(self.actor, "delegate", stage.numbered(self.arguments))

    def expect(self, society: Society) -> str:
        """If it may, there is a child with a turn."""
        actor = society.actors[self.actor]
        said = society.attempt(self.actor, "delegate", self.arguments)
        if said == PERMITTED:
            node = next(node for node in actor.node.children if node.name == self.child)
            society.delegate(actor, node, background=self.background)
        return said

    def __str__(self) -> str:
        return f"{self.actor} delegates to {self.child}{'' if self.background else ' and waits'}"


@attrs.frozen
class Message(Step):
    """An actor sends one of its children a message."""

    child: str

    @classmethod
    def choices(cls, society: Society) -> list[tuple[Sequence[object], ...]]:
        """Any live child of any actor at work."""
        return [
            ((actor.path,), children)
            for actor in at_work(society)
            if (children := [child.path for child in actor.children if not child.gone])
        ]

    @property
    def is_call(self) -> bool:
        """It is."""
        return True

    @property
    def arguments(self) -> str:
        """What the model writes."""
        return encoded(child=self.child.rpartition("/")[2], text="do %d")

    async def act(self, stage: Stage) -> str:
        """Call ``message_child``."""
        return await stage.call(self.actor, "message_child", stage.numbered(self.arguments))

    def expect(self, society: Society) -> str:
        """If it may, the child's turn takes it up, or the child gets a turn that is no wider than this one."""
        actor = society.actors[self.actor]
        said = society.attempt(self.actor, "message_child", self.arguments)
        if said == PERMITTED:
            society.message(actor, society.actors[self.child], actor.turns[0].narrowing)
        return said

    def __str__(self) -> str:
        return f"{self.actor} sends {self.child} a message"


@attrs.frozen
class Interrupt(Step):
    """An actor calls a tool that never ends, and its turn is stopped: nobody knows whether it happened."""

    key: str

    @classmethod
    def choices(cls, society: Society) -> list[tuple[Sequence[object], ...]]:
        """Any actor at work that has the tool."""
        return [((actor.path,), ("x", "y")) for actor in at_work(society) if "stall" in actor.node.tools]

    @property
    def is_call(self) -> bool:
        """It is."""
        return True

    @property
    def arguments(self) -> str:
        """What the model writes."""
        return encoded(key=self.key)

    async def act(self, stage: Stage) -> str:
        """Call ``stall``, then stop the turn."""
        said = await stage.call(self.actor, "stall", self.arguments)
        await stage.stop_turn(self.actor)
        return said

    def expect(self, society: Society) -> str:
        """If it may, an equal call is refused from then on, whoever makes it."""
        said = society.attempt(self.actor, "stall", self.arguments)
        if said == PERMITTED:
            society.unresolved.add(("stall", self.key))
        society.stop_turn(society.actors[self.actor])
        return said

    def withheld(self) -> Operation:
        """The turn is stopped all the same."""
        return StopTurn(self.actor)

    def __str__(self) -> str:
        return f"{self.actor} calls 'stall' with {self.arguments} and its turn is stopped meanwhile"


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
        """Anyone to anyone in a turn, also to itself."""
        everyone = [actor.path for actor in society.alive()]
        return [((actor.path,), everyone, LOANS) for actor in society.alive() if actor.turns]

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
    def choices(cls, society: Society) -> list[tuple[Sequence[object], ...]]:
        """Any time but for the gap below."""
        return [] if cut_off(society) else [(("",), PRINCIPALS)]

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


@attrs.frozen
class Approve(Step):
    """A person answers a parked call: yes, no, yes with other arguments, or yes from now on."""

    verdict: str

    @classmethod
    def choices(cls, society: Society) -> list[tuple[Sequence[object], ...]]:
        """Any parked call; a question of ``ask_person`` is only refused here."""
        parked = [actor for actor in society.alive() if actor.parked is not None]
        return [
            ((actor.path,), ("no",) if actor.parked and actor.parked.name != "sign" else ("yes", "no", "edit", "rule"))
            for actor in parked
        ]

    @property
    def is_call(self) -> bool:
        """The call is decided again."""
        return True

    async def act(self, stage: Stage) -> str:
        """Answer."""
        verdict = "reject" if self.verdict == "no" else "approve"
        edited = EDITED if self.verdict == "edit" else ""
        return await stage.answer(self.actor, verdict, edited, rule=self.verdict == "rule")

    def expect(self, society: Society) -> str:
        """What runs is what was shown, or what the person made of it."""
        actor = society.actors[self.actor]
        assert actor.parked is not None
        arguments = EDITED if self.verdict == "edit" else actor.parked.arguments
        answer = "no" if self.verdict == "no" else "yes"
        return society.answer(actor, answer, arguments, rule=self.verdict == "rule")

    def withheld(self) -> Operation:
        """The answer stays what it was."""
        return self

    def __str__(self) -> str:
        return f"a person answers {self.actor}: {self.verdict}"


EDITED = '{"key":"edited"}'
MAX_ACTORS = 12
OPERATIONS: tuple[type[Operation], ...] = (
    OpenTurn,
    Call,
    Delegate,
    Finish,
    Lend,
    HostSpawn,
    Tell,
    Message,
    Interrupt,
    Transition,
    Approve,
    StopTurn,
    StopTree,
    Resume,
)
