"""The tools of ``mend``: fixed commands that only read, and the reading of what is on the session's record."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from actors.errors import ToolFault
from actors.tools import ToolContext, tool
from orchestrator.products.mend import linter
from orchestrator.products.mend.linter import Finding, broken_files, lint_text, lint_tree
from orchestrator.workspace.copying import copy_tree
from orchestrator.workspace.patch import PatchError, apply, apply_patch, parse, reverse
from orchestrator.workspace.refusal import WorkspaceRefused

if TYPE_CHECKING:
    from orchestrator.journal.work import FixRecorded
    from orchestrator.workspace.roots import Workspace

__all__ = ["MEND_TOOLS"]

MAX_FILE_BYTES = 4 * 1024 * 1024
MEGABYTE = 1_048_576
READS: dict[str, Any] = {"authorities": {"workspace.read"}, "needs": {"workspace"}, "timeout_s": 180.0}


@tool(**READS, output_limit_bytes=MEGABYTE)
async def run_linter(context: ToolContext) -> dict[str, Any]:
    """Run the linter over the whole workspace, count the findings of each file, and name files that do not compile.

    Not for one file: see lint_file.
    """
    findings = await lint_tree(context.workspace.root)
    counts = Counter(finding.filename for finding in findings)
    return {
        "findings": len(findings),
        "files": [{"path": path, "findings": counts[path]} for path in sorted(counts)],
        "broken": await broken_files(context.workspace.root),
    }


@tool(**READS, targets={"path"}, output_limit_bytes=4 * MEGABYTE)
async def lint_file(context: ToolContext, path: str) -> tuple[Finding, ...]:
    """Return every finding of one file, with the edits that would fix it. Not for the whole tree: see run_linter.

    Args:
        path: Relative to the workspace.

    """
    data = await to_thread.run_sync(read_bytes, context.workspace, path)
    try:
        return await lint_text(data.decode(), path, context.workspace.root)
    except UnicodeDecodeError:
        return await linter.lint_file(path, context.workspace.root)


@tool(**READS)
async def read_fix(context: ToolContext, fix: int) -> dict[str, Any]:
    """Return a proposed change as it is on record. Not for files: see read_file.

    Args:
        fix: The number under which it was recorded.

    """
    found = _on_record(context, fix)
    return {"fix": fix, "path": found.path, "reason": found.reason, "diff": found.diff}


@tool(**READS)
async def try_fix(context: ToolContext, fix: int) -> dict[str, Any]:
    """Try a proposed change in memory: does it apply, does the file compile, which findings go and which come.

    For a change that the file holds already it says so, and whether the file compiles as it is. It changes no file.
    Not for applying the change.

    Args:
        fix: The number under which it was recorded.

    """
    found = _on_record(context, fix)
    before = await to_thread.run_sync(read_source, context.workspace, found.path)
    try:
        after, applied = _tried(before, found.diff)
    except PatchError as error:
        return {"applies": False, "applied": False, "compiles": False, "fault": str(error)[:500]}
    try:
        _compile(after, found.path)
    except (SyntaxError, ValueError) as error:
        return {"applies": not applied, "applied": applied, "compiles": False, "fault": str(error)[:500]}
    if applied:
        return {"applies": False, "applied": True, "compiles": True}
    root = context.workspace.root
    had = Counter(item.code or "" for item in await lint_text(before, found.path, root))
    has = Counter(item.code or "" for item in await lint_text(after, found.path, root))
    gone, new = dict(had - has), dict(has - had)
    return {"applies": True, "applied": False, "compiles": True, "gone": gone, "new": new}


@tool(**READS)
async def verify_tree(context: ToolContext) -> dict[str, Any]:
    """Check the workspace in a throwaway copy: the linter, and whether every file compiles. It changes nothing.

    Not for what the findings are: see run_linter.
    """
    root: Path = context.workspace.root
    parent = Path(await to_thread.run_sync(tempfile.mkdtemp, None, "verify-"))
    try:
        copy = parent / "tree"
        try:
            await to_thread.run_sync(copy_tree, root, copy)
        except WorkspaceRefused as refused:
            raise ToolFault(f"The tree cannot be copied: {refused.rule}.", remedy=refused.remedy) from refused
        findings = await lint_tree(copy)
        broken = await broken_files(copy)
    finally:
        await to_thread.run_sync(shutil.rmtree, parent, True)  # noqa: FBT003  # ignore_errors
    return {"findings": len(findings), "compiles": not broken, "broken": broken}


def _tried(text: str, diff: str) -> tuple[str, bool]:
    """Return *text* with *diff* in it, and whether it was there before. Raises `PatchError`."""
    try:
        return apply(text, diff), False
    except PatchError:
        if diff:
            with suppress(PatchError):
                apply_patch(text, reverse(parse(diff)))
                return text, True
        raise


def _compile(text: str, path: str) -> None:
    """Raise SyntaxError or ValueError for a text that is no Python; what the compiler merely warns of is not told."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compile(text, path, "exec", dont_inherit=True)


def read_source(workspace: Workspace, path: str) -> str:
    """Return a file's text exactly, line ends included. Raises `ToolFault`."""
    try:
        return read_bytes(workspace, path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ToolFault(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}.") from error


def read_bytes(workspace: Workspace, path: str) -> bytes:
    """Return what a file holds. Raises `ToolFault`."""
    try:
        return workspace.read_bytes(path, MAX_FILE_BYTES)
    except WorkspaceRefused as refused:
        raise ToolFault(f"{path}: {refused.rule}.", remedy=refused.remedy) from refused


def _on_record(context: ToolContext, number: int) -> FixRecorded:
    found: FixRecorded | None = context.record.fix(number)
    if found is None:
        raise ToolFault(f"There is no fix {number} on record.")
    return found


MEND_TOOLS = (run_linter, lint_file, read_fix, try_fix, verify_tree)
