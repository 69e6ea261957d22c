"""The command line in a process that ends itself: ``python -m tests.products.killed PLACE NUMBER LEDGER WORD…``.

PLACE is ``append`` (after the NUMBER-th record was accepted), ``before`` or ``after`` (the NUMBER-th write to the
tree), or ``never``. ``signal:NAME:append`` sends that signal instead of SIGKILL. Every write to the tree is a line of
LEDGER, appended by the write itself and synced, whatever the journal knows of it.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.cli.main import main
from orchestrator.journal.journal import Journal
from orchestrator.workspace import tools

if TYPE_CHECKING:
    from orchestrator.journal.records import Record
    from orchestrator.workspace.roots import Workspace


class Fuse:
    """Counts what passes each place, and ends the process at one."""

    def __init__(self, place: str, number: int, ledger: Path) -> None:
        name, _, self.place = place.rpartition(":")
        self.signal = signal.Signals[name.removeprefix("signal:")] if name else signal.SIGKILL
        self.number = number
        self.ledger = ledger
        self.passed: dict[str, int] = {}

    def at(self, place: str) -> None:
        """Pass *place*."""
        self.passed[place] = self.passed.get(place, 0) + 1
        if place == self.place and self.passed[place] == self.number:
            os.kill(os.getpid(), self.signal)

    def note(self, line: str) -> None:
        """Append *line* to the ledger, durably."""
        file = os.open(self.ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, f"{line}\n".encode())
        os.fsync(file)
        os.close(file)

    def lay(self) -> None:
        """Stand at every place."""
        append, patch = Journal.append, tools.diff_patch_workspace_file

        def appended(journal: Journal, actor: str, record: Record) -> None:
            append(journal, actor, record)
            self.at("append")

        async def patched(workspace: Workspace, path: str, diff: str) -> Any:
            self.at("before")
            told = await patch(workspace, path, diff)
            self.note(path)
            self.at("after")
            return told

        Journal.append = appended  # type: ignore[method-assign]
        tools.diff_patch_workspace_file = patched


if __name__ == "__main__":
    fuse = Fuse(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
    fuse.lay()
    sys.argv[:] = ["orchestrator", *sys.argv[4:]]
    main()
