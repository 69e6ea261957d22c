"""A run under review taken up again after any record: no turn runs twice, no round is repeated or skipped."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from actors.grants import Access
from actors.messages import CallFinished, ModelReply
from actors.tools import tool
from orchestrator.journal.fold import fold
from orchestrator.journal.records import CallIntended, LoanEnded, LoanMade, TurnAccepted, TurnEnded, decode
from orchestrator.journal.work import (
    FixesRecorded,
    ReviewRecorded,
    Stage,
    StageStarted,
    StepFinished,
)
from orchestrator.models.function import call
from orchestrator.workflows.telling import bare
from tests.supervision.scene import cut
from tests.workflows.playing import Piece, in_turn, of
from tests.workflows.reviewing import fixes, given, verdict

if TYPE_CHECKING:
    from actors.ports import ModelRequest
    from orchestrator.journal.memory import MemoryStore
    from orchestrator.journal.records import Entry
    from orchestrator.workflows.engine import WorkflowResult

TEXT = """
name: piece
agents:
  p: {role: child, instructions: "x"}
  w: {role: child, instructions: "x"}
  r: {role: reviewer, instructions: "x"}
  f: {role: fixer, instructions: "x", tools: [write]}
steps:
  - {id: plan, agent: p, prompt: "plan", output: {type: array}, review: {by: r, fix_by: f, max_rounds: 2}}
  - id: each
    agent: w
    for_each: plan
    background: true
    prompt: "{item}"
    output: {type: string}
    review: {by: r, fix_by: f, max_rounds: 2, lend: {authorities: [workspace.write], roots: ["."]}}
  - {id: end, agent: p, needs: [each], prompt: "end {steps.each}"}
