"""One sign for each verdict, so that a matrix can be read without its colours. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from orchestrator.catalog.viewpoint import Cell

__all__ = ["Sign", "sign_of", "signs_in"]


@attrs.frozen
class Sign:
    """A letter, the name of its colour, and what it means."""

    letter: str
    colour: str
    meaning: str


YES = Sign("Y", "yes", "offered")
ASK = Sign("?", "ask", "offered; a person must say yes to each call")
BY_GATE = {
    1: Sign("R", "other", "no right to call"),
    2: Sign("-", "none", "not in this actor's definition"),
    3: Sign("S", "other", "its source does not answer, or was changed"),
    4: Sign("I", "other", "the caller's identity or access is in question"),
    5: Sign("W", "state", "not part of the workflow's state"),
    6: Sign("P", "policy", "the turn's policy denies it"),
    7: Sign("A", "authority", "an authority is missing"),
    8: Sign("X", "authority", "its access is above the highest held"),
    9: Sign("C", "context", "a context field is missing"),
    12: Sign("B", "other", "the budget or a limit of children is reached"),
    14: Sign("N", "nobody", "needs a person's approval, and nobody can be asked"),
}
ALL = (YES, ASK, *BY_GATE.values())


def sign_of(cell: Cell) -> Sign:
    """Return the sign of *cell*."""
    if cell.permitted:
        return ASK if cell.code else YES
    return BY_GATE[cell.gate]


def signs_in(cells: tuple[Cell, ...]) -> tuple[Sign, ...]:
    """Return the signs that *cells* use, in one order."""
    used = {sign_of(cell) for cell in cells}
    return tuple(sign for sign in ALL if sign in used)
