"""Reading one mapping by what is expected at each key."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from orchestrator.workflows.document import Mapping, Node, Scalar, Sequence

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.workflows.fault import FaultLog

__all__ = ["Section", "nearest", "word_of"]

WHOLE = re.compile(r"0|[1-9][0-9]{0,8}")


def word_of(node: Node) -> str:
    """Return what *node* is, in words for a message."""
    if isinstance(node, Scalar):
        return "text" if node.text or not node.plain else "nothing"
    return "a list" if isinstance(node, Sequence) else "a mapping"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a remedy for the unknown *name*: the closest of *known*, or all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"Did you mean {close[0]!r}?"
    return f"Known are: {', '.join(names)}." if names else "None is known here."


class Section:
    """One mapping of a file and what it is called in messages. Every method notes faults and goes on."""

    def __init__(self, node: Mapping, what: str, faults: FaultLog) -> None:
        """Read *node*, which is called *what* in messages (``step 'plan'``)."""
        self.node = node
        self.what = what
        self.faults = faults

    def only(self, *keys: str) -> None:
        """Note every key that is none of *keys*."""
        for name, _ in self.node.pairs:
            if name.text not in keys:
                self.faults.add(name.mark, f"{self.what} has no key {name.text!r}", nearest(name.text, keys))

    def find(self, key: str, expected: str, *, required: bool = False) -> Node | None:
        """Return the value of *key*, and None for no value, noting that it is *required* or empty."""
        node = self.node.get(key)
        if node is None:
            if required:
                self.faults.add(self.node.mark, f"{self.what} lacks the key {key!r}", f"Add '{key}:' with {expected}.")
            return None
        if word_of(node) == "nothing":
            self.faults.add(node.mark, f"{key!r} of {self.what} has no value", f"Give {expected}, or remove the key.")
            return None
        return node

    def scalar(self, key: str, *, required: bool = False) -> Scalar | None:
        """Return the text of *key* with its place. Text that must be there may not be blank."""
        node = self.find(key, "text", required=required)
        if node is None:
            return None
        if not isinstance(node, Scalar):
            self.wrong(node, key, "text")
            return None
        if required and not node.text.strip():
            self.faults.add(node.mark, f"{key!r} of {self.what} is empty", "Write what belongs there.")
            return None
        return node

    def text(self, key: str, *, required: bool = False) -> str:
        """Return the text of *key*, or an empty string."""
        node = self.scalar(key, required=required)
        return node.text if node else ""

    def words(self, key: str) -> tuple[Scalar, ...]:
        """Return the list of texts at *key*, each with its place; one that is there twice is a fault."""
        node = self.find(key, "a list of texts")
        if node is None:
            return ()
        if not isinstance(node, Sequence):
            self.wrong(node, key, "a list, as in [one, two]")
            return ()
        found: dict[str, Scalar] = {}
        for item in node.items:
            if not isinstance(item, Scalar) or not item.text.strip():
                self.wrong(item, f"{key}[]", "text")
            elif item.text in found:
                self.faults.add(item.mark, f"{item.text!r} is twice in {key!r} of {self.what}", "Keep one of them.")
            else:
                found[item.text] = item
        return tuple(found.values())

    def flag(self, key: str) -> bool:
        """Return whether *key* says ``true``; only ``true`` and ``false`` are read."""
        node = self.find(key, "true or false")
        if node is None:
            return False
        if not isinstance(node, Scalar) or not node.plain or node.text not in {"true", "false"}:
            self.wrong(node, key, "true or false, without quotes")
            return False
        return node.text == "true"

    def count(self, key: str, default: int, highest: int) -> int:
        """Return the whole number at *key*, from 1 to *highest*, or *default*."""
        node = self.find(key, "a whole number")
        if node is None:
            return default
        if not isinstance(node, Scalar) or not node.plain or not WHOLE.fullmatch(node.text):
            self.wrong(node, key, "a whole number in plain digits")
            return default
        value = int(node.text)
        if not 1 <= value <= highest:
            self.wrong(node, key, f"a number from 1 to {highest}")
            return default
        return value

    def mapping(self, key: str, *, required: bool = False) -> Mapping | None:
        """Return the mapping at *key*, or None."""
        node = self.find(key, "a mapping", required=required)
        if node is None or isinstance(node, Mapping):
            return node
        self.wrong(node, key, "a mapping of keys to values")
        return None

    def sequence(self, key: str, *, required: bool = False) -> Sequence | None:
        """Return the list at *key*, or None."""
        node = self.find(key, "a list", required=required)
        if node is None or isinstance(node, Sequence):
            return node
        self.wrong(node, key, "a list")
        return None

    def wrong(self, node: Node, key: str, expected: str) -> None:
        """Note that *node* is not what *key* needs."""
        shown = f" {node.text[:40]!r}" if isinstance(node, Scalar) else ""
        self.faults.add(node.mark, f"{key!r} of {self.what} is {word_of(node)}{shown}", f"Give {expected}.")
