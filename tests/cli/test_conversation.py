"""A conversation that cannot keep up with its session: what it missed is read from the journal."""

from __future__ import annotations

import asyncio
import io
import os

from orchestrator.agent import SessionStart
from orchestrator.cli.dialogue.console import Console
from orchestrator.cli.dialogue.conversation import Conversation
from orchestrator.cli.dialogue.screen import Screen
from orchestrator.cli.dialogue.talk import Talk
from orchestrator.events import Gap
from orchestrator.journal.store import open_store
from orchestrator.runtime import Observability, RuntimeConfig
from orchestrator.testing import FunctionModel
from tests.core.stage import agent


async def test_what_a_conversation_was_too_slow_to_hear_is_told_from_the_journal_once() -> None:
    answers, talk_of = io.StringIO(), io.StringIO()
    screen = Screen(answers, talk_of, interactive=False)
    model = FunctionModel({}, default=lambda request: f"answer to {request.history[-1].text}")
    reading, writing = os.pipe()
    os.write(writing, b"one\ntwo\n")
    os.close(writing)
    store = open_store("memory:")
    config = RuntimeConfig(model, store=store, observability=Observability(buffer=1))
    start = SessionStart(agent(), config, store)
    try:
        async with asyncio.timeout(10), start as session:
            assert start.supervisor is not None
            heard = session.events()
            talk = Talk(screen, "boss")
            code = await Conversation(session, start.supervisor, Console(reading, screen), talk).go(0)
            seen, written = talk.state.seq, start.supervisor.journal.seq
        missed = [event async for event in heard if isinstance(event, Gap)]
    finally:
        os.close(reading)
        await store.close()
    assert missed
    assert (code, seen) == (0, written)
    assert answers.getvalue() == "answer to one\nanswer to two\n"
