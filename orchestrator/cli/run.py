"""``orchestrator run``: one run of a workflow file or of a shipped product."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from orchestrator.cli.job import Job, new_job, play

__all__ = ["run"]


def run(
    what: Annotated[str, Parameter(name="what", show_default=False)],
    *,
    workspace: Path | None = None,
    model: str | None = None,
    store: str | None = None,
    in_place: bool = False,
    report: Path | None = None,
    json: bool = False,
) -> int:
    """Run a workflow file (.yaml) or a shipped product (mend, support-desk).

    Parameters
    ----------
    what:
        A workflow file, or the name of a product (mend, support-desk).
    workspace:
        The folder that the agents work on; default: the present one. They get a copy of it unless --in-place.
        support-desk works in a folder of its own, or in the one that is named.
    model:
        provider:model, such as openai:NAME, ollama:NAME, openai:NAME@http://HOST:PORT/v1, or playbook:FILE.py.
        A product has an offline model of its own.
    store:
        Where the session is kept, such as sqlite:///runs.db; default: the file in the state folder.
    in_place:
        Work on the folder itself.
    report:
        The folder for the report; default: a new one in the state folder.
    json:
        Print the outcome as one JSON object on standard output.

    """
    job: Job = new_job(what, workspace=workspace, model=model, store=store, in_place=in_place, report=report)
    return play(job, None, as_json=json, stream=sys.stderr)
