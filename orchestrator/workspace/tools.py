"""The three workspace tools as plain functions: read, list, patch one file.

Each runs its file work in a worker thread that is waited for when the caller is cancelled: a change is on
disk whole or not at all, and what a cancelled call has done can be asked with :func:`patch_state`.
All raise :class:`WorkspaceRefused`; then nothing has changed.
"""

from __future__ import annotations

import codecs
import hashlib
import posixpath
from typing import TYPE_CHECKING, Literal

from anyio import to_thread

from orchestrator.workspace.patch import NO_FILE, Patch, PatchError, apply_patch, parse, reverse
from orchestrator.workspace.refusal import WorkspaceRefused
from orchestrator.workspace.spelling import printable

if TYPE_CHECKING:
    from orchestrator.workspace.listing import Entry, Listing
    from orchestrator.workspace.roots import Workspace

__all__ = ["PatchState", "diff_patch_workspace_file", "list_files", "patch_state", "read_file"]

MAX_FILE_BYTES = 4 * 1024 * 1024
MAX_DIFF_CHARS = 1024 * 1024
MAX_LINES = 2000
MAX_CHARS = 400_000
MAX_ENTRIES = 500
MAX_DEPTH = 16
MAX_NAMED = 20
MAX_PATTERN = 200
SNIFFED_BYTES = 8192
MAGIC = (
    (b"\x89PNG", "a PNG image"),
    (b"GIF8", "a GIF image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x7fELF", "an ELF program"),
    (b"SQLite format 3", "an SQLite database"),
    (codecs.BOM_UTF16_LE, "UTF-16 text"),
    (codecs.BOM_UTF16_BE, "UTF-16 text"),
)

PatchState = Literal["applied", "not_applied", "unknown"]


async def read_file(ws: Workspace, path: str, start_line: int = 1, max_lines: int = 400) -> str:
    """Return lines of a text file as they are, under one line that tells the range and the total.

    The first line also tells what the text alone does not show: replaced bytes, CRLF ends, no newline at
    the end. *start_line* counts from 1. Binary files and files over 4 MiB are refused, naming their size.
    """
    return await to_thread.run_sync(read_text_range, ws, path, start_line, max_lines)


async def list_files(ws: Workspace, path: str = ".", depth: int = 3, pattern: str = "*") -> str:
    """Return the files and directories below *path*, one a line, sorted, and what was left out.

    *pattern* (``*.py``, ``src/*.md``, ``**/test_*.py``) is matched, case included, against name and path.
    Directories end in ``/``, links in ``@``; files tell their size in bytes. At most 500 are shown.
    """
    return await to_thread.run_sync(list_tree, ws, path, depth, pattern)


async def diff_patch_workspace_file(ws: Workspace, path: str, diff: str) -> str:
    """Apply a unified diff to one UTF-8 file, whole or not at all; tell the hunks and the new content's hash.

    The two header lines must name this file, or ``/dev/null`` to create or delete it.
    """
    return await to_thread.run_sync(patch_file, ws, path, diff)


async def patch_state(ws: Workspace, path: str, diff: str) -> PatchState:
    """Tell, after a crash, whether *diff* is on disk: it can be undone there, or only be applied, or neither.

    ``unknown`` when both or neither fit, and when the file can no longer be read.
    """
    return await to_thread.run_sync(state_of_patch, ws, path, diff)


