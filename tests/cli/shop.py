"""A product to chat with: tools that ask, wait and will not stop, and a playbook that does what it is told in words."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.cli.terminal import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.desk import Desk

PRODUCT = """\
name: shop
agents:
  boss: {role: run, instructions: "Do it.", tools: [look, gate, stuck, stubborn, mule, pay], children: [worker]}
  worker: {role: child, instructions: "Do the one thing.", tools: [look, gate, pay]}
tools:
  - {name: look, run: "shop.tools:look", access: read, authorities: [shop.read]}
  - {name: gate, run: "shop.tools:gate", access: read, authorities: [shop.read]}
  - {name: stuck, run: "shop.tools:stuck", access: read, authorities: [shop.read]}
  - {name: stubborn, run: "shop.tools:stubborn", access: read, authorities: [shop.read]}
  - {name: mule, run: "shop.tools:mule", access: read, authorities: [shop.read]}
  - {name: pay, run: "shop.tools:pay", access: external, authorities: [shop.pay], approval: each_call}
callers:
  clerk: {agent: boss, authorities: [shop.read, shop.pay, children.start], context: [workspace], approver: true}
  visitor: {agent: boss, authorities: [shop.read], context: [workspace]}
"""
TOOLS = '''\
import asyncio
import os
from pathlib import Path

from anyio import wait_readable


async def look(text: str = "nothing") -> str:
    """Look at a text."""
    return text


async def gate() -> str:
    """Wait until somebody opens the gate."""
    gate = os.open("gate", os.O_RDONLY | os.O_NONBLOCK)
    try:
        await wait_readable(gate)
        return os.read(gate, 4096).decode()
    finally:
        os.close(gate)


async def stuck() -> str:
    """Never come back."""
    await asyncio.Event().wait()


async def stubborn() -> str:
    """Come back only after it was told to stop twice."""
    for _ in range(2):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue
    return "at last"


async def mule() -> str:
    """Never come back, whoever says so."""
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue


async def pay(to: str, amount: int) -> str:
    """Pay somebody."""
    with Path("ledger").open("a") as ledger:
        ledger.write(f"{to} {amount}\\n")
    return f"paid {amount} to {to}"
'''
PLAYS = """\
from actors.messages import Results, Said
from orchestrator.models.function import call
from actors.messages import ToolCall


def play(request):
    last = request.history[-1]
    if isinstance(last, Results):
        said = [item.text for item in request.history if isinstance(item, Said)][-1]
        if said == "gate pay" and last.results[-1].name == "gate":
            return call("pay", to="A", amount=1)
        return "result: " + last.results[-1].text
    word, _, rest = last.text.partition(" ")
    if word == "call":
        name, _, arguments = rest.partition(" ")
        return ToolCall("", name, arguments or "{}")
    if word == "gate":
        return call("gate")
    if word in ("start", "ask"):
        return call("delegate", child="worker", task=rest, background=word == "start")
    if word == "crash":
        raise RuntimeError("boom")
    return "heard: " + last.text


PLAYS = {"boss": play, "worker": play}
"""
WORDS = ("chat", "shop/product.yaml", "--model", "playbook:plays.py", "--workspace", "ws")


def stock(desk: Desk) -> Path:
    """Put the shop, and its gate, into the desk's folder; return the folder."""
    desk.put("shop/__init__.py", "")
    desk.put("shop/product.yaml", PRODUCT)
    desk.put("shop/tools.py", TOOLS)
    desk.put("plays.py", PLAYS)
    os.mkfifo(desk.folder / "gate")
    return desk.folder


def open_gate(folder: Path, text: str = "open") -> None:
    """Let the call that waits at the gate go on."""
    (folder / "gate").write_text(text)


def ledger(folder: Path) -> list[str]:
    """Who was paid how much."""
    path = folder / "ledger"
    return path.read_text().splitlines() if path.exists() else []


def piped(folder: Path, text: str | bytes, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command with *text* at its standard input."""
    done = subprocess.run(
        (sys.executable, "-m", "orchestrator.cli.main", *words),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"},
        input=text if isinstance(text, bytes) else text.encode(),
        capture_output=True,
        check=False,
        timeout=60,
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    )
