r"""Unified diffs as values: read, apply, reverse, make. Pure.

Rules. One diff changes one file. Lines end at ``\n`` and are compared whole, their ``\r`` included: a hunk
applies where its old lines stand exactly, at the stated place, or else at the only other place within
``MAX_OFFSET`` lines; never where they are merely alike. What the diff does not speak of stays: a diff
written without ``\r`` for a file whose every line has it, or without the "no newline" mark for a file that
ends without one, is read as keeping them.
"""

from __future__ import annotations

import difflib
import re

import msgspec

__all__ = ["NO_FILE", "Hunk", "Patch", "PatchError", "apply", "apply_patch", "make", "parse", "reverse"]

NO_FILE = "/dev/null"
MARK = "\\ No newline at end of file"
MAX_OFFSET = 1000
HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
NOT_TEXT = ("rename ", "copy ", "similarity ", "GIT binary patch", "Binary files ")


class PatchError(Exception):
    """A diff that was not applied; the text is as it was.

    :ivar place: the line of the diff, counted from 1.
    :ivar fault: what is wrong there.
    :ivar remedy: what would make it apply.
    """

    def __init__(self, place: int, fault: str, remedy: str) -> None:
        """Keep the three parts as fields; the text is made from them."""
        super().__init__(place, fault, remedy)
        self.place = place
        self.fault = fault
        self.remedy = remedy

    def __str__(self) -> str:
        """Return place, fault and remedy on one line."""
        return f"diff line {self.place}: {self.fault}. {self.remedy}"


class Hunk(msgspec.Struct, frozen=True):
    """One change: *old* lines, with their ends, to be found at line *start* and replaced by *new*.

    :ivar start: counted from 0; for a hunk without old lines, the index to insert at.
    :ivar place: the line of the diff where its header stands.
    """

    start: int
    new_start: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    place: int


class Patch(msgspec.Struct, frozen=True):
    """One file's changes. A name of ``/dev/null`` says that the file is created or deleted."""

    old_name: str
    new_name: str
    hunks: tuple[Hunk, ...]
    marked: bool

    @property
    def creates(self) -> bool:
        """Whether the file must not exist before."""
        return self.old_name == NO_FILE

    @property
    def deletes(self) -> bool:
        """Whether the file is gone afterwards."""
        return self.new_name == NO_FILE


def split(text: str) -> list[str]:
    r"""Return the lines of *text*, each with its ``\n``; only the last can lack one."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def make(original: str, changed: str, path: str) -> str:
    """Return the diff that turns *original* into *changed*, or an empty string when they are equal.

    :raises PatchError: *path* holds a character that a diff header cannot.
    """
    if not path.isprintable():
        raise PatchError(1, f"the path {path!r} holds a character that does not print", "Rename the file.")
    pieces = difflib.unified_diff(split(original), split(changed), f"a/{path}", f"b/{path}")
    return "".join(piece if piece.endswith("\n") else f"{piece}\n{MARK}\n" for piece in pieces)


def apply(original: str, diff: str) -> str:
    """Return *original* changed as *diff* says; an empty diff changes nothing.

    :raises PatchError: the diff cannot be read, or does not fit exactly.
    """
    return apply_patch(original, parse(diff)) if diff else original


def parse(diff: str) -> Patch:
    """Read *diff*, which must change exactly one file.

    :raises PatchError: at the first line that is not as a unified diff has it.
    """
    lines = diff.split("\n")
    if lines[-1] == "":
        lines.pop()
    top = next((at for at, line in enumerate(lines) if line.startswith("--- ")), None)
    for at, line in enumerate(lines[:top]):
        if line.startswith(NOT_TEXT):
            raise PatchError(at + 1, f"{line.split()[0]} is not a change of text", "Change one text file at a time.")
    if top is None or not lines[top + 1 : top + 2] or not lines[top + 1].startswith("+++ "):
        remedy = "Begin with '--- a/PATH', then '+++ b/PATH', then '@@ -start,count +start,count @@'."
        raise PatchError(1 if top is None else top + 2, "the two header lines are missing", remedy)
    if lines[top].endswith("\r"):
        lines = [line.removesuffix("\r") for line in lines]
    reader = HunkReader(lines, top + 2)
    hunks = reader.hunks()
    return Patch(header_name(lines[top]), header_name(lines[top + 1]), hunks, reader.marked)


def header_name(line: str) -> str:
    """Return the file name in a header line, without the time that may follow a tab."""
    return line[4:].partition("\t")[0].strip()


class HunkReader:
    """Reads hunks from the lines of a diff, by the counts in their headers."""

    def __init__(self, lines: list[str], at: int) -> None:
        """Begin at index *at*, which is behind the two header lines."""
        self.lines = lines
        self.at = at
        self.marked = False

    def hunks(self) -> tuple[Hunk, ...]:
        """Return every hunk up to the end; there must be one."""
        found: list[Hunk] = []
        while self.at < len(self.lines) and not self.only_blanks_left():
            found.append(self.hunk())
        if not found:
            raise PatchError(self.at, "there is no hunk", "Add '@@ -start,count +start,count @@' and its lines.")
        return tuple(found)

    def only_blanks_left(self) -> bool:
        """Tell whether nothing but empty lines follows."""
        return not any(self.lines[self.at :])

    def hunk(self) -> Hunk:
        """Read one header and the lines that it counts."""
        place = self.at + 1
        header = HUNK.match(self.lines[self.at])
        if header is None:
            raise PatchError(place, self.stray_fault(), "Write '@@ -start,count +start,count @@' before changed lines.")
        self.at += 1
        start, new_start = int(header[1]), int(header[3])
        olds = int(header[2]) if header[2] is not None else 1
        news = int(header[4]) if header[4] is not None else 1
        old, new = self.body(place, olds, news)
        return Hunk(start - bool(olds), new_start - bool(news), old, new, place)

    def stray_fault(self) -> str:
        """Say what a line is that stands where a hunk header belongs."""
        line = self.lines[self.at]
        if line.startswith(("--- ", "diff ")):
            return "a second file begins here, and one diff changes one file"
        if line[:1] in {" ", "+", "-"}:
            return "there are more lines than the hunk's header counts"
        return "this is not a hunk header"

    def body(self, place: int, olds: int, news: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return *olds* old and *news* new lines, each with its end."""
        old: list[str] = []
        new: list[str] = []
        while len(old) < olds or len(new) < news:
            line = self.lines[self.at] if self.at < len(self.lines) else "@@"
            sides = {" ": (old, new), "": (old, new), "\r": (old, new), "-": (old,), "+": (new,)}.get(line[:1])
            if sides is None or len(old) > olds or len(new) > news:
                break
            self.at += 1
            text = f"{line[1:] if line[:1] in {' ', '-', '+'} else line}\n"
            if self.at < len(self.lines) and self.lines[self.at].startswith("\\"):
                text = text.removesuffix("\n")
                self.marked = True
                self.at += 1
            for side in sides:
                side.append(text)
        if len(old) != olds or len(new) != news:
            fault = f"the header counts {olds} old and {news} new lines, and {len(old)} and {len(new)} stand below it"
            raise PatchError(place, fault, "Correct the counts or the lines.")
        return tuple(old), tuple(new)


