"""Children that a step's actor starts by itself: whom their results reach, and that they take nothing from the step."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from actors.messages import TurnOrigin
from orchestrator.journal.records import OutcomeRecorded, TurnAccepted
from orchestrator.models.function import call
from tests.supervision.scene import discharges
from tests.workflows.playing import Piece, in_turn, of

if TYPE_CHECKING:
    from actors.ports import ModelRequest

TEXT = """
name: piece
agents:
  kid: {role: child, instructions: "x"}
  boss: {role: run, instructions: "x", children: [kid]}
  other: {role: run, instructions: "x", children: [kid]}
steps:
  - {id: start, agent: boss, prompt: "start"}
  - {id: wait, agent: other, needs: [start], prompt: "wait"}
"""


class Play:
    """The boss starts a child and answers; the child ends afterwards; the other step ends once the boss has heard."""

    def __init__(self) -> None:
        self.free, self.heard_of_it = asyncio.Event(), asyncio.Event()
        self.heard: list[tuple[str, str]] = []

    async def boss(self, request: ModelRequest) -> Any:
        text, results, _ = in_turn(request)
        self.heard.append((request.actor, text))
        if text == "start":
            return "started" if results else call("delegate", child="kid", task="work", background=True)
        self.heard_of_it.set()
        return "noted"

    async def kid(self, _: ModelRequest) -> str:
        await self.free.wait()
        return "the result"

    async def other(self, request: ModelRequest) -> str:
        self.heard.append((request.actor, in_turn(request)[0]))
        self.free.set()
        await self.heard_of_it.wait()
        return "waited"

    def piece(self) -> Piece:
        return Piece(TEXT, boss=self.boss, kid=self.kid, other=self.other)


@pytest.mark.requirement("B48", "B50", "I10")
async def test_the_result_of_a_child_left_behind_reaches_the_steps_actor_once_and_nobody_else() -> None:
    play = Play()
    piece = play.piece()
    async with asyncio.timeout(5):
        result = await piece.play()
    assert of(result, "start").output == "started"
    assert of(result, "wait").output == "waited"
    notices = [(actor, text) for actor, text in play.heard if "the result" in text]
    assert [actor for actor, _ in notices] == ["piece/boss-0002"]
    entries = await piece.entries()
    (outcome,) = [e for e in entries if isinstance(e.record, OutcomeRecorded) and "/kid-" in e.record.child]
    assert outcome.actor == "piece/boss-0002"
    assert dict(discharges(entries)) == {outcome.record.turn: 1}
    born = [e.record.origin for e in entries if isinstance(e.record, TurnAccepted) and e.record.notices]
    assert born == [TurnOrigin.NOTICE]


@pytest.mark.requirement("B48", "I10")
async def test_a_child_that_outlives_the_run_is_still_there_when_the_run_is_taken_up_again() -> None:
    play = Play()
    play.heard_of_it.set()
    piece = play.piece()
    piece.plays["other"] = lambda _: "did not wait"
    async with asyncio.timeout(5):
        first = await piece.play()
        assert not [
            e for e in await piece.entries() if isinstance(e.record, OutcomeRecorded) and "/kid-" in e.record.child
        ]
        play.heard_of_it.clear()
        play.free.set()
        async with piece.open(piece.handle) as run:
            assert await run.run() == first
            await play.heard_of_it.wait()
        entries = await piece.entries()
    (outcome,) = [e for e in entries if isinstance(e.record, OutcomeRecorded) and "/kid-" in e.record.child]
    assert dict(discharges(entries)) == {outcome.record.turn: 1}
