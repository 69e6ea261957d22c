"""Whole sessions over the wire: what subscribers see of another attempt, stops, and what is left afterwards."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from actors import Access
from actors.messages import Note, StopReason
from orchestrator.agent import Agent
from orchestrator.events import Delta
from orchestrator.journal.records import Entry, Noted
from orchestrator.models.function import FunctionModel, call
from orchestrator.models.retry import RETRY_NOTE
from orchestrator.runtime import RuntimeConfig, SessionLimits
from orchestrator.turn import Stop
from tests.core.stage import Ledger
from tests.models import moves
from tests.models.asking import Asking
from tests.models.moves import says
from tests.models.provider import FakeProvider
from tests.supervision.scene import agent, scene, script

if TYPE_CHECKING:
    from orchestrator.events import Event
    from orchestrator.session import Session

WORKER = agent("worker")


def brain(*answers: Any) -> FunctionModel:
    """A brain that gives these answers, one after the other."""
    return FunctionModel({}, default=script(*answers))


async def seen_while(session: Session, text: str) -> list[Event]:
    """What a subscriber sees of one turn."""
    events: list[Event] = []
    stream = session.events()
    await session.run(text)
    await session.close()
    async for event in stream:
        events.append(event)  # noqa: PERF401  # an async list would hide the order of things
    return events


@pytest.mark.requirement("B80")
@pytest.mark.parametrize(
    "move", [says(529), says(503), says(520), moves.cut, moves.reset, moves.fails_in_stream("Overloaded")]
)
async def test_each_further_attempt_is_one_event_no_text_comes_twice_and_tools_run_once(move: Any) -> None:
    ledger = Ledger()
    worker = agent("worker", ledger.tool("put", Access.WRITE))
    script = [move, move, moves.well, move, moves.well]
    with FakeProvider(brain(call("put", n=1), "It is done, and it is done well."), script) as there:
        async with Asking(there.base_url) as it, scene(worker, it.model) as at:
            events = await seen_while(at.session, "Go.")
    notes = [e.record for e in events if isinstance(e, Entry) and isinstance(e.record, Noted)]
    assert [note.kind for note in notes] == [RETRY_NOTE] * 3
    assert {note.turn for note in notes} == {"t0001"}
    assert "".join(e.text for e in events if isinstance(e, Delta)) == "It is done, and it is done well."
    assert ledger.lines == ["put n=1"]
    assert there.refusals == []


async def test_a_fault_that_stays_ends_the_turn_as_failed_with_its_remedy_and_the_actor_lives_on() -> None:
    with FakeProvider(brain("fine"), [says(401, "wrong key")]) as there:
        async with Asking(there.base_url) as it, scene(WORKER, it.model) as at:
            failed = await at.session.run("Go.")
            assert (failed.stop_reason, (await at.session.run("Again.")).output) == (StopReason.FAILED, "fine")
    assert "openai:fake: HTTP 401: wrong key; set OPENAI_API_KEY" in str(failed.diagnostics) + failed.output
    assert there.refusals == []


@pytest.mark.parametrize("move", [moves.mute, moves.silent])
async def test_stopping_a_turn_ends_its_request_and_the_conversation_goes_on(move: Any) -> None:
    with FakeProvider(brain("fine"), [move]) as there:
        async with asyncio.timeout(20), Asking(there.base_url) as it, scene(WORKER, it.model) as at:
            running = asyncio.create_task(at.session.run("Go."))
            assert await asyncio.to_thread(there.came.wait, 5)
            await at.session.send(Stop())
            assert (await running).stop_reason is StopReason.CANCELLED
            assert await asyncio.to_thread(there.gone.wait, 5)
            assert len(there.bodies) == 1
            assert (await at.session.run("Again.")).output == "fine"
    assert there.refusals == []


async def test_closing_a_session_in_the_middle_of_a_reply_leaves_nothing_open() -> None:
    with FakeProvider(script=[moves.silent]) as there:
        async with asyncio.timeout(20), Asking(there.base_url) as it:
            async with scene(WORKER, it.model) as at:
                running = asyncio.create_task(at.session.run("Go."))
                assert await asyncio.to_thread(there.came.wait, 5)
            assert (await running).stop_reason is StopReason.SUSPENDED
            assert await asyncio.to_thread(there.gone.wait, 5)


async def test_two_sessions_share_one_model_at_once() -> None:
    with FakeProvider(brain("fine")) as there:
        async with Asking(there.base_url) as it:
            config = RuntimeConfig(it.model, limits=SessionLimits(model_requests=1))
            async with Agent(WORKER, config) as one, Agent(agent("other"), config) as other:
                results = await asyncio.gather(*(each.run(f"Go {n}.") for n in range(5) for each in (one, other)))
            assert (await it.ask()).text == "fine"
    assert {result.output for result in results} == {"fine"}
    assert len(there.bodies) == 11


async def test_a_note_of_any_model_is_seen_and_one_that_comes_after_the_turn_goes_nowhere() -> None:
    kept: list[Any] = []

    class Telling:
        """A model of somebody's own that has something to tell."""

        async def reply(self, request: Any, delta: Any) -> Any:
            """Tell, and answer."""
            delta(Note("thinking", "half \ud83c of a letter"))
            kept.append(delta)
            return await FunctionModel({}, default=lambda _: "fine").reply(request, delta)

    async with scene(WORKER, Telling()) as at:
        await at.session.run("Go.")
        kept[0](Note("thinking", "too late"))
        notes = await at.records(Noted)
    assert [(note.kind, note.turn) for note in notes] == [("thinking", "t0001")]
    assert notes[0].text.encode()
