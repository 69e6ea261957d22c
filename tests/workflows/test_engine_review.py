"""A step under review is done once its reviewer accepts it: what each is told, what is on record, how it ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from actors.messages import ModelReply
from orchestrator.journal.records import TurnAccepted
from orchestrator.journal.work import (
    FixAnswer,
    FixesRecorded,
    ReviewFinding,
    ReviewRecorded,
    Severity,
    Stage,
    StageStarted,
    StepFinished,
    Verdict,
)
from orchestrator.workflows.review import worklist
from tests.workflows.playing import Piece, in_turn, of
from tests.workflows.reviewing import finding, fix_all, fixes, given, verdict

if TYPE_CHECKING:
    from actors.ports import ModelRequest
    from orchestrator.journal.records import Entry

AGENTS = """
name: piece
agents:
  w: {role: child, instructions: "x"}
  r: {role: reviewer, instructions: "x"}
  f: {role: fixer, instructions: "x"}
steps:
"""
REVIEW = "review: {by: r, fix_by: f}"
ONE = f'- {{id: one, agent: w, prompt: "do it", {REVIEW}}}\n'


def stages(entries: tuple[Entry, ...], key: str = "one") -> list[str]:
    """Each stage of a step that began, in order."""
    records = [e.record for e in entries if isinstance(e.record, StageStarted) and e.record.key == key]
    return [f"{s.stage.value} {s.round}/{s.of}{' again' if s.again else ''}" for s in records]


async def play(reviewer: Any, fixer: Any = fix_all, steps: str = ONE, work: Any = "work") -> tuple[Any, Piece]:
    it = Piece(AGENTS + steps, w=work, r=reviewer, f=fixer)
    async with asyncio.timeout(5):
        return await it.play(), it


async def test_what_is_accepted_at_once_is_done_and_nobody_fixes() -> None:
    result, it = await play(verdict("accepted", finding("n", "note")))
    assert of(result, "one") == type(of(result, "one"))("one", ok=True, output="work")
    assert stages(await it.entries()) == ["review 1/3"]
    (record,) = await it.records(ReviewRecorded)
    note = ReviewFinding("n", "n.py:1", Severity.NOTE, "n is wrong")
    assert record == ReviewRecorded("one", 1, 3, record.by, Verdict.ACCEPTED, (note,))
    assert record.by.startswith("piece/r-")
    assert await it.records(FixesRecorded) == []


async def test_findings_are_fixed_and_reviewed_again_until_they_are_accepted() -> None:
    seen: list[dict[str, Any]] = []

    def reviewer(request: ModelRequest) -> str:
        seen.append(given(request))
        first = verdict("changes_wanted", "a", "b", finding("n", "note"))
        return [first, verdict("changes_wanted", "b", "c"), verdict("accepted")][len(seen) - 1]

    lists: list[Any] = []

    def fixer(request: ModelRequest) -> str:
        lists.append(given(request)["worklist"])
        return fixes("a", declined=("b",)) if len(lists) == 1 else fixes("b", declined=("c",))

    result, it = await play(reviewer, fixer)
    assert of(result, "one").ok
    entries = await it.entries()
    assert stages(entries) == ["review 1/3", "fix 1/3", "review 2/3", "fix 2/3", "review 3/3"]
    assert [[(item["id"], item["state"]) for item in items] for items in lists] == [
        [("a", "open"), ("b", "open")],
        [("b", "open"), ("c", "open")],
    ]
    assert seen[0] == {"step": "one", "round": 1, "of": 3, "asked": "do it", "answer": "work", "findings": []}
    assert [(f["id"], f["state"], f.get("reason")) for f in seen[1]["findings"]] == [
        ("a", "fixed", "done"),
        ("b", "declined", "no need"),
        ("n", "note", None),
    ]
    said = [e.record for e in entries if isinstance(e.record, ReviewRecorded | FixesRecorded)]
    assert [(type(record).__name__, record.round) for record in said] == [
        ("ReviewRecorded", 1),
        ("FixesRecorded", 1),
        ("ReviewRecorded", 2),
        ("FixesRecorded", 2),
        ("ReviewRecorded", 3),
    ]
    assert said[1].answers == (FixAnswer("a", fixed=True, reason="done"), FixAnswer("b", fixed=False, reason="no need"))
    assert {i.finding.id: i.state.value for i in worklist(said)} == {
        "a": "fixed",
        "b": "fixed",
        "c": "declined",
        "n": "note",
    }


@pytest.mark.parametrize("rounds", [1, 2, 5])
async def test_after_the_last_round_the_step_fails_with_what_remains_and_its_work_is_kept(rounds: int) -> None:
    steps = ONE.replace("fix_by: f", f"fix_by: f, max_rounds: {rounds}") + (
        '- {id: next, agent: w, needs: [one], prompt: "next"}'
    )
    result, it = await play(verdict("changes_wanted", "a"), steps=steps)
    outcome = of(result, "one")
    assert (outcome.ok, outcome.output) == (False, "work")
    assert outcome.detail == (
        f"review round {rounds} of {rounds} wants changes still; 1 finding remains: a (minor, a.py:1): a is wrong"
    )
    assert of(result, "next").detail == "a step that it needs has failed: one"
    assert len(await it.records(ReviewRecorded)) == rounds
    assert len(await it.records(FixesRecorded)) == rounds - 1


async def test_what_is_rejected_fails_at_once_and_nobody_fixes() -> None:
    result, it = await play(verdict("rejected", finding("a", "blocker")))
    assert of(result, "one").detail == (
        "review round 1 of 3 rejected it; 1 finding remains: a (blocker, a.py:1): a is wrong"
    )
    assert of(result, "one").output == "work"
    assert stages(await it.entries()) == ["review 1/3"]


async def test_a_fix_that_changes_the_answer_itself_makes_the_steps_output() -> None:
    steps = (
        f'- {{id: one, agent: w, prompt: "do it", output: {{type: array}}, {REVIEW}}}\n'
        '- {id: next, agent: w, needs: [one], prompt: "{steps.one}"}'
    )
    answers: list[str] = []

    def reviewer(request: ModelRequest) -> str:
        answers.append(given(request)["answer"])
        return verdict("accepted") if len(answers) == 2 else verdict("changes_wanted", "a")

    result, _ = await play(
        reviewer,
        fixes("a", output=[2]),
        steps,
        lambda request: "[1]" if in_turn(request)[0] == "do it" else in_turn(request)[0],
    )
    assert answers == ["[1]", "[2]"]
    assert result.output("one") == [2]
    assert of(result, "next").output == "[2]"


async def test_reviewer_and_fixer_are_corrected_once_each_round_and_then_the_step_fails() -> None:
    def again(*answers: str) -> Any:
        return lambda request: answers[sum(isinstance(item, ModelReply) for item in request.history)]

    result, it = await play(
        again("fine", verdict("changes_wanted", "a"), verdict("accepted", "a"), verdict("accepted")),
        again(fixes(), fixes("a")),
    )
    assert of(result, "one").ok
    assert stages(await it.entries()) == [
        "review 1/3",
        "review 1/3 again",
        "fix 1/3",
        "fix 1/3 again",
        "review 2/3",
        "review 2/3 again",
    ]
    result, it = await play("fine")
    assert of(result, "one").detail.startswith(
        "review round 1 of 3 came to no verdict: the answer is not the JSON that was asked for"
    )
    assert (of(result, "one").output, stages(await it.entries())) == ("work", ["review 1/3", "review 1/3 again"])
    result, it = await play(verdict("changes_wanted", "a"), fixes("b"))
    assert of(result, "one").detail == (
        "the fixes of review round 1 of 3 failed: items: 'a' has no answer; items: 'b' is not in the worklist; "
        "1 finding remains: a (minor, a.py:1): a is wrong"
    )


async def test_work_that_fails_is_not_reviewed() -> None:
    steps = f'- {{id: one, agent: w, prompt: "do it", output: {{type: array}}, {REVIEW}}}\n'
    result, it = await play("never asked", steps=steps)
    assert not of(result, "one").ok
    assert stages(await it.entries()) == ["work 0/0 again"]


async def test_each_item_has_a_review_a_reviewer_and_a_fixer_of_its_own() -> None:
    steps = (
        '- {id: plan, agent: w, prompt: "p", output: {type: array}}\n'
        '- {id: each, agent: w, for_each: plan, background: true, max_concurrent: 2, prompt: "{item}", '
        'review: {by: r, fix_by: f, max_rounds: 2, prompt: "Look at {item}."}}'
    )
    told: list[str] = []

    def reviewer(request: ModelRequest) -> str:
        told.append(in_turn(request)[0])
        data = given(request)
        wanted = {"a": 0, "b": 1, "c": 2}[data["answer"]]
        return verdict("accepted") if data["round"] > wanted else verdict("changes_wanted", data["answer"])

    def work(request: ModelRequest) -> str:
        text = in_turn(request)[0]
        return '["a","b","c"]' if text == "p" else text

    result, it = await play(reviewer, fix_all, steps, work)
    assert result.ok
    assert of(result, "each").output == '["a","b",null]'
    assert of(result, "each").detail == "1 of 3 items failed: each[2]"
    entries = await it.entries()
    assert stages(entries, "each[0]") == ["review 1/2"]
    assert stages(entries, "each[1]") == stages(entries, "each[2]") == ["review 1/2", "fix 1/2", "review 2/2"]
    by = {(s.key, s.stage): s.by for s in await it.records(StageStarted)}
    assert len(set(by.values())) == len(by) == 5
    assert all(path.startswith(f"piece/{'r' if stage is Stage.REVIEW else 'f'}-") for (_, stage), path in by.items())
    assert sorted(text.split("\n")[1] for text in told) == sorted(
        ["Look at a.", "Look at b.", "Look at b.", "Look at c.", "Look at c."]
    )
    async with it.open(it.handle) as run:
        assert [a.path for a in run.state.actors.values() if not a.exited and a.path.count("/") > 1] == []


async def test_a_place_in_the_reviews_prompt_whose_value_is_not_there_fails_the_step_after_its_work() -> None:
    steps = (
        '- {id: zero, agent: w, prompt: "0", output: {type: object, properties: {k: {type: string}}}}\n'
        '- {id: one, agent: w, needs: [zero], prompt: "1", '
        'review: {by: r, fix_by: f, prompt: "{steps.zero.k}"}}'
    )
    result, it = await play(verdict("accepted"), steps=steps, work="{}")
    assert of(result, "one").detail == "{steps.zero.k} cannot be filled in: the value has no 'k'"
    assert of(result, "one").output == "{}"
    assert await it.records(ReviewRecorded) == []


async def test_two_steps_under_review_by_the_same_agents_take_turns_and_both_come_to_their_end() -> None:
    steps = ONE + ONE.replace("one", "two") + f'- {{id: three, agent: f, prompt: "three", {REVIEW}}}'

    def reviewer(request: ModelRequest) -> str:
        data = given(request)
        return verdict("accepted") if data["round"] == 2 else verdict("changes_wanted", data["step"])

    def fixer(request: ModelRequest) -> str:
        return "three" if in_turn(request)[0] == "three" else fix_all(request)

    result, it = await play(reviewer, fixer, steps)
    assert result.ok
    assert len(await it.records(StepFinished)) == 3
    turns = [turn.turn for turn in await it.records(TurnAccepted)]
    assert len(turns) == len(set(turns)) == 12
