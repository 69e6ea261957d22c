"""A copy of a tree to work on, so that the original stays as it was."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import ExitStack
from pathlib import Path

import msgspec

from orchestrator.workspace.beneath import kind_of
from orchestrator.workspace.refusal import WorkspaceRefused

__all__ = ["LEFT_OUT_NAMES", "CopyReport", "copy_tree"]

LEFT_OUT_NAMES = frozenset({".git", ".venv", "__pycache__"})
MAX_FILES = 20_000
MAX_BYTES = 500 * 1000 * 1000
CHUNK_BYTES = 1 << 18
OWN_FILE, OWN_FOLDER = 0o600, 0o700
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class CopyReport(msgspec.Struct, frozen=True):
    """What was copied and what was not; paths are relative to the source.

    :ivar left_out: names that are never copied (``.git``, ``.venv``, ``__pycache__``).
    :ivar links_out: links that lead out of the source.
    :ivar special: fifos, devices and sockets, each with its kind.
    """

    files: int
    size_bytes: int
    left_out: tuple[str, ...]
    links_out: tuple[str, ...]
    special: tuple[str, ...]


def copy_tree(src: Path, dst: Path, *, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES) -> CopyReport:
    """Copy the directory *src* to *dst*, whole or not at all, and say what was left out.

    Modes are kept. Links inside the source become relative links to the same file of the copy; no link is
    followed. *dst* must be missing or an empty directory outside *src*. Blocks; meant for a worker thread.

    :raises WorkspaceRefused: a bad source or destination, more than *max_files* files or *max_bytes* bytes,
        or a file that cannot be read or written. Nothing is left at *dst* then.
    """
    source, target = Path(os.path.realpath(src)), Path(os.path.realpath(dst))
    check_ends(source, target)
    aside = target.parent / f".{target.name}.{os.urandom(6).hex()}.partial"
    copying = Copying(source, max_files, max_bytes)
    try:
        with ExitStack() as undo:
            undo.callback(shutil.rmtree, aside, ignore_errors=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            copying.directory(source, aside)
            aside.replace(target)
            undo.pop_all()
    except OSError as error:
        rule = f"the file system refused it ({error.strerror or error})"
        place = str(error.filename or target)
        raise WorkspaceRefused(str(src), rule, place, "Check permissions and the space left.") from error
    return copying.report()


def check_ends(source: Path, target: Path) -> None:
    """Refuse a source that is no directory and a destination that is taken or inside the source."""
    if not source.is_dir():
        raise WorkspaceRefused(str(source), "the source is not a directory", str(source), "Name a directory.")
    if target.is_relative_to(source):
        remedy = "Name a place outside the source."
        raise WorkspaceRefused(str(target), "the copy would lie inside its source", str(target), remedy)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        remedy = "Name a place that does not exist yet."
        raise WorkspaceRefused(str(target), "the destination is already there", str(target), remedy)


class Copying:
    """One copy under way: the counts, the bounds, and the lists for the report."""

    def __init__(self, source: Path, max_files: int, max_bytes: int) -> None:
        """Start at nothing copied."""
        self.source = source
        self.max_files = max_files
        self.max_bytes = max_bytes
        self.files = 0
        self.size_bytes = 0
        self.left_out: list[str] = []
        self.links_out: list[str] = []
        self.special: list[str] = []

    def directory(self, here: Path, there: Path) -> None:
        """Copy the directory *here* to the new directory *there*; its mode is set last."""
        there.mkdir(mode=0o700)
        with os.scandir(here) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            path, place = Path(entry.path), there / entry.name
            if entry.name in LEFT_OUT_NAMES:
                self.left_out.append(self.relative(path))
            elif entry.is_symlink():
                self.link(path, place)
            elif entry.is_dir():
                self.directory(path, place)
            elif entry.is_file():
                self.file(path, place)
            else:
                self.note_special(path, entry.stat(follow_symlinks=False).st_mode)
        there.chmod(stat.S_IMODE(here.stat().st_mode) | OWN_FOLDER)

    def file(self, here: Path, there: Path) -> None:
        """Copy one regular file and its mode, within the bounds; the copy can always be written by its owner."""
        self.files += 1
        if self.files > self.max_files:
            raise self.too_large(f"the tree holds more than {self.max_files} files")
        incoming = os.open(here, READ)
        try:
            mode = os.fstat(incoming).st_mode
            if not stat.S_ISREG(mode):
                self.files -= 1
                self.note_special(here, mode)
                return
            outgoing = os.open(there, CREATE, 0o600)
            with os.fdopen(outgoing, "wb") as stream:
                while piece := os.read(incoming, CHUNK_BYTES):
                    self.size_bytes += len(piece)
                    if self.size_bytes > self.max_bytes:
                        raise self.too_large(f"the tree holds more than {self.max_bytes} bytes")
                    stream.write(piece)
                os.fchmod(outgoing, stat.S_IMODE(mode) | OWN_FILE)
        finally:
            os.close(incoming)

    def link(self, here: Path, there: Path) -> None:
        """Copy a link that stays inside the source, as a relative link; list one that leaves it."""
        goal = Path(os.path.realpath(here))
        if not goal.is_relative_to(self.source):
            self.links_out.append(self.relative(here))
            return
        there.symlink_to(os.path.relpath(goal, here.parent))

    def note_special(self, here: Path, mode: int) -> None:
        """List what is neither file, directory nor link."""
        self.special.append(f"{self.relative(here)} ({kind_of(mode)})")

    def relative(self, here: Path) -> str:
        """Return *here* relative to the source."""
        return here.relative_to(self.source).as_posix()

    def too_large(self, rule: str) -> WorkspaceRefused:
        """Return the refusal of a tree over a bound."""
        remedy = "Name a smaller directory, or work in place."
        return WorkspaceRefused(str(self.source), rule, str(self.source), remedy)

    def report(self) -> CopyReport:
        """Return what was done."""
        return CopyReport(self.files, self.size_bytes, tuple(self.left_out), tuple(self.links_out), tuple(self.special))
