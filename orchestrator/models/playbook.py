"""A playbook by its file: Python that defines ``PLAYS``, a mapping from each agent's name to a function."""

from __future__ import annotations

import runpy
from pathlib import Path

from orchestrator.models.function import FunctionModel

__all__ = ["load_playbook"]


def load_playbook(file: str) -> FunctionModel:
    """Run the Python *file* and return its model. Raises ValueError with what is wrong with it."""
    if not Path(file).is_file():
        raise ValueError(f"there is no file {file}")
    try:
        plays = runpy.run_path(file).get("PLAYS")
    except (Exception, SystemExit) as error:
        raise ValueError(f"{file} does not run: {type(error).__name__}: {error}") from error
    if not isinstance(plays, dict) or not all(callable(play) for play in plays.values()):
        raise ValueError(f"{file} defines no PLAYS that maps agent names to functions")
    return FunctionModel(plays)
