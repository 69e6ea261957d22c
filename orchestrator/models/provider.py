"""Models by name: ``provider:model``."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import UnknownModel
from orchestrator.models.function import FunctionModel

if TYPE_CHECKING:
    from actors.ports import Model

__all__ = ["open_model"]

KNOWN = ("playbook:FILE.py",)


def open_model(name: str) -> Model:
    """Return the model *name*. Raises `UnknownModel` with what is wrong and which names there are.

    ``playbook:FILE.py`` runs the Python file, which defines ``PLAYS``: a mapping from each agent's name to a function
    of the request.
    """
    provider, colon, rest = name.partition(":")
    if provider != "playbook" or not colon or not rest:
        raise UnknownModel(name, "this release has no such provider", KNOWN)
    path = Path(rest)
    if not path.is_file():
        raise UnknownModel(name, f"there is no file {rest}", KNOWN)
    try:
        plays = runpy.run_path(str(path)).get("PLAYS")
    except (Exception, SystemExit) as error:
        raise UnknownModel(name, f"{rest} does not run: {type(error).__name__}: {error}", KNOWN) from error
    if not isinstance(plays, dict) or not all(callable(play) for play in plays.values()):
        raise UnknownModel(name, f"{rest} defines no PLAYS that maps agent names to functions", KNOWN)
    return FunctionModel(plays)
