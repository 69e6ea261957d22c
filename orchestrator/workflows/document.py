"""YAML text as a tree of nodes that know where they stand.

A scalar stays the text that was written: what it means is for the reader who knows what is expected there,
so ``no``, ``1_000`` and ``2024-01-01`` are never turned into something else. Anchors, aliases, tags, second
documents, deep nesting and duplicate keys are faults.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec
import yaml

from orchestrator.workflows.fault import FaultLog, Mark

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MAX_BYTES", "Mapping", "Node", "Scalar", "Sequence", "mark_at", "read_document"]

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 32
STRING_TAG = "tag:yaml.org,2002:str"


class Scalar(msgspec.Struct, frozen=True):
    """Text. *plain* tells that it was written without quotes; *end* is the index behind it in the source."""

    mark: Mark
    text: str
    plain: bool
    begin: int = 0
    end: int = 0


class Sequence(msgspec.Struct, frozen=True):
    """Nodes in order."""

    mark: Mark
    items: tuple[Node, ...]


class Mapping(msgspec.Struct, frozen=True):
    """Pairs in order; a key that was written twice is here once, with its first value."""

    mark: Mark
    pairs: tuple[tuple[Scalar, Node], ...]

    def get(self, key: str) -> Node | None:
        """Return the value of *key*, or None."""
        return next((value for name, value in self.pairs if name.text == key), None)


Node: TypeAlias = Scalar | Sequence | Mapping


class Unreadable(Exception):
    """The text stops being one YAML document here; nothing after it can be judged."""

    def __init__(self, mark: Mark, message: str, remedy: str) -> None:
        """Keep the parts of the fault."""
        super().__init__(mark, message, remedy)
        self.mark = mark
        self.message = message
        self.remedy = remedy


def read_document(text: str, place: str, faults: FaultLog) -> Node | None:
    """Return the one document in *text*, or None when it cannot be read; what is wrong goes to *faults*."""
    if len(text) > MAX_BYTES:
        faults.add(Mark(place, 1, 1), f"the file is longer than {MAX_BYTES} characters", "Split it into agent files.")
        return None
    composer = Composer(text, place, faults)
    try:
        return composer.document()
    except Unreadable as end:
        faults.add(end.mark, end.message, end.remedy)
    except yaml.MarkedYAMLError as error:
        composer.tell(error)
    except yaml.reader.ReaderError as error:
        mark = mark_at(text, place, error.position)
        faults.add(mark, f"the character U+{ord(text[error.position]):04X} may not stand in YAML", "Remove it.")
    except (ValueError, OverflowError, yaml.YAMLError):
        faults.add(composer.last, "behind this stands something that YAML cannot hold", "Check escapes and directives.")
    return None


def mark_at(text: str, place: str, index: int) -> Mark:
    """Return the place of the character *index* of *text*."""
    return Mark(place, text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index))


class Composer:
    """Builds the tree from the parser's events; depth is bounded before anything recurses."""

    def __init__(self, text: str, place: str, faults: FaultLog) -> None:
        """Prepare to read *text*."""
        self.text = text
        self.place = place
        self.faults = faults
        self.events: Iterator[yaml.Event] = yaml.parse(text, Loader=yaml.BaseLoader)
        self.last = Mark(place, 1, 1)

    def next(self) -> yaml.Event:
        """Return the next event and remember where it began."""
        event = next(self.events)
        self.last = self.mark(event)
        return event

    def mark(self, event: yaml.Event) -> Mark:
        """Return where *event* begins."""
        at = event.start_mark
        return Mark(self.place, at.line + 1, at.column + 1) if at else self.last

    def document(self) -> Node:
        """Return the root node and make sure that nothing follows it."""
        self.next()
        if isinstance(self.next(), yaml.StreamEndEvent):
            raise Unreadable(Mark(self.place, 1, 1), "the file is empty", "Write a mapping with its keys.")
        node = self.node(self.next(), 1)
        self.next()
        after = self.next()
        if not isinstance(after, yaml.StreamEndEvent):
            raise Unreadable(self.mark(after), "a second document begins here", "Keep one document in a file.")
        return node

    def node(self, event: yaml.Event, depth: int) -> Node:
        """Return the node that *event* begins."""
        mark = self.mark(event)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise Unreadable(mark, "anchors and aliases are not accepted", "Write the value out.")
        if depth > MAX_DEPTH:
            raise Unreadable(mark, f"the nesting is deeper than {MAX_DEPTH}", "Flatten it.")
        tag = getattr(event, "tag", None)
        if tag not in {None, STRING_TAG, "!"} or (tag and not isinstance(event, yaml.ScalarEvent)):
            self.faults.add(mark, f"the tag {tag!r} is not accepted", "Remove it; quote text that must stay text.")
        if isinstance(event, yaml.ScalarEvent):
            return self.scalar(event, mark)
        if isinstance(event, yaml.SequenceStartEvent):
            return Sequence(mark, tuple(self.items(depth)))
        return Mapping(mark, tuple(self.pairs(depth)))

    def scalar(self, event: yaml.ScalarEvent, mark: Mark) -> Scalar:
        """Return a scalar; half of a surrogate pair in it is a fault, since no file could hold it."""
        if any("\ud800" <= char <= "\udfff" for char in event.value):
            self.faults.add(mark, "the text holds half of a character pair", "Write the whole character.")
        plain = event.style is None and event.tag is None
        begin, end = (at.index if at else 0 for at in (event.start_mark, event.end_mark))
        return Scalar(mark, event.value, plain, begin, end)

    def items(self, depth: int) -> Iterator[Node]:
        """Yield the nodes of a sequence."""
        while not isinstance(event := self.next(), yaml.SequenceEndEvent):
            yield self.node(event, depth + 1)

    def pairs(self, depth: int) -> Iterator[tuple[Scalar, Node]]:
        """Yield the pairs of a mapping, without those whose key is no text or was there before."""
        seen: dict[str, Mark] = {}
        while not isinstance(event := self.next(), yaml.MappingEndEvent):
            key = self.node(event, depth + 1)
            value = self.node(self.next(), depth + 1)
            if not isinstance(key, Scalar):
                self.faults.add(key.mark, "a key must be text", "Quote it if it is meant as text.")
            elif key.text in seen:
                first = seen[key.text].line
                self.faults.add(key.mark, f"the key {key.text!r} was given on line {first}", "Keep one of them.")
            else:
                seen[key.text] = key.mark
                yield key, value

    def tell(self, error: yaml.MarkedYAMLError) -> None:
        """Report what the parser stumbled over."""
        at = error.problem_mark or error.context_mark
        mark = Mark(self.place, at.line + 1, at.column + 1) if at else self.last
        if at and self.text[at.index : at.index + 1] == "\t":
            self.faults.add(mark, "a tab stands where YAML wants spaces", "Indent with spaces.")
            return
        context = f" {error.context}" if error.context else ""
        message = f"this is not YAML: {error.problem}{context}"
        self.faults.add(mark, message, "Check indentation, brackets, and quote text that holds ': ' or ' #'.")
