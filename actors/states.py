"""The states of a workflow: which tools each offers, and which tool's success moves it where. Pure.

The state belongs to the session and to the host: a model may ask, a declared move or the host decides, and no argument
of any call can name a state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["StateChart", "WorkflowState"]


def _names(names: Iterable[str]) -> frozenset[str]:
    if isinstance(names, str):
        msg = f"expected a collection of tool names, got the string {names!r}; write ({names!r},)"
        raise TypeError(msg)
    return frozenset(names)


def _moves(moves: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((tool, state) for tool, state in moves)


@attrs.frozen
class WorkflowState:
    """One state: its *tools*, and for each tool that *moves* the workflow, the state it moves to when it succeeds."""

    name: str
    tools: frozenset[str] = attrs.field(default=frozenset(), converter=_names)
    moves: tuple[tuple[str, str], ...] = attrs.field(default=(), converter=_moves)


def _states(states: Iterable[WorkflowState]) -> tuple[WorkflowState, ...]:
    return tuple(states)


@attrs.frozen
class StateChart:
    """Every state of a workflow; the first is where it begins."""

    states: tuple[WorkflowState, ...] = attrs.field(converter=_states)

    @property
    def initial(self) -> str:
        """The state in which a session begins."""
        return self.states[0].name

    def get(self, name: str) -> WorkflowState | None:
        """Return the state *name*, or ``None``."""
        return next((state for state in self.states if state.name == name), None)

    def named(self) -> frozenset[str]:
        """Return every tool that a state names."""
        return frozenset(name for state in self.states for name in state.tools)

    def faults(self, known: frozenset[str]) -> Iterator[str]:
        """Yield what is wrong with the chart; *known* are the tools of its definition."""
        names = [state.name for state in self.states]
        if not names:
            yield "the state chart has no states"
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"duplicate state {name!r}"
        for state in self.states:
            if not state.name.strip() or state.name != state.name.strip():
                yield f"state name {state.name!r} is blank or has blanks around it"
            if "#" in state.name:
                yield f"state name {state.name!r} holds a '#', which separates a state from its revision"
            for tool in sorted(state.tools - known):
                yield f"state {state.name!r} names the tool {tool!r}, which the definition does not have"
            moved = [tool for tool, _ in state.moves]
            for tool in sorted({tool for tool in moved if moved.count(tool) > 1}):
                yield f"state {state.name!r} is moved twice by {tool!r}"
            for tool, target in state.moves:
                if tool not in state.tools:
                    yield f"state {state.name!r} is moved by {tool!r}, which is none of its tools"
                if target not in names:
                    yield f"state {state.name!r} moves to {target!r}, which is no state"
