"""What a review lends: to the fixer, for the turn that fixes, and to nobody else."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from actors.errors import MailboxFull
from actors.grants import Access, Grants
from actors.mailbox import Mailbox
from actors.messages import CallFinished
from actors.tools import Approval, tool
from orchestrator.approver import Answer, Approver, Verdict
from orchestrator.journal.records import LoanEnded, LoanMade, TurnEnded
from orchestrator.journal.work import Stage, StageStarted
from orchestrator.models.function import call
from tests.workflows.playing import Piece, in_turn, of
from tests.workflows.reviewing import fix_all, fixes, given, in_rounds, verdict

if TYPE_CHECKING:
    from actors.ports import ModelRequest

AGENTS = """
name: piece
agents:
  w: {role: fixer, instructions: "x", tools: [write]}
  r: {role: reviewer, instructions: "x", children: [k]}
  f: {role: fixer, instructions: "x", tools: [write]}
  k: {role: child, instructions: "x", tools: [write]}
steps:
"""
LEND = "lend: {authorities: [workspace.write], roots: [src]}"
ONE = f'- {{id: one, agent: w, prompt: "1", review: {{by: r, fix_by: f, {LEND}}}}}\n'


class Pen:
    """A tool that needs the authority to write, and what it really wrote."""

    def __init__(self) -> None:
        self.lines: list[str] = []

        @tool(authorities={"workspace.write"}, access=Access.WRITE)
        async def write(line: str) -> str:
            """Write a line."""
            self.lines.append(line)
            return f"wrote {line}"

        self.tool = write


def writing(line: str, answer: Any) -> Any:
    """An agent that writes *line* in each of its turns, then answers."""

    def play(request: ModelRequest) -> Any:
        if not in_turn(request)[1]:
            return call("write", line=line)
        return answer(request) if callable(answer) else answer

    return play


def codes(entries: Any, agent: str) -> list[str]:
    """What became of the writes of an agent's actors, in order."""
    results = [e.record.result for e in entries if isinstance(e.record, CallFinished) and f"/{agent}-" in e.actor]
    return [result.denial.code if result.denial else result.text for result in results if result.name == "write"]


async def play(steps: str = ONE, **plays: Any) -> tuple[Any, Piece, Pen]:
    pen = Pen()
    usual = {"w": "work", "r": in_rounds(verdict("changes_wanted", "a"), verdict("accepted")), "f": fix_all}
    it = Piece(AGENTS + steps, (pen.tool,), **{**usual, "k": "ok", **plays})
    async with asyncio.timeout(5):
        return await it.play(), it, pen


@pytest.mark.requirement("I6")
async def test_the_fixer_writes_in_its_turn_and_the_worker_and_a_later_turn_of_the_fixer_do_not() -> None:
    steps = ONE + '- {id: late, agent: f, needs: [one], prompt: "late"}\n- {id: early, agent: f, prompt: "early"}'

    def fixer(request: ModelRequest) -> Any:
        return "tried" if in_turn(request)[0] in ("late", "early") else fix_all(request)

    result, it, pen = await play(steps, w=writing("w", "work"), f=writing("f", fixer))
    assert result.ok
    entries = await it.entries()
    assert codes(entries, "w") == ["authority_missing"]
    assert codes(entries, "f") == ["authority_missing", "wrote f", "grant_expired"]
    assert pen.lines == ["f"]
    (made,) = await it.records(LoanMade)
    (fix,) = [s for s in await it.records(StageStarted) if s.stage is Stage.FIX]
    assert (made.lender, made.until) == ("piece", fix.turn)
    assert made.grants == Grants(("workspace.write",), Access.READ, ("src",))
    (ended,) = [e for e in entries if isinstance(e.record, LoanEnded)]
    assert (ended.actor, ended.record.loan) == (fix.by, made.loan)
    over = next(e.seq for e in entries if isinstance(e.record, TurnEnded) and e.record.turn == fix.turn)
    assert ended.seq == over + 1


@pytest.mark.requirement("I6")
async def test_what_a_step_lends_is_for_its_own_turn_and_not_for_its_fixer() -> None:
    steps = f'- {{id: one, agent: w, prompt: "1", {LEND}, review: {{by: r, fix_by: f}}}}\n'
    result, it, pen = await play(steps, w=writing("w", "work"), f=writing("f", fix_all))
    assert result.ok
    assert codes(await it.entries(), "f") == ["authority_missing"]
    assert pen.lines == ["w"]


@pytest.mark.requirement("I6")
async def test_neither_a_reviewer_nor_a_child_of_it_has_anything_of_the_loan() -> None:
    def reviewer(request: ModelRequest) -> Any:
        if not in_turn(request)[1]:
            return [call("write", line="r"), call("delegate", child="k", task="write")]
        return verdict("changes_wanted", "a") if given(request)["round"] == 1 else verdict("accepted")

    result, it, pen = await play(r=reviewer, k=writing("k", "tried"))
    assert result.ok
    entries = await it.entries()
    assert set(codes(entries, "r")) == {"unknown_tool", "authority_missing"}
    assert codes(entries, "k") == ["authority_missing", "authority_missing"]
    assert pen.lines == []