def reverse(patch: Patch) -> Patch:
    """Return the patch that undoes *patch*."""
    hunks = tuple(Hunk(hunk.new_start, hunk.start, hunk.new, hunk.old, hunk.place) for hunk in patch.hunks)
    return Patch(patch.new_name, patch.old_name, hunks, patch.marked)


def apply_patch(original: str, patch: Patch) -> str:
    """Return *original* with every hunk of *patch* applied.

    :raises PatchError: a hunk's old lines are not there, or stand at several places; or the patch creates a
        file that has text, or deletes one and leaves text.
    """
    if patch.creates and original:
        raise PatchError(1, "the diff creates a file that is already there", "Name the file in the '---' line.")
    kept_open = bool(original) and not original.endswith("\n") and not patch.marked
    ending = line_end(original)
    lines = split(original + ending if kept_open else original)
    hunks = patch.hunks
    if ending == "\r\n" and not speaks_of_returns(patch):
        hunks = tuple(with_returns(hunk) for hunk in hunks)
    result: list[str] = []
    end = shift = 0
    for hunk in hunks:
        at = locate(lines, hunk, end, hunk.start + shift)
        shift = at - hunk.start
        result += lines[end:at]
        result += hunk.new
        end = at + len(hunk.old)
    result += lines[end:]
    if not all(line.endswith("\n") for line in result[:-1]):
        fault = "a line marked as having no newline would not be the last of the file"
        raise PatchError(patch.hunks[-1].place, fault, "Leave the mark out, or put the line at the end.")
    text = "".join(result)
    if patch.deletes and text:
        raise PatchError(1, "the diff deletes the file and leaves lines in it", "Remove every line, or name the file.")
    return text.removesuffix(ending) if kept_open else text


def line_end(text: str) -> str:
    r"""Return ``\r\n`` when every line of *text* that ends, ends so, and ``\n`` otherwise."""
    return "\r\n" if text.count("\n") == text.count("\r\n") > 0 else "\n"


def speaks_of_returns(patch: Patch) -> bool:
    r"""Tell whether *patch* writes ``\r`` itself."""
    return any("\r" in line for hunk in patch.hunks for line in (*hunk.old, *hunk.new))


def with_returns(hunk: Hunk) -> Hunk:
    r"""Return *hunk* with ``\r\n`` where it has ``\n``."""
    old = tuple(line.replace("\n", "\r\n") for line in hunk.old)
    new = tuple(line.replace("\n", "\r\n") for line in hunk.new)
    return msgspec.structs.replace(hunk, old=old, new=new)


def locate(lines: list[str], hunk: Hunk, floor: int, stated: int) -> int:
    """Return the index in *lines*, not before *floor*, where the old lines of *hunk* stand."""
    old = list(hunk.old)
    if floor <= stated <= len(lines) and lines[stated : stated + len(old)] == old:
        return stated
    low = max(floor, stated - MAX_OFFSET)
    high = min(len(lines) - len(old), stated + MAX_OFFSET)
    found = [at for at in range(low, high + 1) if lines[at : at + len(old)] == old] if old else []
    if len(found) == 1:
        return found[0]
    if found:
        places = ", ".join(str(at + 1) for at in found[:5])
        fault = f"its old lines are not at line {stated + 1} but at several others ({places})"
        raise PatchError(hunk.place, fault, "Correct the line number or add context.")
    raise PatchError(hunk.place, mismatch(lines, hunk, stated), "Read the file again and make the diff from it.")


def mismatch(lines: list[str], hunk: Hunk, stated: int) -> str:
    """Say where the old lines of *hunk* first differ from *lines* at the stated place."""
    for number, expected in enumerate(hunk.old, start=stated):
        actual = lines[number] if 0 <= number < len(lines) else None
        if actual != expected:
            there = "the file has ended" if actual is None else f"the file has {actual!r}"
            return f"its old lines are not in the file: at line {number + 1} it expects {expected!r}, {there}"
    return f"line {stated} is not in what is left of the file, which has {len(lines)} lines"
