"""What a step's actor may do: the principal's part of its role's ceiling, and what it is lent until its turn ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from actors.grants import Access, Grants
from actors.tools import tool
from orchestrator.journal.records import ActorSpawned, LoanEnded, LoanMade
from orchestrator.journal.work import StepFinished, StepStarted
from orchestrator.models.function import call
from orchestrator.runtime import Principal
from tests.workflows.playing import Piece, in_turn, of

if TYPE_CHECKING:
    from actors.ports import ModelRequest

WRITING = {"authorities": {"workspace.write"}, "access": Access.WRITE}
FIXER = """
name: piece
agents:
  f: {role: fixer, instructions: "x", tools: [write]}
  r: {role: reviewer, instructions: "x"}
  k: {role: child, instructions: "x", tools: [write]}
steps:
"""
LEND = "lend: {authorities: [workspace.write], roots: [src]}"


class Pen:
    """A tool that needs the authority to write, and what it really wrote."""

    def __init__(self) -> None:
        self.lines: list[str] = []

        @tool(**WRITING)
        async def write(line: str) -> str:
            """Write a line."""
            self.lines.append(line)
            return f"wrote {line}"

        self.tool = write


def write_what_is_asked(request: ModelRequest) -> Any:
    """Try to write the prompt, and answer with what came of it."""
    text, results, _ = in_turn(request)
    if not results:
        return call("write", line=text)
    return results[0].denial.code if results[0].denial else results[0].text


def piece(steps: str, pen: Pen, **plays: Any) -> Piece:
    return Piece(FIXER + steps, (pen.tool,), **{"f": write_what_is_asked, "k": write_what_is_asked, "r": "ok", **plays})


@pytest.mark.requirement("I6")
async def test_a_loan_lasts_for_its_steps_turn_and_a_second_turn_of_the_actor_finds_it_expired() -> None:
    pen = Pen()
    steps = f'- {{id: one, agent: f, prompt: "1", {LEND}}}\n- {{id: two, agent: f, needs: [one], prompt: "2"}}'
    it = piece(steps, pen)
    async with asyncio.timeout(5):
        result = await it.play()
    assert of(result, "one").output == "wrote 1"
    assert of(result, "two").output == "grant_expired"
    assert pen.lines == ["1"]
    made, ended = await it.records(LoanMade), await it.records(LoanEnded)
    assert [(loan.lender, loan.grants) for loan in made] == [
        ("piece", Grants(("workspace.write",), Access.READ, ("src",)))
    ]
    assert [loan.loan for loan in ended] == [made[0].loan]


async def test_a_step_that_fails_gives_its_loan_back_all_the_same() -> None:
    pen = Pen()

    def crash(request: ModelRequest) -> Any:
        if in_turn(request)[0] == "1":
            raise RuntimeError("out of order")
        return write_what_is_asked(request)

    steps = (
        f'- {{id: one, agent: f, prompt: "1", background: true, {LEND}}}\n'
        f'- {{id: shape, agent: f, prompt: "s", background: true, output: {{type: integer}}, {LEND}}}\n'
        '- {id: two, agent: f, prompt: "2"}'
    )
    it = piece(steps, pen, f=crash)
    async with asyncio.timeout(5):
        result = await it.play()
    assert not of(result, "one").ok
    assert not of(result, "shape").ok
    assert of(result, "two").output == "grant_expired"
    assert pen.lines == ["s"]
    assert len(await it.records(LoanMade)) == len(await it.records(LoanEnded)) == 2


@pytest.mark.requirement("I6")
async def test_a_turn_of_the_same_actor_that_runs_before_the_lent_one_has_nothing_of_the_loan() -> None:
    pen = Pen()
    steps = f'- {{id: early, agent: f, prompt: "early"}}\n- {{id: lent, agent: f, prompt: "lent", {LEND}}}'
    async with asyncio.timeout(5):
        result = await piece(steps, pen).play()
    assert of(result, "early").output == "authority_missing"
    assert of(result, "lent").output == "wrote lent"
    assert pen.lines == ["lent"]


@pytest.mark.parametrize(
    "agent, lend, grants, said",
    [
        ("r", "authorities: [workspace.write]", Grants(), "workspace.write are more than piece holds"),
        ("r", "authorities: [workspace.write]", None, "workspace.write are more than piece/r-0002 may hold"),
        ("f", "authorities: [secrets.manage]", None, "secrets.manage are more than piece/f-0002 may hold"),
        ("f", "authorities: [billing.pay]", None, "billing.pay are more than piece holds"),
        (
            "f",
            "authorities: [workspace.write], roots: [src]",
            Grants(("workspace.*",), Access.WRITE, ("docs",)),
            "the roots src are more than piece holds",
        ),
    ],
)
async def test_a_loan_wider_than_the_lender_or_the_role_fails_the_step_with_nothing_half_done(
    agent: str, lend: str, grants: Grants | None, said: str
) -> None:
    pen = Pen()
    steps = (
        f'- {{id: lent, agent: {agent}, prompt: "1", lend: {{{lend}}}}}\n'
        '- {id: after, agent: r, needs: [lent], prompt: "2"}\n'
        '- {id: other, agent: r, prompt: "3"}'
    )
    it = piece(steps, pen)
    config = {} if grants is None else {"principal": Principal(grants=grants)}
    async with asyncio.timeout(5):
        result = await it.play(**config)
    assert said in of(result, "lent").detail
    assert of(result, "after").detail == "a step that it needs has failed: lent"
    assert of(result, "other").ok
    assert await it.records(LoanMade) == []
    assert [record.key for record in await it.records(StepStarted)] == ["other"]
    assert len([record for record in await it.records(StepFinished) if record.key == "lent"]) == 1
    assert pen.lines == []


@pytest.mark.requirement("I6")
async def test_a_steps_actor_holds_what_its_principal_has_and_its_role_allows_and_its_items_no_more() -> None:
    pen = Pen()
    steps = (
        '- {id: plan, agent: r, prompt: "p", output: {type: array}}\n'
        '- {id: each, agent: r, for_each: plan, prompt: "{item}"}\n'
        '- {id: kid, agent: k, prompt: "kid"}'
    )
    it = piece(steps, pen, r=lambda request: "[1]" if in_turn(request)[0] == "p" else "ok")
    principal = Principal(grants=Grants(("workspace.read", "workspace.write"), Access.WRITE, ("docs",)))
    async with asyncio.timeout(5):
        result = await it.play(principal=principal)
    held = {e.actor: e.record.grants for e in await it.entries() if isinstance(e.record, ActorSpawned)}
    reading = Grants(("workspace.read",), Access.READ)
    assert held["piece/r-0002"] == reading
    items = [actor for actor in held if actor.startswith("piece/r-0002/")]
    assert [held[actor] for actor in items] == [reading]
    kid = next(actor for actor in held if actor.startswith("piece/k-"))
    assert held[kid] == principal.grants
    assert of(result, "kid").output == "wrote kid"


async def test_a_lent_item_writes_and_its_siblings_and_its_owner_do_not() -> None:
    pen = Pen()
    steps = (
        '- {id: plan, agent: r, prompt: "p", output: {type: array}}\n'
        f'- {{id: each, agent: f, for_each: plan, prompt: "{{item}}", {LEND}}}\n'
        '- {id: owner, agent: f, needs: [each], prompt: "owner"}\n'
        '- {id: bare, agent: f, for_each: plan, needs: [each], prompt: "bare {item}"}'
    )
    it = piece(steps, pen, r='["a","b"]')
    async with asyncio.timeout(5):
        result = await it.play()
    assert sorted(pen.lines) == ["a", "b"]
    assert of(result, "owner").output == "authority_missing"
    assert result.output("bare") == ["authority_missing", "authority_missing"]
    assert len(await it.records(LoanMade)) == len(await it.records(LoanEnded)) == 2
