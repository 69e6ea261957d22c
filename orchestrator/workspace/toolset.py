"""The workspace tools as a definition takes them: read, list, patch, with their authority, targets and check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from actors.errors import ToolFault
from actors.grants import Access
from actors.text import MAX_SHOWN, clip
from actors.tools import Reconciled, ToolContext, tool
from orchestrator.workspace import tools as files
from orchestrator.workspace.refusal import WorkspaceRefused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

__all__ = ["WORKSPACE_TOOLS"]

READS: dict[str, Any] = {"authorities": {"workspace.read"}, "needs": {"workspace"}, "targets": {"path"}}
STATES = {
    "applied": Reconciled.HAPPENED,
    "not_applied": Reconciled.DID_NOT_HAPPEN,
    "unknown": Reconciled.UNKNOWN,
}


async def _told(work: Awaitable[str]) -> str:
    """Return what *work* answers; a refusal of the workspace is told to the model as it reads."""
    try:
        return await work
    except WorkspaceRefused as refused:
        raise ToolFault(f"{clip(refused.path, MAX_SHOWN)}: {refused.rule}.", remedy=refused.remedy) from refused


@tool(**READS, output_limit_bytes=524_288)
async def read_file(context: ToolContext, path: str, start_line: int = 1, max_lines: int = 400) -> str:
    """Return lines of a text file of the workspace, under a line that tells the range and the total.

    Not for binary files, and not for finding out which files there are.

    Args:
        path: Relative to the workspace.
        start_line: Counts from 1.
        max_lines: At most 2000.

    """
    return await _told(files.read_file(context.workspace, path, start_line, max_lines))


@tool(**READS)
async def list_files(context: ToolContext, path: str = ".", depth: int = 3, pattern: str = "*") -> str:
    """List the files and directories below a path of the workspace, with sizes. Not for reading them.

    Args:
        path: Relative to the workspace; '.' for all of it.
        depth: How many levels down, 1 to 16.
        pattern: Like '*.py' or 'src/**/test_*.py'.

    """
    return await _told(files.list_files(context.workspace, path, depth, pattern))


async def _patched(context: ToolContext, arguments: Mapping[str, Any]) -> Reconciled:
    return STATES[await files.patch_state(context.workspace, arguments["path"], arguments["diff"])]


@tool(
    access=Access.WRITE,
    authorities={"workspace.read", "workspace.write"},
    needs={"workspace"},
    targets={"path"},
    reconcile=_patched,
)
async def diff_patch_workspace_file(context: ToolContext, path: str, diff: str) -> str:
    """Apply a unified diff to one text file of the workspace, whole or not at all. Not for several files at once.

    Args:
        path: The file, relative to the workspace; the diff's header lines must name it.
        diff: A unified diff; '/dev/null' in a header creates or deletes the file.

    """
    return await _told(files.diff_patch_workspace_file(context.workspace, path, diff))


WORKSPACE_TOOLS = (read_file, list_files, diff_patch_workspace_file)
