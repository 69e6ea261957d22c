"""What follows in a review, for any history: it ends in time, and each finding has one state."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.journal.work import FixAnswer, FixesRecorded, ReviewFinding, ReviewRecorded, Severity, Verdict
from orchestrator.workflows.review import (
    ItemState,
    Move,
    Next,
    next_move,
    open_items,
    remaining,
    revised,
    worklist,
)

WANTED, ACCEPTED, REJECTED = Verdict.CHANGES_WANTED, Verdict.ACCEPTED, Verdict.REJECTED


def found(name: str, severity: Severity = Severity.MAJOR, message: str = "wrong") -> ReviewFinding:
    return ReviewFinding(name, "a.py:1", severity, message)


def review(number: int, verdict: Verdict, *findings: ReviewFinding) -> ReviewRecorded:
    return ReviewRecorded("k", number, 3, "r", verdict, findings)


def fixed(number: int, output: str | None = None, **answers: bool) -> FixesRecorded:
    given = tuple(FixAnswer(name, done, f"{name} {done}") for name, done in answers.items())
    return FixesRecorded("k", number, "f", given, output)


def states(*past: ReviewRecorded | FixesRecorded) -> dict[str, str]:
    return {item.finding.id: item.state.value for item in worklist(past)}


@pytest.mark.parametrize(
    "past, rounds, expected",
    [
        ((), 1, Next(Move.REVIEW, 1)),
        ((review(1, ACCEPTED),), 1, Next(Move.DONE, 1)),
        ((review(1, ACCEPTED),), 3, Next(Move.DONE, 1)),
        ((review(1, WANTED, found("a")),), 1, Next(Move.FAILED, 1)),
        ((review(1, WANTED, found("a")),), 2, Next(Move.FIX, 1)),
        ((review(1, REJECTED, found("a")),), 2, Next(Move.FAILED, 1)),
        ((review(1, WANTED, found("a")), fixed(1, a=True)), 2, Next(Move.REVIEW, 2)),
        ((review(1, WANTED, found("a")), fixed(1, a=True), review(2, WANTED, found("a"))), 2, Next(Move.FAILED, 2)),
        ((review(1, WANTED, found("a")), fixed(1, a=True), review(2, WANTED, found("a"))), 3, Next(Move.FIX, 2)),
        ((review(1, WANTED, found("a")), fixed(1, a=True), review(2, ACCEPTED)), 2, Next(Move.DONE, 2)),
    ],
)
def test_what_is_next_after_each_kind_of_history(
    past: tuple[ReviewRecorded | FixesRecorded, ...], rounds: int, expected: Next
) -> None:
    assert next_move(past, rounds) == expected
    assert hash(expected) == hash(next_move(past, rounds))


def test_a_finding_is_open_until_it_is_answered_and_again_when_it_is_named_again() -> None:
    first, answer = review(1, WANTED, found("a"), found("b"), found("c")), fixed(1, a=True, b=False, c=True)
    assert states(first) == {"a": "open", "b": "open", "c": "open"}
    assert states(first, answer) == {"a": "fixed", "b": "declined", "c": "fixed"}
    again = review(2, WANTED, found("c", message="still"), found("d"))
    assert states(first, answer, again) == {"a": "fixed", "b": "declined", "c": "open", "d": "open"}
    assert [(i.finding.id, i.finding.message, i.reason) for i in open_items((first, answer, again))] == [
        ("c", "still", "c True"),
        ("d", "wrong", ""),
    ]


def test_a_note_is_never_open_and_a_finding_that_becomes_a_note_keeps_what_the_fixer_said() -> None:
    note = found("n", Severity.NOTE)
    assert states(review(1, ACCEPTED, note)) == {"n": "note"}
    past = review(1, WANTED, found("a"), note), fixed(1, a=False), review(2, ACCEPTED, found("a", Severity.NOTE))
    assert states(*past) == {"a": "declined", "n": "note"}
    assert states(review(1, ACCEPTED, note), review(2, WANTED, found("n"))) == {"n": "open"}
    assert states(review(1, ACCEPTED, note), review(2, ACCEPTED, note)) == {"n": "note"}
    assert states(review(1, WANTED, found("a")), review(2, ACCEPTED, found("a", Severity.NOTE))) == {"a": "note"}
    assert len({*worklist(past), *worklist(past)}) == 2


def test_the_output_is_that_of_the_last_fix_that_changed_it() -> None:
    first, second = review(1, WANTED, found("a")), review(2, WANTED, found("a"))
    assert revised((), "work") == "work"
    assert revised((first, fixed(1, a=True)), "work") == "work"
    assert revised((first, fixed(1, output="", a=True)), "work") == ""
    assert revised((first, fixed(1, output="one", a=True), second, fixed(2, a=True)), "work") == "one"


def test_what_remains_is_told_in_bounds() -> None:
    one = review(1, WANTED, found("a", message="m" * 900))
    assert remaining((one,)).startswith("1 finding remains: a (major, a.py:1): mmm")
    assert len(remaining((one,))) == len("1 finding remains: ") + 200
    bare = review(1, WANTED, ReviewFinding("b", "", Severity.BLOCKER, "gone"))
    assert remaining((bare,)) == "1 finding remains: b (blocker): gone"
    many = review(1, WANTED, *(found(f"f{n}", message="m" * 900) for n in range(13)))
    assert remaining((many,)).startswith("13 findings remain: f0 ")
    assert remaining((many,)).endswith("; and 3 more")
    assert len(remaining((many,))) < 2200
    assert not remaining((review(1, WANTED, *(found(f"f{n}") for n in range(10))),)).endswith("more")
    assert remaining((one, fixed(1, a=True))) == "no finding remains"


@given(
    rounds=st.integers(1, 10),
    verdicts=st.lists(st.sampled_from([WANTED, WANTED, WANTED, ACCEPTED, REJECTED]), min_size=10, max_size=10),
    named=st.lists(st.sets(st.sampled_from("abcde"), min_size=1), min_size=10, max_size=10),
    notes=st.lists(st.sets(st.sampled_from("abcde")), min_size=10, max_size=10),
    declined=st.lists(st.sets(st.sampled_from("abcde")), min_size=10, max_size=10),
)
def test_every_review_ends_within_its_rounds_and_each_finding_ends_in_exactly_one_state(
    rounds: int, verdicts: list[Verdict], named: list[set[str]], notes: list[set[str]], declined: list[set[str]]
) -> None:
    past: list[ReviewRecorded | FixesRecorded] = []
    raised: set[str] = set()
    while (move := next_move(past, rounds)).move in (Move.REVIEW, Move.FIX):
        at = move.round - 1
        assert move.round <= rounds
        if move.move is Move.REVIEW:
            wanted = set() if verdicts[at] is ACCEPTED else named[at]
            said = [found(name) for name in sorted(wanted)]
            said += [found(name, Severity.NOTE) for name in sorted(notes[at] - wanted)]
            past.append(review(move.round, verdicts[at], *said))
            raised |= wanted | notes[at]
        else:
            ids = [item.finding.id for item in open_items(past)]
            assert set(ids) == named[at]
            past.append(fixed(move.round, **{name: name not in declined[at] for name in ids}))
    assert sum(isinstance(record, ReviewRecorded) for record in past) == move.round <= rounds
    assert sum(isinstance(record, FixesRecorded) for record in past) == move.round - 1
    assert [item.finding.id for item in worklist(past)] == list(dict.fromkeys(i.finding.id for i in worklist(past)))
    assert {item.finding.id for item in worklist(past)} == raised
    last = past[-1]
    assert isinstance(last, ReviewRecorded)
    assert (move.move is Move.DONE) == (last.verdict is ACCEPTED)
    still = {item.finding.id for item in worklist(past) if item.state is ItemState.OPEN}
    assert still == (set() if move.move is Move.DONE else named[move.round - 1])
