"""A guarded root: the one way to files that a model names.

All of it blocks for a short time and is meant for a worker thread. A path is judged at the moment it is
opened, beneath the root's descriptor: there is no check that a later open could contradict.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import msgspec

from orchestrator.workspace.beneath import Descent, beneath, kind_of
from orchestrator.workspace.listing import Gathering, Listing
from orchestrator.workspace.refusal import WorkspaceRefused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Target", "Workspace"]

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
CHUNK_BYTES = 1 << 16
WRITE_WAIT_S = 10.0


class Target(msgspec.Struct, frozen=True):
    """The early answer about one path: where it leads now, and the rule that refuses it, if one does.

    :ivar resolved: relative to the root when *inside* (``.`` is the root), absolute when not.
    :ivar rule: empty when *inside*.
    """

    requested: str
    resolved: str
    inside: bool
    write: bool
    rule: str


class Workspace:
    """The files beneath *root*, and nothing else.

    Every method raises :class:`WorkspaceRefused` for a path that leaves the root, for what is not a regular
    file where one is needed, and for what the file system refuses; then nothing has changed.
    """

    def __init__(self, root: Path) -> None:
        """Guard *root*; nothing is opened until a method needs it."""
        self.root = root
        self.writing = threading.Lock()

    def target(self, path: str, *, write: bool) -> Target:
        """Say where *path* leads now. Never raises for a bad path; the tool's own open decides again."""
        try:
            with beneath(self.root, path) as place:
                return Target(path, place.resolved, inside=True, write=write, rule="")
        except WorkspaceRefused as refused:
            return Target(path, refused.resolved, inside=False, write=write, rule=refused.rule)

    def exists(self, path: str) -> bool:
        """Tell whether anything is at *path*."""
        with beneath(self.root, path) as place:
            return place.status is not None

    def read_bytes(self, path: str, limit: int) -> bytes:
        """Return the whole file, which must not hold more than *limit* bytes."""
        with beneath(self.root, path) as place, open_file(place) as descriptor:
            size = os.fstat(descriptor).st_size
            pieces: list[bytes] = []
            total = 0
            while total <= limit and (piece := os.read(descriptor, CHUNK_BYTES)):
                pieces.append(piece)
                total += len(piece)
            if total > limit:
                rule = f"the file holds {max(size, total)} bytes and at most {limit} are read"
                raise WorkspaceRefused(path, rule, place.resolved, "Name a smaller file.")
            return b"".join(pieces)

    def digest(self, path: str) -> str:
        """Return the SHA-256 of the file at *path* in hexadecimal."""
        found = hashlib.sha256()
        with beneath(self.root, path) as place, open_file(place) as descriptor:
            while piece := os.read(descriptor, CHUNK_BYTES):
                found.update(piece)
        return found.hexdigest()

    def write_bytes_atomic(self, path: str, data: bytes) -> str:
        """Make *data* the content of *path*, whole or not at all, and return the resolved path.

        Missing parent directories are made. A file that is there keeps its mode; one that nobody may
        write is refused. On return the bytes and the name are on disk.
        """
        with beneath(self.root, path) as place:
            mode = writable_mode(place)
            place.make_parents()
            replace(place.trail.here, place.name, data, mode)
            return place.resolved

    def remove(self, path: str) -> str:
        """Remove the regular file at *path* and return the resolved path. On return it is gone from disk."""
        with beneath(self.root, path) as place:
            if writable_mode(place) is None:
                raise missing_file(place)
            os.unlink(place.name, dir_fd=place.trail.here)
            os.fsync(place.trail.here)
            return place.resolved

    def listing(self, path: str, depth: int, limit: int, pattern: str = "*") -> Listing:
        """Return what lies below the directory *path*, *depth* levels deep, sorted, at most *limit* entries."""
        with beneath(self.root, path) as place:
            if place.status is None or not stat.S_ISDIR(place.status.st_mode):
                raise WorkspaceRefused(path, "it is not a directory", place.resolved, "Name a directory.")
            gathering = Gathering(depth, limit, pattern)
            gathering.visit(place.trail.here, "".join(f"{part}/" for part in place.trail.parts))
            return gathering.listing()

    @contextmanager
    def exclusive(self, path: str) -> Iterator[None]:
        """Keep other read-then-write work of this workspace out while the block runs.

        :raises WorkspaceRefused: it was still held after ten seconds.
        """
        if not self.writing.acquire(timeout=WRITE_WAIT_S):
            rule = f"another write held the workspace for {WRITE_WAIT_S:g} s"
            raise WorkspaceRefused(path, rule, path, "Try again.")
        try:
            yield
        finally:
            self.writing.release()


@contextmanager
def open_file(place: Descent) -> Iterator[int]:
    """Open the regular file at *place* for reading; a fifo, device or socket is refused without waiting."""
    if place.status is None:
        raise missing_file(place)
    require_file(place, place.status.st_mode)
    descriptor = os.open(place.name, READ, dir_fd=place.trail.here)
    try:
        require_file(place, os.fstat(descriptor).st_mode)
        yield descriptor
    finally:
        os.close(descriptor)


def require_file(place: Descent, mode: int) -> None:
    """Refuse what is not a regular file."""
    if not stat.S_ISREG(mode):
        rule = f"it is a {kind_of(mode)}, not a regular file"
        raise WorkspaceRefused(place.path, rule, place.resolved, "Name a regular file.")


def missing_file(place: Descent) -> WorkspaceRefused:
    """Return the refusal of a file that is not there."""
    return WorkspaceRefused(place.path, "no such file", place.resolved, "List the files to see which are there.")


def writable_mode(place: Descent) -> int | None:
    """Return the mode bits of the file that a write would replace, or None when there is none."""
    if place.status is None:
        return None
    require_file(place, place.status.st_mode)
    if not place.status.st_mode & 0o222:
        raise WorkspaceRefused(place.path, "the file is read-only", place.resolved, "Make it writable first.")
    return stat.S_IMODE(place.status.st_mode)


def replace(directory: int, name: str, data: bytes, mode: int | None) -> None:
    """Write *data* beside *name* and move it there; what was written aside never stays behind."""
    aside = f".{os.urandom(8).hex()}.tmp"
    descriptor = os.open(aside, CREATE, 0o666, dir_fd=directory)
    with ExitStack() as undo:
        undo.callback(os.unlink, aside, dir_fd=directory)
        with os.fdopen(descriptor, "wb") as stream:
            if mode is not None:
                os.fchmod(descriptor, mode)
            stream.write(data)
            stream.flush()
            os.fsync(descriptor)
        os.replace(aside, name, src_dir_fd=directory, dst_dir_fd=directory)
        undo.pop_all()
    os.fsync(directory)
