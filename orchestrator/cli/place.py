"""Where the command line keeps its things: the store of sessions, working copies, reports."""

from __future__ import annotations

import os
import time
from pathlib import Path

from orchestrator.cli.fault import InputFault

__all__ = ["default_store", "existing_folder", "existing_store", "home", "new_folder", "where"]


def home() -> Path:
    """Return the folder for state: ``$ORCHESTRATOR_HOME``, else the one that the platform's custom names."""
    named = os.environ.get("ORCHESTRATOR_HOME")
    if named:
        return Path(named).absolute()
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "orchestrator"


def default_store() -> str:
    """Return the URL of the store in `home`, which is made if it is missing. Raises `InputFault`."""
    _make(home())
    return f"sqlite:///{home() / 'sessions.db'}"


def existing_store(url: str | None) -> str:
    """Return the URL of a store to look at; one that is named must be there. Raises `InputFault`."""
    if url is None:
        return default_store()
    path = Path(url.removeprefix("sqlite:///").partition("?")[0])
    if url.startswith("sqlite:///") and not path.exists():
        raise InputFault(f"--store {url}", "there is no such file", "name the store that the sessions are kept in")
    return url


def where(store: str) -> str:
    """Return what a command needs besides a session's id to find it in *store*: nothing for the default one."""
    return "" if store == default_store() else f" --store {store}"


def existing_folder(workspace: Path | None) -> Path:
    """Return the folder to work on, by default the present one. Raises `InputFault` for what is no folder."""
    folder = (workspace or Path()).absolute()
    if not folder.is_dir():
        fault = "is not a folder" if folder.exists() else "there is no such folder"
        raise InputFault(f"--workspace {folder}", fault, "name the folder that the agents shall work on")
    return folder


def new_folder(kind: str, name: str) -> Path:
    """Make and return a new folder ``home/kind/name-time-number``. Raises `InputFault`."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    parent = _make(home() / kind)
    for number in range(1000):
        folder = parent / f"{name}-{stamp}-{os.getpid()}-{number}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise InputFault(str(folder), f"cannot be made: {error.strerror}", "set ORCHESTRATOR_HOME") from error
        return folder
    raise InputFault(str(parent), "has no room for another folder", "remove old ones")


def _make(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        remedy = "set ORCHESTRATOR_HOME to a folder that can be written"
        raise InputFault(str(folder), f"cannot be made: {error.strerror}", remedy) from error
    return folder
