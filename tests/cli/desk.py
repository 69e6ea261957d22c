"""A desk to type commands at: a folder with a state folder, files to name, and what a command says."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from orchestrator.cli.main import call

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

WORKFLOW = """\
name: tidy
agents:
  a: {role: child, instructions: "Do it."}
steps:
  - {id: one, agent: a, prompt: "First."}
  - {id: two, agent: a, needs: [one], prompt: "Then {steps.one}"}
"""
PLAYS = 'PLAYS = {"a": lambda request: "done"}\n'


class Said(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str


class Desk:
    """The folder, which is also the present one."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.capsys = capsys
        self.put("tidy.yaml", WORKFLOW)
        self.put("plays.py", PLAYS)
        (folder / "ws").mkdir()

    def put(self, name: str, content: str | bytes) -> Path:
        """Write a file."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def say(self, *words: str) -> Said:
        """Run a command in this process."""
        self.capsys.readouterr()
        code = call(list(words))
        return Said(code, *self.capsys.readouterr())

    def run(self, *more: str, what: str = "tidy.yaml", model: str = "playbook:plays.py") -> Said:
        """Run the workflow on the workspace."""
        return self.say("run", what, "--model", model, "--workspace", "ws", *more)

    def made(self) -> list[str]:
        """Everything in the state folder but the store's own files."""
        if not self.home.is_dir():
            return []
        found = (path.relative_to(self.home).as_posix() for path in self.home.rglob("*"))
        return sorted(path for path in found if not path.startswith("sessions.db"))
