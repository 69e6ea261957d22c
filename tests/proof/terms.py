"""The plain values that a history is made of. They name no class of the kernel; `stage` makes kernel values of them."""

from __future__ import annotations

import attrs

__all__ = ["OPEN_FOCUS", "STATES", "Cast", "Focus", "Holding", "Node"]

# The states of the workflow: the tools of each, and which tool's success moves it where. The first is the initial one.
STATES: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "draft": (("look", "put", "jot", "sign"), {"jot": "final"}),
    "final": (("look", "put", "sign", "stall"), {"put": "draft"}),
}


@attrs.frozen
class Focus:
    """What an actor should use in a turn: only *allowed* (``None``: all), and nothing that is *denied*."""

    allowed: frozenset[str] | None = None
    denied: frozenset[str] = frozenset()

    def __str__(self) -> str:
        only = [] if self.allowed is None else [f"allow only {', '.join(sorted(self.allowed)) or 'nothing'}"]
        never = [f"deny {', '.join(sorted(self.denied))}"] if self.denied else []
        return "; ".join([*only, *never]) or "no policy"


OPEN_FOCUS = Focus()


@attrs.frozen
class Holding:
    """What may be done: authorities as they are written (``workspace.*``), access by its name, roots, tool calls."""

    authorities: frozenset[str] = frozenset()
    access: str = "external"
    roots: frozenset[str] = frozenset({"."})
    name: str = attrs.field(default="", eq=False)
    calls: int | None = attrs.field(default=None, kw_only=True)

    def __str__(self) -> str:
        return self.name


@attrs.frozen
class Node:
    """One definition of a cast: its name, its role, its tools, the definitions it may start.

    *staged* ones offer their tools by the state of the workflow (`STATES`).
    """

    name: str
    role: str
    tools: tuple[str, ...]
    children: tuple[Node, ...] = ()
    staged: bool = False

    def __str__(self) -> str:
        below = f", may start {' and '.join(str(child) for child in self.children)}" if self.children else ""
        states = "; by states" if self.staged else ""
        return f"{self.name} ({self.role}{states}; {', '.join(self.tools) or 'no tools'}{below})"


@attrs.frozen
class Cast:
    """Who plays a history: the root's definition, what the principal holds, how deep and how wide the tree may be."""

    root: Node
    principal: Holding
    depth: int = 2
    alive: int = 3
    approver: bool = False

    def __str__(self) -> str:
        person = "; a person can be asked" if self.approver else ""
        return f"{self.root}; the principal holds {self.principal}{person}"
