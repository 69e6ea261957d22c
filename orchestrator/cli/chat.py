"""``orchestrator chat``: a conversation with one agent and its children."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import attrs
from cyclopts import Parameter

from actors.text import clip, listed
from orchestrator.agent import SessionStart
from orchestrator.approver import Approver, new_key
from orchestrator.cli.asking import tell_waiting, told_key
from orchestrator.cli.dialogue.console import Console
from orchestrator.cli.dialogue.conversation import Conversation
from orchestrator.cli.dialogue.logged import logged_on
from orchestrator.cli.dialogue.partner import Partner, find_partner
from orchestrator.cli.dialogue.questions import ChatAsker
from orchestrator.cli.dialogue.screen import Screen
from orchestrator.cli.dialogue.talk import Talk
from orchestrator.cli.dialogue.texts import MAX_LINE, lead
from orchestrator.cli.fault import InputFault
from orchestrator.cli.job import absolute_model
from orchestrator.cli.line import one_line
from orchestrator.cli.place import default_store, existing_folder, existing_store, new_folder, where
from orchestrator.cli.sessions import find_row
from orchestrator.journal.records import SessionOpened, TurnEnded, decode
from orchestrator.journal.store import open_store
from orchestrator.models.opening import close_model, open_model
from orchestrator.runtime import Observability, RuntimeConfig
from orchestrator.session import SessionHandle

if TYPE_CHECKING:
    from actors.ports import Model
    from orchestrator.journal.records import Entry
    from orchestrator.journal.row import SessionRow
    from orchestrator.journal.store import Store

__all__ = ["chat"]

TAKEN = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCONT, signal.SIGWINCH)
GO_ON = "orchestrator chat --session"


@attrs.frozen
class Asked:
    """The words of the command, or those that an earlier chat was begun with; the model may be another."""

    what: str
    agent: str = ""
    caller: str = ""
    model: str = ""
    workspace: Path | None = None
    store: str = ""

    def labels(self, what: str, workspace: Path | None) -> tuple[tuple[str, str], ...]:
        """Return what makes this chat, with *what* as it is named from any folder, again from a list of sessions."""
        return (
            ("chat", what),
            ("agent", self.agent),
            ("caller", self.caller),
            ("model", self.model),
            ("workspace", "" if workspace is None else str(workspace)),
        )


def chat(
    what: Annotated[str, Parameter(name="what", show_default=False)] = "",
    *,
    agent: str = "",
    caller: str = "",
    model: str | None = None,
    workspace: Path | None = None,
    store: str | None = None,
    session: str = "",
) -> int:
    """Talk with one agent and its children.

    At a terminal what the agents do is told as it happens; Ctrl-C ends the turn, Ctrl-D the chat. From a pipe each line
    is a turn. Exit code 0, or 1 when a turn from a pipe failed or waits for a person.

    Parameters
    ----------
    what:
        A shipped product, a product or workflow file (.yaml), or one agent as a Markdown file (.md).
    agent:
        Which agent of it; default: the first.
    caller:
        One of a product file's callers, with whose authority and context the agent is called; default: its first.
    model:
        provider:model, such as playbook:FILE.py; default: the product's offline model, or the one the file names.
    workspace:
        The folder that the agents work on, itself and no copy of it; default: the present one. support-desk works in
        a folder of its own, or in the one that is named.
    store:
        Where the session is kept, such as sqlite:///chats.db; default: the file in the state folder.
    session:
        The id of an earlier chat to take up.

    """
    if session and (agent or caller or workspace):
        raise InputFault(f"--session {session}", "goes on as it began", "leave --agent, --caller and --workspace out")
    if sys.stdin is None:
        raise InputFault("standard input", "is closed", "give lines, a terminal, or /dev/null")
    if not session and not what:
        raise InputFault(
            "chat", "nobody to talk with was named", "name a product, a .yaml file, or an agent's .md file"
        )
    url = existing_store(store) if session else store or default_store()
    asked = Asked(what, agent, caller, absolute_model(model or ""), workspace, url)
    return asyncio.run(_chat(asked, session))


async def _chat(asked: Asked, resumed: str) -> int:
    store = open_store(asked.store)
    try:
        await store.sessions()  # a store that cannot be used is told before anything is made
        row = await find_row(store, resumed) if resumed else None
        entries = tuple(map(decode, await store.read(resumed))) if resumed else ()
        if row is not None:
            asked = _again(row, asked)
        partner = find_partner(asked.what, asked.agent, asked.caller)
        model = _model(asked, partner)
        try:
            code, left = await _talk(asked, partner, model, store, entries)
        finally:
            await close_model(model)
            for number in TAKEN:
                asyncio.get_running_loop().remove_signal_handler(number)
    finally:
        await store.close()
    if left:
        _leave(left, code)
    return code


def _leave(left: tuple[str, ...], code: int) -> None:
    """End the process at once: all is closed, and what is *left* would never let it go."""
    print(f"left behind: {listed(left)}", file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(code)


def _again(row: SessionRow, asked: Asked) -> Asked:
    """Return the words that the chat *row* was begun with. Raises `InputFault` for a session of another kind."""
    labels = dict(row.labels)
    if "chat" not in labels:
        raise InputFault(f"session {row.id}", "is no chat", f"go on with: orchestrator sessions resume {row.id}")
    if asked.what and labels["chat"] not in (asked.what, str(Path(asked.what).resolve())):
        raise InputFault(asked.what, f"session {row.id} is a chat with {labels['chat']}", "leave it out")
    folder = Path(labels["workspace"]) if labels["workspace"] else None
    if folder is not None and not folder.is_dir():
        raise InputFault(f"session {row.id}", f"its workspace {folder} is gone", "put it back, or begin a new chat")
    model = asked.model or labels["model"]
    return Asked(labels["chat"], labels["agent"], labels["caller"], model, folder, asked.store)


def _model(asked: Asked, partner: Partner) -> Model:
    """Open the model. Raises `InputFault` where none is named, `UnknownModel` for one that there is not."""
    if asked.model:
        return open_model(asked.model)
    if partner.model is None:
        remedy = "give --model provider:model, such as playbook:FILE.py"
        if partner.markdown:
            remedy += ", or name it in the file: model: provider:model"
        raise InputFault(asked.what, "the agent needs a model", remedy)
    return partner.model()


def _workspace(asked: Asked, partner: Partner) -> Path | None:
    """Return the folder to work on. Raises `InputFault`."""
    if not partner.workspace:
        if asked.workspace is not None:
            remedy = "leave --workspace out, or name another --caller"
            raise InputFault(f"--workspace {asked.workspace}", f"the caller {partner.caller} has no workspace", remedy)
        return None
    if partner.fresh and asked.workspace is None:
        return new_folder("work", partner.definition.address)
    return existing_folder(asked.workspace)


async def _talk(
    asked: Asked, partner: Partner, model: Model, store: Store, entries: tuple[Entry, ...]
) -> tuple[int, tuple[str, ...]]:
    """Talk, and return the exit code and the names of the tasks that did not yield to the end of the session."""
    workspace = _workspace(asked, partner)
    interactive = sys.stdin.isatty() and sys.stdout.isatty()
    screen = Screen(sys.stdout, sys.stdout if interactive else sys.stderr, interactive=interactive)
    console = Console(sys.stdin.fileno(), screen)
    opened = next((entry.record for entry in entries if isinstance(entry.record, SessionOpened)), None)
    key = "" if opened is not None else new_key()
    asker = ChatAsker(console, key, "" if opened is None else opened.approver)
    # At a terminal there is somebody to ask, whatever the tools: every agent has ask_person.
    asks = bool(opened.approver) if opened is not None else partner.asks or (interactive and partner.person)
    approver = Approver(key or new_key(), asker if interactive else None) if asks else None
    definition = partner.definition
    about = Observability(
        title=f"chat with {definition.name} of {asked.what}", labels=asked.labels(partner.what, workspace)
    )
    config = RuntimeConfig(model, partner.principal, partner.limits, workspace, store, approver, about)
    handle = None if opened is None else SessionHandle(opened.session, store.url, definition.fingerprint)
    start = SessionStart(definition, config, store, handle)
    with logged_on(screen):
        async with start as session:
            supervisor = asker.supervisor = start.supervisor
            assert supervisor is not None
            name = session.snapshot().session
            screen.say(_head(partner, name))
            if approver is not None and key:
                screen.say(told_key(key))
            if entries:
                screen.say(_recap(entries, definition.address))
            talk = Talk(screen, definition.address)
            for entry in entries:
                talk.entry(entry, aloud=False)
            conversation = Conversation(session, supervisor, console, talk)
            code = await conversation.go(len(entries))
            root, waiting = supervisor.journal.state.actors[definition.address], supervisor.approvals.pending()
    left = tuple(sorted(task.get_name() for task in supervisor.tasks if not task.done()))
    if root.exited:
        screen.say(f"session {name} is over: {root.exited}")
        return code, left
    screen.say(f"session {name} is parked; go on with: {GO_ON} {name}{where(asked.store)}")
    if waiting:
        tell_waiting(name, waiting, where(asked.store), sys.stderr, GO_ON)
    return code, left


def _head(partner: Partner, session: str) -> str:
    """Return the first lines of a chat: with whom it is, and how to find out what can be typed."""
    definition = partner.definition
    others = [name for name in partner.names if name != definition.name]
    lines = [
        f"chat with {definition.name} ({definition.role.value}), {len(definition.offered)} tools, session {session}"
    ]
    if definition.children:
        lines.append(f"it may start {listed(child.name for child in definition.children)}")
    if others:
        lines.append(f"others to talk with, by --agent: {listed(others)}")
    return "\n".join((*lines, "/help tells what can be typed"))


def _recap(entries: tuple[Entry, ...], root: str) -> str:
    """Return how far an earlier chat had come."""
    ended = [entry.record for entry in entries if entry.actor == root and isinstance(entry.record, TurnEnded)]
    count = f"{len(ended)} {'turn' if len(ended) == 1 else 'turns'} so far"
    return (
        f"{lead(root)} {count}; the last said: {clip(one_line(ended[-1].output), MAX_LINE)}"
        if ended
        else f"{lead(root)} {count}"
    )
