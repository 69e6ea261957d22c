"""How a path may be written: pure, before any file system is asked.

A path is parts between forward slashes. Nothing else is ever decoded or expanded. Spellings that other
programs would read as something else (a URL, a home directory, a backslash climb, an escaped ``..``) are
refused here, so that a name is never harmless to us and harmful to the next reader.
"""

from __future__ import annotations

import posixpath
import re

__all__ = ["ROOT_RULE", "absolute_form", "parts_beneath", "parts_of", "printable", "spelling_fault"]

ROOT_RULE = "only paths under the workspace root are allowed"
MAX_PATH = 4096
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
ESCAPED_SEPARATOR = re.compile(r"%(2f|5c|00)", re.IGNORECASE)
ESCAPED_DOT = re.compile(r"%2e", re.IGNORECASE)


def parts_of(path: str) -> tuple[str, ...]:
    """Return the parts of *path* between slashes, without the empty ones and the ``.`` ones."""
    return tuple(part for part in path.split("/") if part not in {"", "."})


def parts_beneath(path: str, roots: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the parts of the absolute *path* below the first of *roots* that holds it, or None.

    Whole parts are compared, in their exact case: ``/ws/app-evil`` and ``/ws/APP`` are not in ``/ws/app``.
    """
    parts = parts_of(path)
    for root in roots:
        head = parts_of(root)
        if parts[: len(head)] == head:
            return parts[len(head) :]
    return None


def absolute_form(root: str, *parts: str) -> str:
    """Return where *parts* would lead from *root*, with every ``..`` taken as written."""
    return posixpath.normpath(posixpath.join(root, *parts))


def spelling_fault(path: str) -> str:
    """Return the rule that the spelling of *path* breaks, or an empty string."""
    parts = parts_of(path)
    rules = (
        (not path.strip(), "a path may not be empty"),
        ("\0" in path, "a path may not hold a NUL character"),
        (len(path) > MAX_PATH, f"a path may not be longer than {MAX_PATH} characters"),
        (not encodable(path), "a path must be text that can be encoded"),
        (URL.match(path), "a URL is not a path"),
        (path.startswith("~") and (path == "~" or len(parts) > 1), "home directories are not expanded"),
        (any("\\" in part and ".." in part.split("\\") for part in parts), "a backslash is not a separator"),
        (any(map(escapes_meaning, parts)), "percent escapes are not decoded"),
    )
    return next((rule for broken, rule in rules if broken), "")


def escapes_meaning(part: str) -> bool:
    """Tell whether *part* would be a separator or climb if its percent escapes were read."""
    if ESCAPED_SEPARATOR.search(part):
        return True
    return part not in {".", ".."} and ESCAPED_DOT.sub(".", part) in {".", ".."}


def encodable(path: str) -> bool:
    """Tell whether *path* has bytes; those that came from undecodable file names have."""
    try:
        path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def printable(name: str) -> str:
    r"""Return *name* with every character that would not print written as an escape (``\n``, ``\udcff``)."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in name)
