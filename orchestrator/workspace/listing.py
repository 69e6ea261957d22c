"""What lies under a directory: sorted, bounded, and open about what it leaves out."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase

import msgspec

from orchestrator.workspace.beneath import DIRECTORY, kind_of

__all__ = ["SKIPPED_NAMES", "Entry", "Gathering", "Listing"]

SKIPPED_NAMES = frozenset({".git"})
MAX_SCANNED = 50_000


class Entry(msgspec.Struct, frozen=True):
    """One name found: its path from the root, its kind, and its size when it is a file."""

    path: str
    kind: str
    size_bytes: int


class Listing(msgspec.Struct, frozen=True):
    """What was found and what was not.

    :ivar omitted: entries that matched and did not fit the limit.
    :ivar unopened: directories at the depth limit or without permission, not looked into.
    :ivar skipped: directories never looked into because of their name.
    :ivar complete: False when the scan itself was cut, so that *omitted* is only a lower bound.
    """

    entries: tuple[Entry, ...]
    omitted: int
    unopened: tuple[str, ...]
    skipped: tuple[str, ...]
    complete: bool


class Gathering:
    """One walk below one open directory. Links are listed, never followed."""

    def __init__(self, depth: int, limit: int, pattern: str) -> None:
        """Start empty; *depth* 1 is the directory's own entries, *limit* counts entries kept."""
        self.depth = depth
        self.limit = limit
        self.pattern = pattern
        self.entries: list[Entry] = []
        self.unopened: list[str] = []
        self.skipped: list[str] = []
        self.matched = 0
        self.scanned = 0

    def visit(self, descriptor: int, prefix: str, level: int = 1) -> None:
        """Take in everything in the directory *descriptor*, whose path from the root is *prefix*."""
        with os.scandir(descriptor) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            if self.scanned >= MAX_SCANNED:
                return
            self.scanned += 1
            self.take(entry, f"{prefix}{entry.name}")
            if entry.is_dir(follow_symlinks=False):
                self.look_into(descriptor, entry.name, f"{prefix}{entry.name}", level)

    def take(self, entry: os.DirEntry[str], path: str) -> None:
        """Keep *entry* when it matches and there is room, and count it when it only matches."""
        if not self.matches(path):
            return
        self.matched += 1
        if len(self.entries) < self.limit:
            status = entry.stat(follow_symlinks=False)
            kind = kind_of(status.st_mode)
            self.entries.append(Entry(path, kind, status.st_size if kind == "file" else 0))

    def look_into(self, parent: int, name: str, path: str, level: int) -> None:
        """Visit the directory *name* of *parent*, or note why not."""
        if name in SKIPPED_NAMES:
            self.skipped.append(path)
            return
        if level >= self.depth:
            self.unopened.append(path)
            return
        try:
            descriptor = os.open(name, DIRECTORY, dir_fd=parent)
        except OSError:
            self.unopened.append(path)
            return
        try:
            self.visit(descriptor, f"{path}/", level + 1)
        finally:
            os.close(descriptor)

    def matches(self, path: str) -> bool:
        """Tell whether the pattern fits the whole path, the bare name, or, after ``**/``, either."""
        name = path.rpartition("/")[2]
        patterns = (self.pattern, self.pattern.removeprefix("**/"))
        return any(fnmatchcase(path, pattern) or fnmatchcase(name, pattern) for pattern in patterns)

    def listing(self) -> Listing:
        """Return what was gathered."""
        return Listing(
            entries=tuple(self.entries),
            omitted=self.matched - len(self.entries),
            unopened=tuple(self.unopened),
            skipped=tuple(self.skipped),
            complete=self.scanned < MAX_SCANNED,
        )
