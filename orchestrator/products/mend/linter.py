"""Fixed commands: ruff, with a fixed rule set, no configuration of the tree's own, no cache; and Python's compiler.

Findings are plain values; a fix is the edits that the linter proposes, with whether it calls them safe.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import TYPE_CHECKING

import msgspec
from anyio import fail_after, run_process, to_thread

from actors.errors import ToolFault
from orchestrator.products.mend import compiling

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["RULES", "Edit", "Finding", "broken_files", "lint_file", "lint_text", "lint_tree"]

RULES = "E,F,W,I,UP,B,C4,SIM,RET,PIE"
COMMAND = (
    "-m",
    "ruff",
    "check",
    "--isolated",
    "--no-cache",
    "--exit-zero",
    "--output-format=json",
    f"--select={RULES}",
)
SECONDS = 120.0


class Position(msgspec.Struct, frozen=True):
    """A place in a file; both count from 1."""

    row: int
    column: int


class Edit(msgspec.Struct, frozen=True):
    """Replace what stands from *location* up to *end_location* by *content*."""

    content: str
    location: Position
    end_location: Position


class Fix(msgspec.Struct, frozen=True):
    """The edits that mend a finding; *applicability* is ``safe``, ``unsafe`` or ``display``."""

    applicability: str
    edits: tuple[Edit, ...]
    message: str | None = None


class Finding(msgspec.Struct, frozen=True):
    """One finding; *code* is empty for a file that is not valid Python."""

    filename: str
    message: str
    location: Position
    code: str | None = None
    fix: Fix | None = None


async def lint_tree(root: Path) -> tuple[Finding, ...]:
    """Return every finding beneath *root*, with paths relative to it, sorted by place. Raises `ToolFault`.

    A link is left out: what it leads to is found under its own name, or lies outside.
    """
    found = await _ruff((".",), None, root)
    return await to_thread.run_sync(_own, found, root)


def _own(found: tuple[Finding, ...], root: Path) -> tuple[Finding, ...]:
    """Return the findings of files that are no links, with relative paths, sorted by place."""
    top = os.path.realpath(root)
    names = {item.filename for item in found}
    real = {name for name in names if os.path.realpath(name) == f"{top}/{os.path.relpath(name, root)}"}
    own = (item for item in found if item.filename in real)
    relative = (msgspec.structs.replace(item, filename=os.path.relpath(item.filename, root)) for item in own)
    return tuple(sorted(relative, key=lambda f: (f.filename, f.location.row, f.location.column, f.code or "")))


async def lint_file(path: str, root: Path) -> tuple[Finding, ...]:
    """Return the findings of the file *path* beneath *root*, as it is stored. Raises `ToolFault`."""
    return await _ruff((f"./{path}",), None, root)


async def lint_text(text: str, path: str, root: Path) -> tuple[Finding, ...]:
    """Return the findings of *text* as the file *path*. Raises `ToolFault`."""
    return await _ruff((f"--stdin-filename={path}", "-"), text.encode(), root)


async def _ruff(arguments: tuple[str, ...], data: bytes | None, root: Path) -> tuple[Finding, ...]:
    if importlib.util.find_spec("ruff") is None:
        raise ToolFault("The linter ruff is not installed.", remedy="Install the extra 'lint'.")
    told = await _command("The linter", [sys.executable, *COMMAND, *arguments], data, root)
    return msgspec.json.decode(told, type=tuple[Finding, ...])


async def broken_files(root: Path) -> tuple[str, ...]:
    """Return the files beneath *root* that do not compile, sorted. Raises `ToolFault`."""
    told = await _command("The compiler", [*compiling.COMMAND, str(root)], None, root)
    return msgspec.json.decode(told, type=tuple[str, ...])


async def _command(name: str, command: list[str], data: bytes | None, root: Path) -> bytes:
    """Return what *command* writes, run in *root* with *data* as its input. Raises `ToolFault`."""
    try:
        with fail_after(SECONDS):
            done = await run_process(command, input=data, cwd=root, check=False)
    except TimeoutError:
        raise ToolFault(f"{name} did not end within {SECONDS:g} s.") from None
    if done.returncode != 0:
        text = done.stderr.decode("utf-8", "replace").strip()[-500:]
        raise ToolFault(f"{name} failed with exit code {done.returncode}: {text}")
    return done.stdout
