"""Driving the review of one step: the reviewer's turn, the fixer's turn with its loan, again, until there is a verdict.

What is next is asked of `review.next_move` after each turn, from the record alone, so a resumed run neither repeats a
round nor skips one.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from orchestrator.journal.work import FixesRecorded, ReviewRecorded, Stage, Verdict
from orchestrator.workflows.answers import FIXES, REVIEW, fixes_faults, read_fixes, read_review, review_faults
from orchestrator.workflows.review import Move, next_move, open_items, remaining, revised, worklist
from orchestrator.workflows.telling import fix_text, review_text
from orchestrator.workflows.turns import Done, Place, Task

if TYPE_CHECKING:
    from orchestrator.journal.journal import Journal
    from orchestrator.workflows.company import Company
    from orchestrator.workflows.plan import Review, Step
    from orchestrator.workflows.telling import Case
    from orchestrator.workflows.turns import Turns

__all__ = ["Rounds"]


class Rounds:
    """Reviews steps whose own work is done."""

    def __init__(self, journal: Journal, company: Company, turns: Turns) -> None:
        self._journal = journal
        self._company = company
        self._turns = turns

    async def hold(self, step: Step, review: Review, case: Case, output: str) -> Done:
        """Return what the review of *output* came to: the output, as the fixes left it, and why it was not accepted.

        Raises `Waits` when a turn waits for a person. On cancel a turn in flight stays open.
        """
        while True:
            past = self.past(case.key)
            move = next_move(past, review.max_rounds)
            now = revised(past, output)
            if move.move is Move.DONE:
                return Done(now)
            if move.move is Move.FAILED:
                return Done(now, self._verdict(case.key))
            stage = self._review if move.move is Move.REVIEW else self._fix
            fault = await stage(step, review, case, now, move.round)
            if fault:
                return Done(now, fault)

    def past(self, key: str) -> tuple[ReviewRecorded | FixesRecorded, ...]:
        """Return what reviewer and fixer of *key* have said, in order."""
        return tuple(self._journal.state.rounds.get(key, ()))

    def _verdict(self, key: str) -> str:
        """Return why a review that is over was not passed."""
        past = self.past(key)
        last = past[-1]
        assert isinstance(last, ReviewRecorded)
        said = "rejected it" if last.verdict is Verdict.REJECTED else "wants changes still"
        return f"review round {last.round} of {last.of} {said}; {remaining(past)}"

    async def _review(self, step: Step, review: Review, case: Case, output: str, number: int) -> str:
        """Have the review of one round given; return why there is none."""
        past, of = self.past(case.key), review.max_rounds
        text = partial(review_text, case, number, of, output, worklist(past))
        task = Task(Place(case.key, Stage.REVIEW, number, of), text, review_faults, REVIEW)
        async with self._company.seat(step, case.key, Stage.REVIEW) as member:
            done = await self._turns.ask(task, member)
            by = member.path
        if done.fault:
            return f"review round {number} of {of} came to no verdict: {done.fault}"
        said = read_review(done.output)
        record = ReviewRecorded(case.key, number, of, by, said.verdict, said.findings, said.summary)
        self._journal.append(by, record)
        return ""

    async def _fix(self, step: Step, review: Review, case: Case, output: str, number: int) -> str:
        """Have the fixes of one round made; return why they were not."""
        past, of = self.past(case.key), review.max_rounds
        items = open_items(past)
        ids = tuple(item.finding.id for item in items)
        text = partial(fix_text, case, number, of, output, items)
        place = Place(case.key, Stage.FIX, number, of)
        task = Task(place, text, partial(fixes_faults, ids, step.output), FIXES, review.lend)
        async with self._company.seat(step, case.key, Stage.FIX) as member:
            done = await self._turns.ask(task, member)
            by = member.path
        if done.fault:
            return f"the fixes of review round {number} of {of} failed: {done.fault}; {remaining(past)}"
        said = read_fixes(done.output, step.output)
        self._journal.append(by, FixesRecorded(case.key, number, by, said.answers, said.output))
        return ""