def read_text_range(ws: Workspace, path: str, start_line: int, max_lines: int) -> str:
    """Read, judge and cut; the blocking half of :func:`read_file`."""
    if start_line < 1 or not 1 <= max_lines <= MAX_LINES:
        rule = f"start_line {start_line} or max_lines {max_lines} is out of range"
        remedy = f"Give start_line from 1 and max_lines from 1 to {MAX_LINES}."
        raise WorkspaceRefused(path, rule, path, remedy)
    data = ws.read_bytes(path, MAX_FILE_BYTES)
    kind = binary_kind(data)
    if kind:
        rule = f"it is {kind} of {len(data)} bytes, not text"
        raise WorkspaceRefused(path, rule, path, "Read a text file.")
    text = data.decode("utf-8-sig", "replace")
    lines = text.split("\n")
    total = len(lines) - (lines[-1] == "")
    if total and start_line > total:
        rule = f"line {start_line} is behind the end of {total} lines"
        raise WorkspaceRefused(path, rule, path, f"Give start_line from 1 to {total}.")
    chosen = lines[start_line - 1 : min(start_line - 1 + max_lines, total)]
    shown = "\n".join(chosen)
    if len(shown) > MAX_CHARS:
        rule = f"these {len(chosen)} lines hold {len(shown)} characters and at most {MAX_CHARS} are returned"
        raise WorkspaceRefused(path, rule, path, "Ask for fewer lines.")
    span = f"lines {start_line}-{start_line + len(chosen) - 1} of {total}" if total else "empty"
    return f"{printable(path)}: {', '.join((span, *text_notes(data, text)))}\n{shown}"


def text_notes(data: bytes, text: str) -> list[str]:
    """Return what a reader must know about *text* and cannot see in it."""
    notes: list[str] = []
    if data.decode("utf-8", "ignore").encode() != data:
        notes.append("bytes that are not UTF-8 shown as \N{REPLACEMENT CHARACTER}")
    if data.startswith(codecs.BOM_UTF8):
        notes.append("starts with a byte order mark")
    if "\r\n" in text:
        notes.append("CRLF line ends")
    if text and not text.endswith("\n"):
        notes.append("no newline at the end")
    return notes


def binary_kind(data: bytes) -> str:
    """Return what kind of binary *data* is, or an empty string for text."""
    for magic, kind in MAGIC:
        if data.startswith(magic):
            return kind
    return "binary data" if b"\0" in data[:SNIFFED_BYTES] else ""


def list_tree(ws: Workspace, path: str, depth: int, pattern: str) -> str:
    """Walk and write down; the blocking half of :func:`list_files`."""
    if not 1 <= depth <= MAX_DEPTH:
        raise WorkspaceRefused(path, f"depth {depth} is out of range", path, f"Give a depth from 1 to {MAX_DEPTH}.")
    if not 1 <= len(pattern) <= MAX_PATTERN:
        rule = "the pattern is empty or too long"
        raise WorkspaceRefused(path, rule, path, f"Give 1 to {MAX_PATTERN} characters.")
    listing = ws.listing(path, depth, MAX_ENTRIES, pattern)
    lines = [entry_line(entry) for entry in listing.entries] or [f"nothing matches {printable(pattern)}"]
    return "\n".join(lines + listing_notes(listing, depth))


def entry_line(entry: Entry) -> str:
    """Return one line for *entry*."""
    name = printable(entry.path)
    if entry.kind == "file":
        return f"{name} ({entry.size_bytes})"
    return name + {"directory": "/", "link": "@"}.get(entry.kind, f" ({entry.kind})")


def listing_notes(listing: Listing, depth: int) -> list[str]:
    """Return one line for each reason why something is not in *listing*."""
    notes: list[str] = []
    if listing.omitted:
        more = "" if listing.complete else " or more"
        notes.append(f"... {listing.omitted}{more} further entries left out: narrow the path or the pattern")
    elif not listing.complete:
        notes.append("... the tree is too large to see all of it: narrow the path")
    reasons = ((listing.unopened, f"not opened (depth {depth}, or no permission)"), (listing.skipped, "skipped"))
    for names, reason in reasons:
        if names:
            first = ", ".join(printable(name) for name in names[:MAX_NAMED])
            more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
            notes.append(f"... {reason}: {first}{more}")
    return notes


