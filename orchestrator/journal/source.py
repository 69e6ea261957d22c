"""The records of tool sources: which processes were started, and the tools of a server as they were first listed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from actors.schema import canonical, digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.journal.state import SessionState

__all__ = ["SOURCE_HANDLERS", "Pin", "SourceEnded", "SourceRecord", "SourceRunning", "SourceStarted", "ToolsPinned"]


class Pin(msgspec.Struct, frozen=True, omit_defaults=True):
    """What counts of one tool of a server: its name there, its text, its schema, that of its answers, its hints.

    *schema* and *output* are canonical JSON; *output* is empty where the server tells none.
    """

    name: str
    description: str
    schema: str
    output: str = ""
    hints: tuple[tuple[str, bool], ...] = ()

    @property
    def version(self) -> str:
        """A short digest of everything that counts."""
        return digest(canonical([self.name, self.description, self.schema, self.output, list(self.hints)]))[:12]


class SourceStarted(msgspec.Struct, frozen=True, tag="source_started"):
    """A process with *mark* in its environment is about to be started for *source*; durable before it is."""

    source: str
    mark: str


class SourceRunning(msgspec.Struct, frozen=True, tag="source_running"):
    """The process with *mark* is the one of number *leader*, the first of a group, and was *born* then on this host."""

    mark: str
    leader: int
    born: str


class SourceEnded(msgspec.Struct, frozen=True, tag="source_ended"):
    """Nothing that carries *mark* runs any more; if not *gone*, something of it could not be ended."""

    mark: str
    gone: bool


class ToolsPinned(msgspec.Struct, frozen=True, tag="tools_pinned"):
    """The tools of *source*, reached in the way *key*, as this session has them from now on."""

    key: str
    source: str
    pins: tuple[Pin, ...]


SourceRecord = SourceStarted | SourceRunning | SourceEnded | ToolsPinned
"""What the journal has of sources."""


def _started(state: SessionState, _: str, record: SourceStarted) -> None:
    state.processes.setdefault(record.mark, None)


def _running(state: SessionState, _: str, record: SourceRunning) -> None:
    state.processes[record.mark] = record


def _ended(state: SessionState, _: str, record: SourceEnded) -> None:
    if record.gone:
        state.processes.pop(record.mark, None)


def _pinned(state: SessionState, _: str, record: ToolsPinned) -> None:
    state.pins.setdefault(record.key, record.pins)


SOURCE_HANDLERS: dict[type, Callable[[SessionState, str, Any], None]] = {
    SourceStarted: _started,
    SourceRunning: _running,
    SourceEnded: _ended,
    ToolsPinned: _pinned,
}
