"""Where sources are tested: scripted servers, definitions that use them, and what a session wrote down about them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from actors import AgentDefinition, Role, ToolSet
from actors.grants import Access
from actors.messages import CallFinished
from actors.sources import MCPSource
from orchestrator.journal.records import Noted
from orchestrator.sources.processes import MARK, PROC

if TYPE_CHECKING:
    from actors.messages import ToolResult
    from orchestrator import Session
    from orchestrator.journal.records import Entry

SERVER = str(Path(__file__).with_name("server.py"))
LIAR = str(Path(__file__).with_name("liar.py"))
LIMIT_S = 20.0


def entry(name: str, description: str = "", **more: Any) -> dict[str, Any]:
    """One entry of a listing."""
    return {"name": name, "description": description or f"Does {name}.", "inputSchema": {"type": "object"}, **more}


class Servers:
    """Scripted servers. Each has a ledger of the calls that began."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._patch = patch

    def script(self, name: str, **script: Any) -> None:
        """Say what the server *name* does from its next start on."""
        told = {"ledger": str(self.folder / f"{name}.ledger"), **script}
        self._patch.setenv(f"SCRIPT_OF_{name}", json.dumps(told))

    def source(self, name: str, *tools: Any, declared: dict[str, Any] | None = None, **script: Any) -> MCPSource:
        """A source that starts the server *name*; *declared* are further fields of it."""
        listed = [entry(tool) if isinstance(tool, str) else tool for tool in tools]
        self.script(name, **{"tools": listed, **script})
        more = {"access": Access.READ, "start_s": 10.0, "call_s": 5.0, **(declared or {})}
        return MCPSource(name, (sys.executable, SERVER), env={"SCRIPT": f"${{SCRIPT_OF_{name}}}"}, **more)

    def liar(self, name: str, *tools: Any, declared: dict[str, Any] | None = None, **script: Any) -> MCPSource:
        """A source that starts a server which prints what it is told to, whatever the protocol says."""
        source = self.source(name, *tools, declared=declared, **script)
        return attrs.evolve(source, command=(sys.executable, LIAR))

    def lines(self, name: str) -> list[str]:
        """What the server *name* wrote down: its starts, its calls, what was cancelled."""
        path = self.folder / f"{name}.ledger"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def called(self, name: str) -> list[str]:
        """The tools of the server *name* that began to run."""
        return [line.split()[1] for line in self.lines(name) if line.startswith("call ")]


@pytest.fixture
def servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Servers:
    """Scripted servers for one test."""
    return Servers(tmp_path, monkeypatch)


def user(*sources: MCPSource, name: str = "boss", role: Role = Role.RUN, **more: Any) -> AgentDefinition:
    """A definition with these sources."""
    direct = more.pop("direct", ())
    return AgentDefinition(name, role, tools=ToolSet(direct=direct, mcp=sources), **more)


async def told(session: Session) -> list[tuple[str, str]]:
    """What people watching the session have been told, as kind and text."""
    return [(e.record.kind, e.record.text) for e in await entries(session) if isinstance(e.record, Noted)]


async def entries(session: Session) -> tuple[Entry, ...]:
    """Every entry of the session's journal."""
    return await session._supervisor.journal.read(0)


async def finished(session: Session) -> dict[str, ToolResult]:
    """The result of each call of the session, by the tool's name; the last one counts."""
    found = (e.record for e in await entries(session) if isinstance(e.record, CallFinished))
    return {record.result.name: record.result for record in found}


def marked_processes() -> list[int]:
    """Every running process that was started for some source."""
    found = []
    for place in PROC.iterdir():
        try:
            if place.name.isdecimal() and f"{MARK}=".encode() in (place / "environ").read_bytes():
                state = (place / "stat").read_bytes().rpartition(b")")[2].split()[0]
                found += [int(place.name)] if state not in (b"Z", b"X") else []
        except OSError:
            continue
    return found


def alive(ledger: list[str]) -> list[int]:
    """The processes of a ledger that still run."""
    pids = [int(line.split()[1]) for line in ledger if line.split()[0] in ("start", "child")]
    return [pid for pid in pids if pid in marked_processes()]
