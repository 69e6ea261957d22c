"""A second specification of what an actor may do, written from the concepts alone, as plainly as possible.

It shares no code with the kernel. What is held is written out as the set of every single authority and path it covers,
so that "what both allow" is the intersection of two sets and a loan is their union. Nothing is fast, nothing is clever.
"""

from __future__ import annotations

import json
from typing import Any

import attrs

from tests.proof.terms import STATES

__all__ = ["INTRINSIC", "READING", "ROLE_TOOLS", "TOOLS", "Declared", "Held", "fault_of", "held", "lead", "verdict"]

LEVEL = {"read": 0, "write": 1, "external": 2}

# Every authority of the world; ``other`` stands for whatever else a namespace may hold one day.
AUTHORITIES = frozenset({
    "workflow.read", "workflow.run", "workflow.other",
    "workspace.read", "workspace.write", "workspace.other",
    "secrets.manage", "secrets.other",
    "children.start", "children.other",
    "billing.read", "billing.other",
})  # fmt: skip
PRODUCT = frozenset({"billing.read", "billing.other"})
PLACES = frozenset({".", "a", "src", "src/a", "src/b", "runs", "runs/a", "runs/b"})


@attrs.frozen
class Held:
    """What is held, written out: each authority, the highest access, each place that may be written."""

    authorities: frozenset[str]
    access: int
    places: frozenset[str]

    def both(self, other: Held) -> Held:
        """What this and *other* allow."""
        return Held(self.authorities & other.authorities, min(self.access, other.access), self.places & other.places)

    def either(self, other: Held) -> Held:
        """What this or *other* allows."""
        return Held(self.authorities | other.authorities, max(self.access, other.access), self.places | other.places)

    def within(self, other: Held) -> bool:
        """Whether *other* allows all of this."""
        return self.authorities <= other.authorities and self.access <= other.access and self.places <= other.places


def held(authorities: frozenset[str], access: str, roots: frozenset[str]) -> Held:
    """Write out what the patterns and roots cover."""
    names = set()
    for pattern in authorities:
        for name in AUTHORITIES:
            if name == pattern or (pattern.endswith(".*") and name.split(".")[0] == pattern[:-2]):
                names.add(name)
    places = set()
    for root in roots:
        for place in PLACES:
            if root in (".", place) or place.startswith(root + "/"):
                places.add(place)
    return Held(frozenset(names), LEVEL[access], frozenset(places))


def _ceiling(*authorities: str, access: str, roots: tuple[str, ...] = ()) -> Held:
    return held(frozenset(authorities), access, frozenset(roots))


CEILINGS = {
    "builder": _ceiling(
        "workflow.*", "workspace.read", "workspace.write", "secrets.manage", "children.start",
        access="external", roots=(".",),
    ),
    "run": _ceiling(
        "workflow.read", "workflow.run", "workspace.read", "workspace.write", "children.start",
        access="external", roots=("runs",),
    ),
    "reviewer": _ceiling("workflow.read", "workspace.read", "children.start", access="read"),
    "fixer": _ceiling("workflow.read", "workspace.read", "children.start", access="write"),
    "child": _ceiling(
        "workflow.*", "workspace.*", "secrets.*", "children.*", access="external", roots=(".",)
    ),
}  # fmt: skip
# With loans: a fixer may be lent writing anywhere, a run actor other roots.
LOAN_CEILINGS = {
    **CEILINGS,
    "run": attrs.evolve(CEILINGS["run"], places=PLACES),
    "fixer": Held(CEILINGS["fixer"].authorities | {"workspace.write"}, LEVEL["write"], PLACES),
}
ROLE_TOOLS = {
    "builder": (),
    "run": (),
    "reviewer": ("record_finding",),
    "fixer": ("record_fix",),
    "child": ("record_finding", "record_fix"),
}


def capped(role: str, wanted: Held) -> Held:
    """What is left of *wanted* in a role; the authorities of a product pass."""
    met = wanted.both(CEILINGS[role])
    return attrs.evolve(met, authorities=met.authorities | (wanted.authorities & PRODUCT))


@attrs.frozen
class Declared:
    """What a tool says of itself. ``given`` are its arguments by type, those in ``must`` are needed."""

    access: str = "read"
    authority: str = ""
    needs: str = ""
    path: str = ""
    asks: bool = False
    effect: str = ""
    given: tuple[tuple[str, str], ...] = ()
    must: tuple[str, ...] = ()
    closed: bool = False


def _intrinsic(*must: str, more: tuple[tuple[str, str], ...] = (), **declared: Any) -> Declared:
    given = (*((name, "string") for name in must), *more)
    return Declared(given=given, must=must, closed=True, **declared)


