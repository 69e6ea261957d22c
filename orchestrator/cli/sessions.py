"""``orchestrator sessions``: list, show, events, resume."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Any

import msgspec
from cyclopts import App

from orchestrator.cli.fault import InputFault
from orchestrator.cli.job import job_of, play
from orchestrator.cli.line import exact, one_line
from orchestrator.cli.place import existing_store
from orchestrator.cli.progress import stages_of
from orchestrator.clock import LoopClock
from orchestrator.events import Events
from orchestrator.journal.fault import SessionUnknown
from orchestrator.journal.fold import fold
from orchestrator.journal.journal import Journal
from orchestrator.journal.records import EffectSettled, decode
from orchestrator.journal.row import close_names
from orchestrator.journal.store import open_store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from orchestrator.journal.records import Entry
    from orchestrator.journal.row import SessionRow
    from orchestrator.journal.state import SessionState
    from orchestrator.journal.store import Store

__all__ = ["app", "find_row"]

app = App(name="sessions", help="Look at sessions, and take one up again.")


def _with_store(url: str | None, work: Callable[[Store], Awaitable[Any]]) -> Any:
    """Return what *work* answers for the store at *url*, which is closed afterwards."""

    async def go() -> Any:
        store = open_store(existing_store(url))
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(go())


async def find_row(store: Store, session: str) -> SessionRow:
    """Return the row of *session*. Raises `SessionUnknown`, naming close ids."""
    rows = await store.sessions()
    for row in rows:
        if row.id == session:
            return row
    raise SessionUnknown(session, close_names(session, (row.id for row in rows)))


async def _entries(store: Store, session: str, after: int = 0) -> tuple[Entry, ...]:
    await find_row(store, session)
    return tuple(decode(data) for data in await store.read(session, after))


@app.command(name="list")
def list_sessions(*, store: str | None = None, json: bool = False) -> int:
    """List every session of a store, oldest first.

    Parameters
    ----------
    store:
        The store's URL; default: the file in the state folder.
    json:
        Print one JSON array.

    """
    rows = _with_store(store, lambda opened: opened.sessions())
    if json:
        sys.stdout.write(msgspec.json.encode(rows).decode() + "\n")
        return 0
    for row in rows:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(row.updated_ms / 1000))
        print(one_line(f"{row.id}  {row.status:<7}  {when}  {row.records:>7} records  {row.title}"))
    return 0


@app.command
def show(session: str, *, store: str | None = None, json: bool = False) -> int:
    """Show what a session's journal adds up to: its actors, open turns, steps, what is owed and unresolved.

    Parameters
    ----------
    session:
        The session's id.
    store:
        The store's URL; default: the file in the state folder.
    json:
        Print one JSON object.

    """
    shown = _shown(session, fold(_with_store(store, lambda opened: _entries(opened, session))))
    if json:
        sys.stdout.write(msgspec.json.encode(shown).decode() + "\n")
        return 0
    print(f"session {session}: {shown['agent']}, {shown['records']} records")
    for actor in shown["actors"]:
        working = f"{actor['phase']}, {len(actor['open_turns'])} open turns"
        ended = actor["exited"]
        print(one_line(f"  actor {actor['path']}: {f'ended ({ended})' if ended else working}"))
    for key, what in shown["steps"].items():
        print(one_line(f"  step {key}: {what}"))
    for key in shown["unresolved"]:
        print(exact(f"  unresolved effect {key}"))
    if shown["unresolved"]:
        print("look whether it happened, then: orchestrator sessions settle ID EFFECT --happened or --no-happened")
    return 0


def _shown(session: str, state: SessionState) -> dict[str, Any]:
    """Return what ``show`` shows, as plain data."""
    finished = {key: "done" if done.ok else f"failed: {done.detail}" for key, done in state.finished_steps.items()}
    stages = {key: f"running: {said}" for key, said in stages_of(state).items()}
    return {
        "session": session,
        "agent": "" if state.opened is None else state.opened.agent,
        "records": state.seq,
        "actors": [
            {
                "path": actor.path,
                "agent": actor.spawned.agent,
                "phase": actor.loop.phase.value,
                "open_turns": [turn.turn for turn in actor.waiting],
                "exited": actor.exited,
            }
            for actor in state.actors.values()
        ],
        "steps": {**dict.fromkeys(state.steps, "running"), **stages, **finished},
        "owed": [turn for owed in state.owing.values() for turn in owed],
        "unresolved": list(state.unresolved),
    }


@app.command
def events(session: str, *, after: int = 0, store: str | None = None) -> int:
    """Print a session's journal, one JSON object a line.

    Parameters
    ----------
    session:
        The session's id.
    after:
        Begin after the entry with this number.
    store:
        The store's URL; default: the file in the state folder.

    """
    for entry in _with_store(store, lambda opened: _entries(opened, session, after)):
        sys.stdout.write(msgspec.json.encode(entry).decode() + "\n")
    return 0


@app.command
def resume(session: str, *, model: str | None = None, store: str | None = None, json: bool = False) -> int:
    """Take a run up where it stopped: nothing that finished runs again.

    Parameters
    ----------
    session:
        The session's id.
    model:
        provider:model that answers this time, such as playbook:FILE.py; default: the one that the run was begun with.
    store:
        The store's URL; default: the file in the state folder.
    json:
        Print the outcome as one JSON object on standard output.

    """
    url = existing_store(store)
    row = _with_store(url, lambda opened: find_row(opened, session))
    return play(job_of(row, url, model or ""), session, as_json=json, stream=sys.stderr)


@app.command
def settle(session: str, effect: str, *, happened: bool, store: str | None = None) -> int:
    """Say what became of an effect that nobody saw the end of; equal calls are refused until then.

    Parameters
    ----------
    session:
        The session's id; it must not be open elsewhere.
    effect:
        The effect as 'sessions show' names it.
    happened:
        Whether it happened (--happened) or not (--no-happened).
    store:
        The store's URL; default: the file in the state folder.

    """

    async def go(opened: Store) -> None:
        log, records = await opened.resume(session)
        status = "open"
        try:
            state = fold(decode(data) for data in records)
            status = "open" if any(actor.waiting for actor in state.actors.values()) else "closed"
            if effect not in state.unresolved:
                known = "; ".join(state.unresolved) or "none"
                raise InputFault(effect, f"is no unresolved effect of session {session}", f"there are: {known}")
            settled = EffectSettled(effect, happened, "a person at the command line")
            journal = Journal(opened, log, state, LoopClock(), Events(1))
            journal.append("", settled)
            await journal.sync()
        finally:
            await log.close(status)

    _with_store(store, go)
    print(f"{effect}: {'happened' if happened else 'did not happen'}")
    return 0
