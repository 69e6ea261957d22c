"""A real server of the newest protocol, over both transports."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from actors.grants import Access
from actors.messages import Outcome
from actors.sources import MCPSource
from orchestrator.testing import ScriptedModel, call
from tests.consent.office import Person, answered, approve, at_the_desk, office
from tests.core.stage import staged
from tests.sources.stage import finished, told, user

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVER = str(Path(__file__).with_name("modern.py"))
LIMIT_S = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(params=["stdio", "http"])
def modern(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MCPSource]:
    """The server, over each transport."""
    ledger = str(tmp_path / "ledger")
    more: dict[str, Any] = {"access": Access.READ, "data": True, "start_s": 40.0, "call_s": 10.0}
    if request.param == "stdio":
        monkeypatch.setenv("LEDGER_OF_MODERN", ledger)
        yield MCPSource("m", (sys.executable, SERVER, "stdio"), env={"LEDGER": "${LEDGER_OF_MODERN}"}, **more)
        return
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, SERVER, "http", str(port)],
        env={"LEDGER": ledger, "PATH": "/usr/bin:/bin"},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "Uvicorn running" in line:
            break
    yield MCPSource("m", url=f"http://127.0.0.1:{port}/mcp", **more)
    process.kill()
    process.communicate()


async def test_everything_a_call_can_do_works_with_a_server_of_the_newest_protocol(
    modern: MCPSource,
) -> None:
    person = Person(lambda question: approve(question.approval, reason="Ada"))
    script = [
        call("m__add", a=2, b=3),
        call("m__greet"),
        call("m__crawl"),
        call("read_source", source="m", uri="note://one"),
        "done",
    ]
    model = ScriptedModel(boss=script)
    async with asyncio.timeout(LIMIT_S), office(user(modern), model, approver=at_the_desk(person)) as it:
        events = it.session.events()
        result = await it.session.run("go")
        (connection,) = it.supervisor.registry.sources or ()
        assert connection._client is not None
        assert connection._client._sdk.protocol_version == "2026-07-28"
        texts = [
            (await answered(it, "boss", name))[0].text for name in ("m__add", "m__greet", "m__crawl", "read_source")
        ]
        await it.session.close()
        shown = [event async for event in events if type(event).__name__ == "Progressed"]
    assert result.output == "done"
    assert texts == ["5", "Hello, Ada.", "crawled", "the note"]
    assert [(event.done, event.total) for event in shown][-1:] == [(4.0, 4.0)]


async def test_stopping_a_turn_cancels_the_call_at_the_server(modern: MCPSource, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    runner, _ = staged(user(modern), call("m__wait"), "done")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        turn = asyncio.ensure_future(session.run("go"))
        while not ledger.exists():
            await asyncio.sleep(0.02)
        turn.cancel()
        await asyncio.wait({turn})
        while "cancelled" not in ledger.read_text():
            await asyncio.sleep(0.02)


async def test_a_server_of_the_newest_protocol_that_dies_leaves_an_unknown_outcome(modern: MCPSource) -> None:
    runner, _ = staged(user(modern), call("m__die"), "done")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        result = await session.run("go")
        seen, said = await finished(session), await told(session)
    assert result.output == "done"
    assert seen["m__die"].outcome is Outcome.UNKNOWN
    assert "server_lost" in seen["m__die"].text
    assert said[0][0] == "server_lost"
