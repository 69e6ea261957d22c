"""The people of a session, by the naive specification: actors, their turns, what they have on loan."""

from __future__ import annotations

import json

import attrs

from tests.proof.naive import Held, held
from tests.proof.terms import OPEN_FOCUS, Focus, Holding, Node

__all__ = ["Actor", "Loan", "Parked", "Turn", "key_of", "written_out"]


@attrs.define(eq=False)
class Turn:
    """One accepted turn: its focus, its narrowing, what made it, the children it started."""

    focus: Focus
    narrowing: Held | None
    origin: str
    answered: bool = False  # a notice of it wakes nobody


@attrs.define(eq=False)
class Loan:
    """What *lender* lends *borrower* for one turn."""

    lender: Actor
    held: Held
    until: Turn


@attrs.frozen
class Parked:
    """A call that waits for a person, and how often the workflow had moved when it was asked."""

    name: str
    arguments: str
    moves: int


@attrs.define(eq=False)
class Actor:
    """One actor. ``recorded`` is what it was started with, ``base`` what of that the principal still holds.

    ``limit`` is how many tool calls it may make in its life, ``spent`` how many it and its children that are gone made.
    """

    path: str
    node: Node
    parent: Actor | None
    recorded: Held
    base: Held
    limit: int | None
    spent: int = 0
    kept: bool = False
    cause: Turn | None = None
    background: bool = True
    turns: list[Turn] = attrs.field(factory=list)
    last: tuple[Focus, Held | None] = (OPEN_FOCUS, None)
    loans: list[Loan] = attrs.field(factory=list)
    lost: set[str] = attrs.field(factory=set)
    owed: list[tuple[Actor, Turn]] = attrs.field(factory=list)
    children: list[Actor] = attrs.field(factory=list)
    waits_for: Turn | None = None
    steered: bool = False
    gone: bool = False
    asked_at: int = 0
    parked: Parked | None = None

    @property
    def depth(self) -> int:
        """How many levels below the root."""
        return 0 if self.parent is None else self.parent.depth + 1

    @property
    def left(self) -> int | None:
        """How many calls it may still make: what it spent and what it gave its children is not there."""
        if self.limit is None:
            return None
        given = sum(child.limit or 0 for child in self.children if not child.gone)
        return self.limit - self.spent - given

    @property
    def open(self) -> bool:
        """Whether it has a turn in which the model is to be asked."""
        return bool(self.turns) and self.waits_for is None and self.parked is None and not self.gone


def key_of(arguments: str) -> str:
    """The argument that a rule may be about."""
    return str(json.loads(arguments).get("key", ""))


def written_out(what: Holding) -> Held:
    """The holding as the set of all that it covers."""
    return held(what.authorities, what.access, what.roots)
