"""A process that may be killed: ``python -m tests.sources.program STORE HANDLE LEDGER MODE``.

It begins a session with one scripted server that forks and ignores SIGTERM and the end of its input, or resumes the
one whose handle is in the file HANDLE, and runs one turn. MODE ``hold`` then waits for a signal; ``go`` closes.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import msgspec

from actors import AgentDefinition, Role, ToolSet
from actors.grants import Access
from actors.sources import MCPSource
from orchestrator import Agent, RuntimeConfig
from orchestrator.session import SessionHandle
from orchestrator.testing import FunctionModel

SERVER = str(Path(__file__).with_name("server.py"))


async def main(store: str, handle: Path, ledger: str, mode: str) -> None:
    """Run one turn."""
    tools = [{"name": "look", "inputSchema": {"type": "object"}}]
    os.environ["SCRIPT_OF_S"] = json.dumps({"tools": tools, "ledger": ledger, "fork": True, "stay": True})
    env = {"SCRIPT": "${SCRIPT_OF_S}"}
    source = MCPSource("s", (sys.executable, SERVER), env=env, access=Access.READ)
    definition = AgentDefinition("boss", Role.RUN, tools=ToolSet(mcp=(source,)))
    model = FunctionModel({"boss": lambda _: "done"})
    known = msgspec.json.decode(handle.read_bytes(), type=SessionHandle) if handle.exists() else None
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with Agent(definition, RuntimeConfig(model, store=store)) as agent, agent.start(known) as session:
        handle.write_bytes(msgspec.json.encode(session.snapshot()))
        await session.run("go")
        print("ready", flush=True)
        if mode == "hold":
            await stop.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4]))
