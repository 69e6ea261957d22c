"""``orchestrator``: exit 0 fine, 1 findings or a failed run, 2 bad usage or input, 130 stopped by Ctrl-C."""

from __future__ import annotations

import importlib.metadata
import os
import sys

from cyclopts import App, CycloptsError

from actors.errors import ActorError
from orchestrator.cli import approvals, audit, chat, check, doctor, explain, run, sessions
from orchestrator.cli.fault import InputFault
from orchestrator.cli.line import lines_of
from orchestrator.errors import OrchestratorError
from orchestrator.journal.fault import StoreError
from orchestrator.workflows.fault import PlanError
from orchestrator.workspace.refusal import WorkspaceRefused

__all__ = ["app", "call", "main"]


def version() -> str:
    """Return the version that is installed."""
    try:
        return importlib.metadata.version("orchestrator-of-actors")
    except importlib.metadata.PackageNotFoundError:
        return "unknown (it runs from a source tree)"


app = App(
    name="orchestrator", help="Run teams of agents as supervised actors.", version=version, version_flags=["--version"]
)
app.command(run.run)
app.command(chat.chat)
app.command(check.check)
app.command(sessions.app)
app.command(approvals.app)
app.command(audit.audit)
app.command(explain.explain)
app.command(doctor.doctor)

SAID = (InputFault, OrchestratorError, StoreError, PlanError, WorkspaceRefused, ActorError)


def call(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code. What a person can mend is said in words, never as a traceback."""
    try:
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        print(lines_of(f"orchestrator: {error}\norchestrator: see 'orchestrator --help'"), file=sys.stderr)
        return 2
    except SAID as error:
        print(lines_of(f"orchestrator: {error}"), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 1
    return code if isinstance(code, int) else 0


def main() -> None:
    """Entry point of the command. Whoever reads its output may stop reading: that is no fault of anybody."""
    code = call()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = code or 1
    sys.exit(code)


if __name__ == "__main__":
    main()