CHILDREN = "children.start"
TOOLS = {
    "look": Declared(),
    "peek": Declared(authority="workspace.read"),
    "read": Declared(path="path", given=(("path", "string"),), must=("path",)),
    "put": Declared("write", "workspace.write", path="path", given=(("path", "string"),), must=("path",)),
    "jot": Declared("write"),
    "mail": Declared("external"),
    "bill": Declared(authority="billing.read"),
    "rare": Declared(needs="calendar"),
    "sign": Declared("write", asks=True, given=(("key", "string"),), must=("key",)),
    "stall": Declared("write", effect="key", given=(("key", "string"),), must=("key",)),
    "get_api_spec": Declared(given=(("tool_name", "string"),), closed=True),
    "read_output": _intrinsic("handle", more=(("offset", "integer"),)),
    "search_output": _intrinsic("handle", "text"),
    "ask_person": _intrinsic("question", asks=True),
    "record_finding": _intrinsic("subject", "message"),
    "record_fix": _intrinsic("path", "diff"),
    "delegate": _intrinsic("child", "task", more=(("background", "boolean"),), authority=CHILDREN),
    "list_children": _intrinsic(authority=CHILDREN),
    "child_status": _intrinsic("child", authority=CHILDREN),
    "message_child": _intrinsic("child", "text", authority=CHILDREN),
    "stop_child": _intrinsic("child", authority=CHILDREN),
    "collect_child": _intrinsic("child", authority=CHILDREN),
}
READING = ("get_api_spec", "read_output", "search_output")
WITH_CHILDREN = ("delegate", "list_children", "child_status", "message_child", "stop_child", "collect_child")
INTRINSIC = frozenset({*READING, *WITH_CHILDREN, "ask_person", "record_finding", "record_fix"})
KINDS: dict[str, type] = {"string": str, "integer": int, "boolean": bool}
CONTEXT = frozenset({"principal", "workspace"})


def names_of(role: str, tools: tuple[str, ...], *, parent: bool) -> frozenset[str]:
    """Every tool a definition has: its own, and the intrinsic ones of its kind."""
    return frozenset({*tools, *READING, "ask_person", *ROLE_TOOLS[role], *(WITH_CHILDREN if parent else ())})


def fault_of(tool: Declared, arguments: str) -> bool:
    """Whether the argument text is not what the tool takes."""
    try:
        value = json.loads(arguments)
    except ValueError:
        return True
    if not isinstance(value, dict) or any(name not in value for name in tool.must):
        return True
    kinds = dict(tool.given)
    if tool.closed and not value.keys() <= kinds.keys():
        return True
    return any(not isinstance(value[name], KINDS[kind]) for name, kind in kinds.items() if name in value)


def lead(path: str) -> str | None:
    """Where a path leads inside the workspace; ``None``: out of it. ``out`` is a link that leaves."""
    if path.startswith("/") or not path:
        return None
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and not parts:
            return None
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
        if parts == ["out"]:
            return None
    return "/".join(parts) or "."


@attrs.frozen
class Situation:
    """All that one decision about one actor may depend on.

    ``state`` is where the workflow stands, empty for an actor without states; ``moved``: it has moved since the model
    was asked. ``answer`` is what a person said to this call, ``ask`` where one can be asked, empty where nobody can.
    """

    names: frozenset[str]
    allowed: frozenset[str] | None
    denied: frozenset[str]
    authority: Held
    lost: frozenset[str]
    poor: bool
    full: str
    unresolved: frozenset[tuple[str, str]]
    state: str = ""
    moved: bool = False
    answer: str = ""


def verdict(name: str, arguments: str | None, now: Situation) -> str:  # noqa: C901, PLR0911  # one rule after the other
    """Say ``permitted`` or the code of the first refusal; without *arguments* only what an offer asks."""
    tool = TOOLS.get(name)
    if tool is None or name not in now.names:
        return "unknown_tool"
    if now.state and name not in INTRINSIC and (now.moved or name not in STATES[now.state][0]):
        return "stale_state"
    never_removed = (*READING, "read_skill")
    if name in now.denied or (now.allowed is not None and name not in now.allowed and name not in never_removed):
        return "denied_by_policy"
    if tool.authority and tool.authority not in now.authority.authorities:
        return "grant_expired" if tool.authority in now.lost else "authority_missing"
    if LEVEL[tool.access] > now.authority.access:
        return "access_exceeded"
    if tool.needs and tool.needs not in CONTEXT:
        return "context_missing"
    if arguments is not None:
        if fault_of(tool, arguments):
            return "invalid_arguments"
        if tool.path and _outside(tool, json.loads(arguments)[tool.path], now.authority):
            return "path_outside_workspace"
    if now.poor:
        return "budget_exhausted"
    if name == "delegate" and now.full:
        return now.full
    if arguments is not None and tool.effect and (name, json.loads(arguments)[tool.effect]) in now.unresolved:
        return "unresolved_effect"
    return ANSWERS[now.answer] if tool.asks else "permitted"


ANSWERS = {
    "": "approval_unavailable",
    "ask": "needs_approval",
    "yes": "permitted",
    "no": "approval_rejected",
    "other": "approval_mismatch",
}


def _outside(tool: Declared, path: str, authority: Held) -> bool:
    place = lead(path)
    return place is None or (tool.access != "read" and place not in authority.places)
