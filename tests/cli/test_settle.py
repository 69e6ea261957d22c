"""A person says what became of an effect that nobody saw the end of."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from actors import Access
from actors.messages import CallFinished, Outcome, ToolResult
from orchestrator.clock import LoopClock
from orchestrator.events import Events
from orchestrator.journal.fold import fold
from orchestrator.journal.journal import Journal
from orchestrator.journal.records import CallIntended, decode
from orchestrator.journal.store import open_store

if TYPE_CHECKING:
    from tests.cli.desk import Desk

KEY = 'pay:{"to":"A"}'


def with_an_unresolved_effect(desk: Desk) -> str:
    """Run the workflow, and put an effect on its record whose end nobody saw; return the session's id."""
    desk.run()
    (row,) = msgspec.json.decode(desk.say("sessions", "list", "--json").out)

    async def go() -> None:
        store = open_store(f"sqlite:///{desk.home / 'sessions.db'}")
        log, records = await store.resume(row["id"])
        state = fold(decode(data) for data in records)
        actor = next(path for path in state.actors if "/" in path)
        journal = Journal(store, log, state, LoopClock(), Events(1))
        journal.append(actor, CallIntended("t0001", "c1", "pay", "1", Access.EXTERNAL, KEY, '{"to":"A"}'))
        journal.append(actor, CallFinished("t0001", ToolResult("c1", "pay", "?", Outcome.UNKNOWN)))
        await journal.sync()
        await log.close("closed")
        await store.close()

    asyncio.run(go())
    return str(row["id"])


def unresolved(desk: Desk, session: str) -> list[str]:
    return list(msgspec.json.decode(desk.say("sessions", "show", session, "--json").out)["unresolved"])


def test_an_effect_is_settled_once_and_the_session_stays_closed(desk: Desk) -> None:
    session = with_an_unresolved_effect(desk)
    assert unresolved(desk, session) == [KEY]
    assert desk.say("sessions", "show", session).out.endswith(
        f"  unresolved effect {KEY}\n"
        "look whether it happened, then: orchestrator sessions settle ID EFFECT --happened or --no-happened\n"
    )
    said = desk.say("sessions", "settle", session, KEY, "--no-happened")
    assert (said.code, said.out) == (0, f"{KEY}: did not happen\n")
    assert unresolved(desk, session) == []
    (row,) = msgspec.json.decode(desk.say("sessions", "list", "--json").out)
    assert row["status"] == "closed"
    again = desk.say("sessions", "settle", session, KEY, "--happened")
    assert (again.code, "is no unresolved effect" in again.err) == (2, True)


def test_an_effect_that_there_is_not_is_told_with_those_there_are(desk: Desk) -> None:
    session = with_an_unresolved_effect(desk)
    said = desk.say("sessions", "settle", session, "pay:{}", "--happened")
    assert said.code == 2
    assert KEY in said.err
    assert unresolved(desk, session) == [KEY]


def test_while_a_session_is_open_nobody_settles_or_resumes_it_and_its_history_stays(desk: Desk) -> None:
    session = with_an_unresolved_effect(desk)
    store = open_store(f"sqlite:///{desk.home / 'sessions.db'}")
    with asyncio.Runner() as holder:
        log, before = holder.run(store.resume(session))
        for command in (["settle", session, KEY, "--happened"], ["resume", session]):
            said = desk.say("sessions", *command)
            assert (said.code, session in said.err, "Traceback" in said.err) == (2, True, False), said.err
        holder.run(log.close("closed"))
        log, after = holder.run(store.resume(session))
        assert list(after) == list(before)
        holder.run(log.close("closed"))
        holder.run(store.close())
    assert unresolved(desk, session) == [KEY]
