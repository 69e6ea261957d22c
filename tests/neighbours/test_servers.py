"""Real MCP servers, of two languages and both protocols: listed, called, killed in a call, back again, closed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from actors.messages import Outcome
from orchestrator.journal.source import SourceStarted
from orchestrator.sources.processes import marked
from orchestrator.testing import ScriptedModel, call
from tests.consent.office import Person, answered, approve, at_the_desk, office
from tests.core.stage import staged
from tests.neighbours.places import PLACE, SERVERS, filled, site_of, source
from tests.sources.stage import entries, finished, marked_processes, told, user

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from orchestrator import Session
    from orchestrator.sources.connection import Connection

pytestmark = pytest.mark.neighbour
LIMIT_S = 100.0
PROMPT_S = 3.0


def test_the_neighbours_are_installed() -> None:
    assert (PLACE / ".installed").exists(), "run scripts/neighbours, or scripts/test --all, which does"


def connection_of(session: Session) -> Connection:
    """The one connection of a session."""
    sources = session._supervisor.registry.sources
    assert sources is not None
    (connection,) = sources
    return connection


async def marks_of(session: Session) -> list[str]:
    """The marks of the processes of the session's one source, one for each start, as they are on record."""
    return [e.record.mark for e in await entries(session) if isinstance(e.record, SourceStarted)]


async def frozen(session: Session) -> tuple[int, ...]:
    """Stop every process of the source, so that it takes a call and does not answer."""
    pids = marked((await marks_of(session))[-1])
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    return pids


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """A web site of the test's own folder."""
    with site_of(tmp_path) as address:
        yield address


@pytest.mark.parametrize("name", SERVERS)
async def test_a_real_server_is_listed_called_killed_in_a_call_and_back_for_the_next(
    name: str, tmp_path: Path, site: str
) -> None:
    server = SERVERS[name]
    tool, arguments = server.call[0], filled(server.call[1], tmp_path, site)
    lead = f"{name}__{tool}"
    script = [call(lead, **arguments), "one", call(lead, **arguments), "two", call(lead, **arguments), "three"]
    runner, _ = staged(user(source(name, tmp_path)), *script)
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        connection = connection_of(session)
        assert connection._client is not None
        assert connection._client._sdk.protocol_version == server.protocol
        assert len(connection.tools.pins or ()) == server.tools
        assert connection.tools.bad == ()
        await session.run("call")
        first = (await finished(session))[lead]
        turn = asyncio.ensure_future(session.run("call, and be killed"))
        pids = await frozen(session)
        while not connection.flights:
            await asyncio.sleep(0.01)
        began = asyncio.get_running_loop().time()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        await turn
        took = asyncio.get_running_loop().time() - began
        lost = (await finished(session))[lead]
        await session.run("call again")
        again = (await finished(session))[lead]
        said, marks = await told(session), await marks_of(session)
    assert (first.outcome, server.answer in first.text) == (Outcome.OK, True), first.text
    assert lost.outcome is Outcome.UNKNOWN
    assert took < PROMPT_S
    assert (server.answer in again.text, again.outcome) == (True, first.outcome)
    assert [kind for kind, _ in said] == ["server_lost", "server_back"]
    assert len(marks) == len(("first", "after the kill"))
    assert [marked(mark) for mark in marks] == [(), ()]
    assert pids
    assert [pid for pid in pids if pid in marked_processes()] == []


EVERYTHING: list[tuple[str, dict[str, Any], str]] = [
    ("echo", {"message": "hello"}, "Echo: hello"),
    ("get-annotated-message", {"messageType": "error", "includeImage": True}, "[image image/png"),
    ("get-env", {}, '"PATH"'),
    ("get-resource-links", {"count": 2}, "[resource "),
    ("get-resource-reference", {"resourceType": "Text", "resourceId": 1}, "Resource 1"),
    ("get-structured-content", {"location": "New York"}, "temperature"),
    ("get-sum", {"a": 2, "b": 3}, "The sum of 2 and 3 is 5"),
    ("get-tiny-image", {}, "[image image/png"),
    ("gzip-file-as-resource", {"name": "x.gz", "data": "data:text/plain;base64,aGVsbG8="}, "[resource "),
    ("toggle-simulated-logging", {}, "simulated"),
    ("toggle-simulated-logging", {}, "simulated"),
    ("toggle-subscriber-updates", {}, "subscri"),
    ("toggle-subscriber-updates", {}, "subscri"),
    ("trigger-long-running-operation", {"duration": 1, "steps": 4}, "Long running operation completed"),
    ("trigger-elicitation-request", {}, "Ada"),
    ("trigger-url-elicitation", {"url": "https://example.org/x"}, "User completed the URL elicitation flow"),
    ("simulate-research-query", {"topic": "rivers"}, "as a task only"),
]


async def test_every_tool_of_the_everything_server_is_called_and_answered(tmp_path: Path) -> None:
    def say(question: Any) -> Any:
        return approve(question.approval, reason=json.dumps({"name": "Ada", "check": True, "email": "a@example.org"}))

    person = Person(*[say] * 4)
    script = [call(f"everything__{name}", **arguments) for name, arguments, _ in EVERYTHING]
    model = ScriptedModel(boss=[*script, "done"])
    definition = user(source("everything", tmp_path, data=True))
    async with asyncio.timeout(LIMIT_S), office(definition, model, approver=at_the_desk(person)) as it:
        events = it.session.events()
        result = await it.session.run("go")
        listed = {pin.name for pin in connection_of(it.session).tools.pins or ()}
        seen: dict[str, list[Any]] = {name: await answered(it, "boss", f"everything__{name}") for name in listed}
        await it.session.close()
        shown = [event async for event in events if type(event).__name__ == "Progressed"]
    assert result.output == "done"
    assert listed == {name for name, _, _ in EVERYTHING}
    for name, _, part in EVERYTHING:
        texts = [each.text for each in seen[name]]
        assert any(part in text for text in texts), (name, texts)
    refused = {name for name, results in seen.items() for each in results if each.outcome is not Outcome.OK}
    assert refused == {"simulate-research-query"}, {n: seen[n] for n in refused}
    assert [event.done for event in shown][-1:] == [4.0]
    assert len(person.asked) == len(("the form", "the link"))