@pytest.mark.requirement("I6")
async def test_the_fixer_of_another_item_has_nothing_of_the_loan_while_it_lasts() -> None:
    steps = (
        '- {id: plan, agent: r, prompt: "p", output: {type: array}}\n'
        '- {id: lent, agent: w, for_each: plan, prompt: "{item}", '
        f"review: {{by: r, fix_by: f, max_rounds: 2, {LEND}}}}}\n"
        '- {id: bare, agent: w, for_each: plan, prompt: "{item}", review: {by: r, fix_by: f, max_rounds: 2}}'
    )
    lent, tried = asyncio.Event(), asyncio.Event()

    def reviewer(request: ModelRequest) -> Any:
        if in_turn(request)[0] == "p":
            return '["x"]'
        return verdict("changes_wanted", "a") if given(request)["round"] == 1 else verdict("accepted")

    async def fixer(request: ModelRequest) -> Any:
        step = given(request)["step"]
        if not in_turn(request)[1]:
            if step == "bare[0]":
                await lent.wait()
            return call("write", line=step)
        if step == "lent[0]":
            lent.set()
            await tried.wait()
        else:
            tried.set()
        return fixes("a")

    result, _, pen = await play(steps, r=reviewer, f=fixer)
    assert result.ok
    assert pen.lines == ["lent[0]"]


@pytest.mark.requirement("I6")
async def test_a_correction_of_the_fixers_answer_is_lent_nothing() -> None:
    def fixer(request: ModelRequest) -> Any:
        return fixes("a") if in_turn(request)[0].startswith("Your answer") else "done"

    result, it, pen = await play(f=writing("f", fixer))
    assert result.ok
    assert codes(await it.entries(), "f") == ["wrote f", "grant_expired"]
    assert pen.lines == ["f"]


@pytest.mark.requirement("I6")
async def test_a_fixer_that_fails_gives_its_loan_back_and_each_round_has_a_loan_of_its_own() -> None:
    def broken(_: ModelRequest) -> Any:
        raise RuntimeError("out of order")

    result, it, _ = await play(f=broken)
    assert "the fixes of review round 1 of 3 failed: " in of(result, "one").detail
    assert "out of order" in of(result, "one").detail
    assert len(await it.records(LoanMade)) == len(await it.records(LoanEnded)) == 1
    result, it, pen = await play(f=writing("f", fix_all), r=verdict("changes_wanted", "a"))
    assert pen.lines == ["f", "f"]
    fixing = [s.turn for s in await it.records(StageStarted) if s.stage is Stage.FIX]
    assert [loan.until for loan in await it.records(LoanMade)] == fixing
    assert len(await it.records(LoanEnded)) == len(fixing) == 2


async def test_a_loan_that_no_fixer_may_hold_fails_the_step_before_its_turn_is_on_record() -> None:
    result, it, _ = await play(ONE.replace("workspace.write", "secrets.manage"))
    assert of(result, "one").detail.startswith("the fixes of review round 1 of 3 failed: ")
    assert "secrets.manage are more than piece/f-" in of(result, "one").detail
    assert of(result, "one").output == "work"
    assert [s.stage for s in await it.records(StageStarted)] == [Stage.REVIEW]
    assert await it.records(LoanMade) == []


@pytest.mark.requirement("I6")
async def test_a_fixer_that_waits_for_a_person_leaves_the_step_open_and_has_its_loan_when_it_goes_on() -> None:
    lines: list[str] = []

    @tool(authorities={"workspace.write"}, access=Access.WRITE, approval=Approval.EACH_CALL)
    async def write(line: str) -> str:
        """Write a line."""
        lines.append(line)
        return f"wrote {line}"

    rounds = in_rounds(verdict("changes_wanted", "a"), verdict("accepted"))
    it = Piece(AGENTS + ONE, (write,), w="work", r=rounds, f=writing("f", fix_all), k="ok")
    async with asyncio.timeout(5), it.open(approver=Approver("key")) as run:
        it.handle = run.session.snapshot()
        first = await run.run()
        assert (first.ok, first.outcomes) == (False, ())
        (approval,) = first.waiting
        await run.session.send(Answer(approval, Verdict.APPROVE, "key", "somebody"))
        second = await run.run()
    assert (second.ok, second.waiting) == (True, ())
    assert lines == ["f"]
    assert len(await it.records(LoanMade)) == len(await it.records(LoanEnded)) == 1
    assert [s.stage for s in await it.records(StageStarted)] == [Stage.REVIEW, Stage.FIX, Stage.REVIEW]


@pytest.mark.requirement("I6")
async def test_a_fixer_whose_mailbox_is_full_fails_the_step_and_leaves_no_loan_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check = Mailbox.check

    def full(mailbox: Mailbox, *more: int) -> None:
        if mailbox.owner.startswith("piece/f-"):
            raise MailboxFull(mailbox.owner, 1)
        check(mailbox, *more)

    monkeypatch.setattr(Mailbox, "check", full)
    result, it, _ = await play()
    assert of(result, "one").detail.startswith("the fixes of review round 1 of 3 failed: ")
    assert "piece/f-" in of(result, "one").detail
    assert len(await it.records(LoanMade)) == len(await it.records(LoanEnded)) == 1
