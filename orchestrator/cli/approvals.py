"""``orchestrator approvals``: list, show, approve, reject. Answering needs the approver's key, which is asked for."""

from __future__ import annotations

import asyncio
import getpass
import sys
import time
from typing import TYPE_CHECKING, Any

import msgspec
from cyclopts import App

from orchestrator.approvals import Approvals
from orchestrator.approver import Answer, Verdict
from orchestrator.cli.fault import InputFault
from orchestrator.cli.line import exact
from orchestrator.cli.place import existing_store
from orchestrator.clock import Deadlines, LoopClock
from orchestrator.consents import Consents
from orchestrator.events import Events
from orchestrator.journal.fold import apply
from orchestrator.journal.journal import Journal
from orchestrator.journal.records import decode
from orchestrator.journal.state import SessionState
from orchestrator.journal.store import open_store
from orchestrator.registry import Registry

if TYPE_CHECKING:
    from orchestrator.journal.store import Store

__all__ = ["app"]

app = App(name="approvals", help="Look at what agents ask, and answer.")


class Nobody:
    """The host of a session that is not running: its parked turn goes on when the session is resumed."""

    def woken(self, path: str) -> None:
        """Nothing is to be woken."""

    def paused(self, path: str) -> Any:
        """Nothing is to be held."""
        raise NotImplementedError(path)


async def _state(store: Store, session: str) -> SessionState:
    state = SessionState()
    for data in await store.read(session):
        apply(state, decode(data), loops=False)
    return state


def _shown(session: str, state: SessionState) -> list[dict[str, Any]]:
    """Return every question of a session, as plain data."""
    now = time.time_ns() // 1_000_000
    shown = []
    for name, approval in state.approvals.items():
        asked, answered = approval.asked, approval.answered
        if answered is not None:
            condition = "approved" if answered.approved else "rejected"
        elif approval.lapsed:
            condition = "expired"
        elif approval.used or state.actors[approval.path].accepted(asked.turn) is None:
            condition = "closed"
        else:
            condition = "expired" if now >= asked.expires_ms else "pending"
        shown.append(
            {
                "approval": name,
                "session": session,
                "status": condition,
                "actor": approval.path,
                "tool": asked.tool,
                "version": asked.version,
                "arguments": asked.arguments,
                "target": asked.target,
                "expires_ms": asked.expires_ms,
                "edited": answered.arguments if answered is not None and answered.edited else "",
                "by": "" if answered is None else answered.by,
                "reason": "" if answered is None else answered.reason,
            }
        )
    return shown


@app.command(name="list")
def list_approvals(*, store: str | None = None, every: bool = False, json: bool = False) -> int:
    """List the questions that wait for an answer, in all sessions of a store.

    Parameters
    ----------
    store:
        The store's URL; default: the file in the state folder.
    every:
        Those that are answered, expired or closed as well.
    json:
        Print one JSON array.

    """

    async def go() -> list[dict[str, Any]]:
        opened = open_store(existing_store(store))
        try:
            rows = await opened.sessions()
            return [item for row in rows for item in _shown(row.id, await _state(opened, row.id))]
        finally:
            await opened.close()

    found = [item for item in asyncio.run(go()) if every or item["status"] == "pending"]
    if json:
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
        return 0
    for item in found:
        place = f"{item['session']} {item['approval']}  {item['status']}"
        print(exact(f"{place}  {item['actor']}: {item['tool']} {item['arguments']}"))
    return 0


@app.command
def show(session: str, approval: str, *, store: str | None = None) -> int:
    """Show one question exactly as it would run, as JSON.

    Parameters
    ----------
    session:
        The session's id.
    approval:
        The question's id.
    store:
        The store's URL; default: the file in the state folder.

    """

    async def go() -> list[dict[str, Any]]:
        opened = open_store(existing_store(store))
        try:
            return _shown(session, await _state(opened, session))
        finally:
            await opened.close()

    for item in asyncio.run(go()):
        if item["approval"] == approval:
            lines = msgspec.json.format(msgspec.json.encode(item), indent=2).decode().split("\n")
            print("\n".join(map(exact, lines)))
            return 0
    raise InputFault(
        approval, f"there is no such approval in session {session}", "see 'orchestrator approvals list --every'"
    )


@app.command
def approve(session: str, approval: str, *, store: str | None = None, by: str = "approver", reason: str = "") -> int:
    """Say yes to one question. The key is asked for, or read as one line from standard input.

    Parameters
    ----------
    session:
        The session's id.
    approval:
        The question's id.
    store:
        The store's URL; default: the file in the state folder.
    by:
        Who answers, for the record.
    reason:
        Why, for the record.

    """
    return _answer(session, Answer(approval, Verdict.APPROVE, _key(), by, reason), store)


@app.command
def reject(session: str, approval: str, *, store: str | None = None, by: str = "approver", reason: str = "") -> int:
    """Say no to one question. The key is asked for, or read as one line from standard input.

    Parameters
    ----------
    session:
        The session's id.
    approval:
        The question's id.
    store:
        The store's URL; default: the file in the state folder.
    by:
        Who answers, for the record.
    reason:
        What the agent is told.

    """
    return _answer(session, Answer(approval, Verdict.REJECT, _key(), by, reason), store)


def _key() -> str:
    """Return the approver's key from the person, never from the environment or an argument that others can see."""
    key = getpass.getpass("approver key: ") if sys.stdin.isatty() else sys.stdin.readline().strip()
    if not key:
        raise InputFault("approver key", "none was given", "it was told when the session was started")
    return key


def _answer(session: str, answer: Answer, url: str | None) -> int:
    async def go() -> None:
        store = open_store(existing_store(url))
        try:
            was = {row.id: row.status for row in await store.sessions()}.get(session, "open")
            log, records = await store.resume(session)
            state, clock = SessionState(), LoopClock()
            try:
                for data in records:
                    apply(state, decode(data), loops=False)
                journal = Journal(store, log, state, clock, Events(1))
                consents = Consents(journal, clock)
                approvals = Approvals(journal, None, consents, clock, Deadlines(clock), Registry(), Nobody())
                approvals.answer(answer)
                await journal.sync()
            finally:
                await log.close(was)
        finally:
            await store.close()

    asyncio.run(go())
    where = f" --store {url}" if url else ""
    print(f"{answer.approval}: {answer.verdict.value}; go on with: orchestrator sessions resume {session}{where}")
    return 0
