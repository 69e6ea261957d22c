"""Faults of workflow files, each with its place, gathered so that all of them are told at once."""

from __future__ import annotations

import msgspec

__all__ = ["Fault", "FaultLog", "Mark", "PlanError"]


class Mark(msgspec.Struct, frozen=True):
    """A place in a file; line and column count from 1."""

    place: str
    line: int
    column: int


class Fault(msgspec.Struct, frozen=True):
    """One thing wrong: where, what, and what would mend it. Line and column count from 1."""

    place: str
    line: int
    column: int
    message: str
    remedy: str

    def __str__(self) -> str:
        """Return ``place:line:column: message. remedy``."""
        return f"{self.place}:{self.line}:{self.column}: {self.message}. {self.remedy}"


class PlanError(Exception):
    """A workflow file that makes no plan; *faults* are all of them, in the order of the files."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        """Keep *faults*, of which there is at least one."""
        super().__init__(faults)
        self.faults = faults

    def __str__(self) -> str:
        """Return how many faults there are, and each of them on its own line."""
        count = len(self.faults)
        return "\n".join((f"{count} fault{'s' if count > 1 else ''}:", *map(str, self.faults)))


class FaultLog:
    """Gathers faults while a file is read, so that reading need not stop at the first."""

    def __init__(self) -> None:
        """Start without faults."""
        self.faults: set[Fault] = set()

    def add(self, mark: Mark, message: str, remedy: str) -> None:
        """Remember one fault at *mark*; the same fault twice is one."""
        self.faults.add(Fault(mark.place, mark.line, mark.column, message, remedy))

    def settle(self, first: str) -> None:
        """Do nothing when there is no fault.

        :raises PlanError: with every fault, those of the file *first* before those of other files.
        """
        if self.faults:
            raise self.error(first)

    def error(self, first: str) -> PlanError:
        """Return the error of every fault, those of the file *first* before those of other files."""
        places = {each: (each.place != first, each.place, each.line, each.column, each.message) for each in self.faults}
        return PlanError(tuple(sorted(self.faults, key=places.__getitem__)))
