"""Going down from a root, one open directory at a time.

Rules. The root is opened once; each part is opened from its parent's descriptor and never through a link;
``..`` goes back to a directory that is already open, so it cannot leave, whatever is renamed meanwhile.
Links are read and followed by hand, to a bounded number; one that leads out of the root is refused.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from orchestrator.workspace.refusal import WorkspaceRefused
from orchestrator.workspace.spelling import ROOT_RULE, absolute_form, parts_beneath, parts_of, spelling_fault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["DIRECTORY", "Descent", "beneath", "kind_of"]

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
MAX_LINKS = 16
KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFBLK: "block device",
    stat.S_IFCHR: "character device",
}


def kind_of(mode: int) -> str:
    """Return the word for the file kind in *mode* (``file``, ``directory``, ``fifo`` …)."""
    return KINDS.get(stat.S_IFMT(mode), "special file")


class Trail:
    """The directories open from the root down, and their names.

    :ivar parts: the names of all but the root.
    """

    def __init__(self) -> None:
        """Nothing is open yet."""
        self.descriptors: list[int] = []
        self.parts: list[str] = []

    @property
    def here(self) -> int:
        """The descriptor of the deepest open directory."""
        return self.descriptors[-1]

    def start(self, root: str) -> None:
        """Stand at the root: open it if it is not open, and close everything below it."""
        if not self.descriptors:
            self.descriptors.append(os.open(root, DIRECTORY))
        while self.parts:
            self.leave()

    def enter(self, part: str) -> None:
        """Open the directory *part* of the deepest one; a link is not followed."""
        self.descriptors.append(os.open(part, DIRECTORY, dir_fd=self.here))
        self.parts.append(part)

    def leave(self) -> None:
        """Go back to the parent."""
        os.close(self.descriptors.pop())
        self.parts.pop()

    def close(self) -> None:
        """Close every open directory."""
        while self.descriptors:
            os.close(self.descriptors.pop())


class Descent:
    """Where one path has led so far.

    :ivar trail: the open directories: the last is the place itself, or the parent of a file.
    :ivar file: the name of what is there and is no directory, or an empty string.
    :ivar missing: the names below the trail that do not exist; the last one is the file asked for.
    :ivar status: what is there, or None when something is missing.
    """

    def __init__(self, root: Path, path: str) -> None:
        """Remember what is asked; :meth:`go` does the work."""
        self.path = path
        self.root = os.path.realpath(root)
        self.roots = (self.root, os.path.abspath(root))  # noqa: PTH100  (Path.absolute keeps "..")
        self.trail = Trail()
        self.file = ""
        self.missing: list[str] = []
        self.status: os.stat_result | None = None
        self.links = 0

    @property
    def resolved(self) -> str:
        """The place reached, relative to the root; ``.`` for the root itself."""
        return "/".join((*self.trail.parts, *self.missing, *filter(None, [self.file]))) or "."

    @property
    def name(self) -> str:
        """The name of a file, there or missing, within the deepest open directory."""
        return self.missing[-1] if self.missing else self.file

    def go(self) -> None:
        """Go down the whole path.

        :raises WorkspaceRefused: it leaves the root, loops, or goes through something that is no directory.
        """
        fault = spelling_fault(self.path)
        if fault:
            raise self.refusal(fault, self.path)
        parts: tuple[str, ...] | None = parts_of(self.path)
        if self.path.startswith("/"):
            parts = parts_beneath(self.path, self.roots)
        if parts is None:
            raise self.refusal(ROOT_RULE, absolute_form("/", self.path))
        try:
            self.trail.start(self.root)
        except OSError as error:
            raise self.refusal(f"the workspace root cannot be opened ({error.strerror})", self.root) from None
        pending = list(reversed(parts))
        while pending:
            self.step(pending.pop(), pending)
        if not self.missing and not self.file:
            self.status = os.fstat(self.trail.here)

    def step(self, part: str, pending: list[str]) -> None:
        """Take one step; *pending* holds the parts after it, last first, and gains those of a link."""
        if part == "..":
            self.climb(pending)
            return
        if self.missing:
            self.missing.append(part)
            return
        try:
            status = os.stat(part, dir_fd=self.trail.here, follow_symlinks=False)
        except FileNotFoundError:
            self.missing.append(part)
            return
        if stat.S_ISLNK(status.st_mode):
            self.follow(part, pending)
        elif stat.S_ISDIR(status.st_mode):
            self.descend(part)
        elif pending:
            rule = f"{part!r} is a {kind_of(status.st_mode)}, not a directory"
            raise self.refusal(rule, absolute_form(self.root, *self.trail.parts, part, *reversed(pending)))
        else:
            self.file = part
            self.status = status

    def climb(self, pending: list[str]) -> None:
        """Go back one part, never above the root."""
        if self.missing:
            self.missing.pop()
        elif self.trail.parts:
            self.trail.leave()
        else:
            raise self.refusal(ROOT_RULE, absolute_form(self.root, "..", *reversed(pending)))

    def follow(self, part: str, pending: list[str]) -> None:
        """Put the parts that the link *part* stands for in front of *pending*."""
        self.links += 1
        text = os.readlink(part, dir_fd=self.trail.here)
        if self.links > MAX_LINKS:
            place = absolute_form(self.root, *self.trail.parts, part)
            raise self.refusal(f"more than {MAX_LINKS} links follow one another", place)
        parts: tuple[str, ...] | None = parts_of(text)
        if text.startswith("/"):
            parts = parts_beneath(text, self.roots)
            self.trail.start(self.root)
        if parts is None:
            raise self.refusal(f"{ROOT_RULE}, and the link {part!r} leaves it", absolute_form("/", text))
        pending.extend(reversed(parts))

    def descend(self, part: str) -> None:
        """Stand in the directory *part*; a link put in its place meanwhile is refused."""
        try:
            self.trail.enter(part)
        except OSError as error:
            place = absolute_form(self.root, *self.trail.parts, part)
            raise self.refusal(f"{part!r} cannot be opened ({error.strerror})", place) from None

    def make_parents(self) -> None:
        """Create the missing directories above a missing file, and stand in the last of them."""
        while len(self.missing) > 1:
            with suppress(FileExistsError):
                os.mkdir(self.missing[0], dir_fd=self.trail.here)
            self.descend(self.missing.pop(0))

    def refusal(self, rule: str, resolved: str) -> WorkspaceRefused:
        """Return the refusal of this path for *rule*."""
        return WorkspaceRefused(self.path, rule, resolved, f"Give a path under the workspace root {self.root}.")


@contextmanager
def beneath(root: Path, path: str) -> Iterator[Descent]:
    """Lead to *path* beneath *root*; the directories stay open inside the block only.

    :raises WorkspaceRefused: the path may not be reached, or the file system refused the work in the block.
    """
    descent = Descent(root, path)
    try:
        descent.go()
        yield descent
    except OSError as error:
        rule = f"the file system refused it ({error.strerror or error})"
        remedy = "Check the name, the file's permissions and the space left."
        raise WorkspaceRefused(path, rule, descent.resolved, remedy) from error
    finally:
        descent.trail.close()
