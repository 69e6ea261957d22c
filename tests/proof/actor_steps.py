"""What an actor does in a history, and what a person answers to it: calls of every kind, and its final answer."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import attrs

from tests.proof.host_steps import StopTurn
from tests.proof.kernel_values import encoded
from tests.proof.pool import ATTEMPTS
from tests.proof.step import Step, at_work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.proof.society import Society
    from tests.proof.stage import Stage
    from tests.proof.step import Operation

__all__ = ["Approve", "Call", "Delegate", "Finish", "Interrupt", "Message"]

PERMITTED = "permitted"
EDITED = '{"key":"edited"}'


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
            society.message(society.actors[self.child], actor.turns[0].narrowing)
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