"""
AGAIN = "Your answer could not be taken"


def said(request: ModelRequest) -> int:
    """How many answers without calls the actor has given."""
    return sum(isinstance(item, ModelReply) and not item.calls for item in request.history)


class Desk:
    """The workflow with a pen that keeps a ledger: its first item never passes, its second does in round two."""

    def __init__(self) -> None:
        self.ledger: list[str] = []

        @tool(access=Access.WRITE, authorities={"workspace.write"})
        async def write(line: str) -> str:
            """Write a line."""
            self.ledger.append(line)
            return f"wrote {line}"

        plays = {"p": self.plan, "w": self.work, "r": self.review, "f": self.fix}
        self.piece = Piece(TEXT, (write,), **plays)

    def plan(self, request: ModelRequest) -> Any:
        return in_turn(request)[0] if in_turn(request)[0].startswith("end") else '["a"]'

    def work(self, request: ModelRequest) -> Any:
        text = bare(request.history[0].text)  # type: ignore[union-attr]
        return f'"{text}"' if said(request) else text  # the first answer is not as asked

    def review(self, request: ModelRequest) -> Any:
        data = given(request)
        if data["step"] == "plan":
            return verdict("accepted") if data["round"] == 2 else verdict("changes_wanted", "more")
        return verdict("accepted") if data["answer"] == '"b"' and data["round"] == 2 else verdict("changes_wanted", "x")

    def fix(self, request: ModelRequest) -> Any:
        text, results, _ = in_turn(request)
        if text.startswith(AGAIN):
            return fixes("x")
        data = given(request)
        if data["step"] == "plan":
            return fixes("more", output=["a", "b"])
        if not results:
            return call("write", line=f"{data['step']} {data['round']}")
        return "done"  # not as asked


async def taken_up(store: MemoryStore, handle: Any) -> tuple[Desk, WorkflowResult]:
    """The run of *handle* resumed by another process, so to say: nothing is shared but the store."""
    desk = Desk()
    desk.piece.store, desk.piece.handle = store, handle
    async with desk.piece.open(handle) as run:
        return desk, await run.run()


def plot(entries: tuple[Entry, ...]) -> dict[str, list[str]]:
    """For each key what was said of it in order, and which turns it had."""
    found: dict[str, list[str]] = {}
    for record in (e.record for e in entries):
        if isinstance(record, ReviewRecorded):
            found.setdefault(record.key, []).append(f"{record.verdict.value} {record.round}/{record.of}")
        elif isinstance(record, FixesRecorded):
            found.setdefault(record.key, []).append(f"fixed {record.round}")
        elif isinstance(record, StepFinished):
            found.setdefault(record.key, []).append(f"over {record.ok} {record.output} {record.detail}")
    return found


def turns(entries: tuple[Entry, ...]) -> Counter[tuple[str, str, int, bool]]:
    """How often each turn of each key was really accepted; a start that was taken back has none."""
    accepted = Counter(e.record.turn for e in entries if isinstance(e.record, TurnAccepted))
    state = fold(entries)
    found = Counter({(s.key, "work", 0, False): accepted.pop(s.turn) for s in state.steps.values()})
    for stages in state.stages.values():
        found.update({(s.key, s.stage.value, s.round, s.again): accepted.pop(s.turn) for s in stages.values()})
    assert not accepted
    return found


def wrong(entries: tuple[Entry, ...], calm: tuple[Entry, ...], before: tuple[Entry, ...], desk: Desk) -> list[str]:
    """What must not be so after a resume."""
    found = []
    if plot(entries) != plot(calm):
        found.append(f"said {plot(entries)}")
    if turns(entries) != turns(calm):
        found.append(f"turns {turns(entries)}")
    ends = Counter(e.record.turn for e in entries if isinstance(e.record, TurnEnded))
    found += [f"{turn} ended {n} times" for turn, n in ends.items() if n != 1]
    made = {e.record.loan: e.record.until for e in entries if isinstance(e.record, LoanMade)}
    ended = [e.record.loan for e in entries if isinstance(e.record, LoanEnded)]
    found += [] if sorted(ended) == sorted(made) else [f"loans {made}, ended {ended}"]
    accepted = {e.record.turn for e in entries if isinstance(e.record, TurnAccepted)}
    found += [f"a loan until {turn}, which never was" for turn in made.values() if turn not in accepted]
    intended = [str(e.record.arguments) for e in before if isinstance(e.record, CallIntended)]
    happened = Counter(intended) + Counter(f'{{"line":"{line}"}}' for line in desk.ledger)
    found += [f"{line} happened {n} times" for line, n in happened.items() if n > 1]
    denied = [e.record.result for e in entries if isinstance(e.record, CallFinished) and e.record.result.denial]
    found += [f"denied: {result.text}" for result in denied]
    state = fold(entries)
    found += [f"left: {state.step_ends}"] if state.step_ends else []
    alive = [actor.path for actor in state.actors.values() if not actor.exited and actor.path.count("/") > 1]
    return found + ([f"left alive: {', '.join(alive)}"] if alive else [])


@pytest.mark.requirement("I6", "I9", "I14")
async def test_a_run_under_review_cut_off_after_any_record_comes_to_the_same_end_with_nothing_done_twice() -> None:
    async with asyncio.timeout(60):
        desk = Desk()
        first = await desk.piece.play()
        handle, store = desk.piece.handle, desk.piece.store
        calm = tuple(decode(data) for data in store.shelves[handle.session].records)
        assert wrong(calm, calm, (), desk) == []
        assert len(calm) > 100
        found = {}
        for length in range(1, len(calm) + 1):
            left = cut(store, handle.session, length)
            try:
                async with asyncio.timeout(2):
                    again, result = await taken_up(left, handle)
                faults = wrong(await again.piece.entries(), calm, calm[:length], again)
                faults += [] if result == first else [repr(result)]
            except Exception as error:  # noqa: BLE001  # the table shows every length that fails, and how
                faults = [repr(error)]
            if faults:
                found[length, type(calm[length - 1].record).__name__] = faults
        assert found == {}


async def test_the_calm_run_has_every_kind_of_turn() -> None:
    async with asyncio.timeout(5):
        desk = Desk()
        result = await desk.piece.play()
        seen = turns(await desk.piece.entries())
    assert result.ok
    assert result.output("plan") == ["a", "b"]
    assert result.output("each") == [None, "b"]
    assert of(result, "end").output == 'end [null, "b"]'
    assert desk.ledger in (["each[0] 1", "each[1] 1"], ["each[1] 1", "each[0] 1"])
    item = [("work", 0, False), ("work", 0, True), ("review", 1, False), ("fix", 1, False), ("fix", 1, True)]
    item.append(("review", 2, False))
    expected = Counter((key, *turn) for key in ("each[0]", "each[1]") for turn in item)
    expected += Counter(("plan", *turn) for turn in item if not turn[2])
    expected["end", "work", 0, False] = 1
    assert seen == expected


@pytest.mark.requirement("I6")
@pytest.mark.parametrize("kind", [LoanMade, StageStarted])
async def test_a_fixers_loan_whose_turn_was_never_accepted_ends_and_is_made_once_for_the_turn_that_is(
    kind: type[Any],
) -> None:
    async with asyncio.timeout(10):
        desk = Desk()
        await desk.piece.play()
        records = await desk.piece.entries()
        loan = next(n for n, e in enumerate(records, start=1) if isinstance(e.record, LoanMade))
        at = next(n for n in range(loan, len(records) + 1) if isinstance(records[n - 1].record, kind))
        if kind is StageStarted:
            assert records[at - 1].record.stage is Stage.FIX
        left = cut(desk.piece.store, desk.piece.handle.session, at)
        again = Desk()
        again.piece.store, again.piece.handle = left, desk.piece.handle
        async with again.piece.open(desk.piece.handle) as run:
            assert len(run.state.loans) == 1
            await run.run()
            assert run.state.loans == {}
        entries = await again.piece.entries()
    until = records[loan - 1].record.until
    made = [e for e in entries if isinstance(e.record, LoanMade) and e.record.until == until]
    assert [entry.actor for entry in made] == [records[loan - 1].actor, made[-1].actor]
    ended = next(e.seq for e in entries if isinstance(e.record, LoanEnded))
    assert made[0].seq < ended < made[1].seq
    assert sorted(again.ledger) == ["each[0] 1", "each[1] 1"]


async def test_a_run_that_is_cancelled_while_a_fixer_works_goes_on_with_its_turn_and_its_loan() -> None:
    async with asyncio.timeout(5):
        desk, reached = Desk(), asyncio.Event()
        fix = desk.piece.plays["f"]

        async def hang(request: ModelRequest) -> Any:
            if in_turn(request)[1]:
                reached.set()
                await asyncio.Event().wait()
            return fix(request)

        desk.piece.plays["f"] = hang
        async with desk.piece.open() as run:
            handle = run.session.snapshot()
            task = asyncio.create_task(run.run())
            await reached.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert run.state.loans
        again, result = await taken_up(desk.piece.store, handle)
        entries = await again.piece.entries()
    assert result.output("each") == [None, "b"]
    assert Counter(desk.ledger + again.ledger) == {"each[0] 1": 1, "each[1] 1": 1}
    made = [e.record.until for e in entries if isinstance(e.record, LoanMade)]
    assert len(made) == len(set(made)) == 2
    assert fold(entries).loans == {}