def patch_file(ws: Workspace, path: str, diff: str) -> str:
    """Read, apply and write under the workspace's write lock; the blocking half of the patch tool."""
    patch = read_patch(ws, path, diff)
    with ws.exclusive(path):
        there = ws.exists(path)
        if patch.creates and there:
            raise refused_patch(path, 1, "the diff creates a file that is already there", "Name the file in '---'.")
        head, original = read_utf8(ws, path) if not patch.creates else ("", "")
        try:
            changed = apply_patch(original, patch)
        except PatchError as error:
            raise refused_patch(path, error.place, error.fault, error.remedy) from error
        hunks = f"{len(patch.hunks)} hunk{'s' if len(patch.hunks) > 1 else ''} applied"
        if patch.deletes:
            return f"{printable(ws.remove(path))}: {hunks}, file deleted"
        data = (head + changed).encode()
        resolved = ws.write_bytes_atomic(path, data)
    return f"{printable(resolved)}: {hunks}, sha256 {hashlib.sha256(data).hexdigest()[:16]}"


def read_patch(ws: Workspace, path: str, diff: str) -> Patch:
    """Read *diff* and make sure that it is about *path*, which must be inside the root."""
    target = ws.target(path, write=True)
    if not target.inside:
        raise WorkspaceRefused(path, target.rule, target.resolved, "Give a path under the workspace root.")
    if len(diff) > MAX_DIFF_CHARS:
        raise refused_patch(path, 1, f"the diff is longer than {MAX_DIFF_CHARS} characters", "Split it.")
    try:
        patch = parse(diff)
        "".join(line for hunk in patch.hunks for line in hunk.new).encode()
    except PatchError as error:
        raise refused_patch(path, error.place, error.fault, error.remedy) from error
    except UnicodeEncodeError:
        raise refused_patch(path, 1, "a new line cannot be encoded", "Write whole characters.") from None
    if patch.creates and patch.deletes:
        raise refused_patch(path, 1, "both header lines are /dev/null", f"Name {target.resolved}.")
    names = {target.resolved, posixpath.normpath(path)}
    for name, prefix in ((patch.old_name, "a/"), (patch.new_name, "b/")):
        if name != NO_FILE and names.isdisjoint((name, name.removeprefix(prefix))):
            raise refused_patch(path, 1, f"the diff's header names another file, {name!r}", f"Name {target.resolved}.")
    return patch


def read_utf8(ws: Workspace, path: str) -> tuple[str, str]:
    """Return the byte order mark, if there is one, and the text after it; other encodings are refused."""
    data = ws.read_bytes(path, MAX_FILE_BYTES)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        rule = f"it is not UTF-8 text (byte {error.start})"
        raise WorkspaceRefused(path, rule, path, "Patch a UTF-8 text file.") from None
    mark = "\N{ZERO WIDTH NO-BREAK SPACE}"
    return (mark, text[1:]) if text.startswith(mark) else ("", text)


def refused_patch(path: str, place: int, fault: str, remedy: str) -> WorkspaceRefused:
    """Return the refusal of a diff at one of its lines."""
    return WorkspaceRefused(path, f"diff line {place}: {fault}", path, remedy)


def state_of_patch(ws: Workspace, path: str, diff: str) -> PatchState:
    """Try the patch both ways on what is there; the blocking half of :func:`patch_state`."""
    try:
        patch = parse(diff)
        if not ws.exists(path):
            return "not_applied" if patch.creates else "applied" if patch.deletes else "unknown"
        text = read_utf8(ws, path)[1]
    except (PatchError, WorkspaceRefused):
        return "unknown"
    forward = not patch.creates and fits(text, patch)
    backward = not patch.deletes and fits(text, reverse(patch))
    if forward == backward:
        return "unknown"
    return "applied" if backward else "not_applied"


def fits(text: str, patch: Patch) -> bool:
    """Tell whether *patch* applies to *text*."""
    try:
        apply_patch(text, patch)
    except PatchError:
        return False
    return True
