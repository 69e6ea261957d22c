"""What histories are made of: casts, policies, holdings, attempts. Small on purpose, so that things meet."""

from __future__ import annotations

import itertools

import msgspec

from tests.proof.naive import LOAN_CEILINGS, TOOLS, lead
from tests.proof.terms import OPEN_FOCUS, Cast, Focus, Holding, Node

__all__ = ["ATTEMPTS", "CASTS", "LOANS", "NARROWINGS", "PRINCIPALS", "foci"]

EVERYTHING = frozenset({"workflow.*", "workspace.*", "secrets.*", "children.*"})
OWNER = Holding(EVERYTHING, name="everything of the system")
PRINCIPALS = (
    OWNER,
    Holding(EVERYTHING | {"billing.*"}, name="everything, billing too"),
    Holding(EVERYTHING, "write", frozenset({"src"}), "everything, but writing only, under src"),
    Holding(frozenset({"workspace.*", "children.start", "billing.read"}), "external", frozenset({"runs"}), "a little"),
    Holding(EVERYTHING, "read", frozenset(), "reading only"),
)
NARROWINGS: tuple[Holding | None, ...] = (
    None,
    Holding(EVERYTHING | {"billing.*"}, "read", frozenset({"."}), "read only"),
    Holding(EVERYTHING, "write", frozenset({"src"}), "write under src"),
    Holding(frozenset({"workspace.write", "children.start"}), "external", frozenset({"."}), "write, start"),
    Holding(frozenset({"workspace.*", "billing.read"}), "external", frozenset({"."}), "start nobody"),
)
LOANS = (
    Holding(frozenset({"workspace.write"}), "write", frozenset({"src"}), "writing under src"),
    Holding(frozenset({"workspace.read"}), "read", frozenset(), "reading"),
    Holding(frozenset({"workspace.write", "children.start"}), "read", frozenset({"."}), "the right to write and start"),
    Holding(frozenset(), "external", frozenset({"runs/a"}), "external access"),
    Holding(frozenset({"secrets.manage"}), "read", frozenset(), "secrets"),
)


def fitting(role: str, *names: str) -> tuple[str, ...]:
    """Those of the tools that a definition of *role* may have at all."""
    ceiling = LOAN_CEILINGS[role]
    levels = ("read", "write", "external")
    able = {"reviewer": 0, "fixer": 1}.get(role, 2)
    return tuple(
        name
        for name in names
        if levels.index(TOOLS[name].access) <= able
        and (role != "builder" or TOOLS[name].access != "external" or TOOLS[name].asks)
        and (
            not TOOLS[name].authority
            or TOOLS[name].authority.startswith("billing.")
            or TOOLS[name].authority in ceiling.authorities
        )
    )


ALL = ("look", "peek", "read", "put", "jot", "mail", "bill", "rare", "sign", "stall")


def cast(
    root: str, left: str, right: str, *, tools: tuple[str, ...] = ALL, principal: Holding = OWNER, states: bool = False
) -> Cast:
    """A root of one role with two children of others; the left one may start two levels more.

    With *states* the root and the leaf offer their tools by the state of a workflow, and a person can be asked.
    """
    twig = Node("twig", "child", fitting("child", *tools[:4]))
    leaf = Node("leaf", "child", fitting("child", *tools), (twig,), states)
    below = (
        Node("left", left, fitting(left, *tools), (leaf,)),
        Node("right", right, fitting(right, *tools[2:])),
    )
    boss = Node("boss", root, fitting(root, *tools), below, states)
    return Cast(boss, principal, alive=30, approver=True) if states else Cast(boss, principal)


CASTS = (
    cast("builder", "fixer", "reviewer"),
    cast("builder", "child", "fixer", principal=PRINCIPALS[1]),
    cast("builder", "fixer", "fixer", tools=("put", "look", "peek", "jot", "stall")),
    cast("builder", "run", "child", principal=PRINCIPALS[2]),
    cast("builder", "child", "run", tools=ALL[:7], principal=PRINCIPALS[3]),
    cast("builder", "child", "fixer", tools=("look", "put", "jot", "mail", "sign", "stall", "peek"), states=True),
    cast("run", "child", "child", tools=("sign", "put", "look", "jot", "mail", "stall"), states=True),
    cast("reviewer", "child", "child"),
    cast("fixer", "child", "child", tools=("put", "look", "jot", "stall", "peek", "mail")),
    cast("run", "child", "child", principal=PRINCIPALS[1]),
    cast("child", "child", "child", principal=PRINCIPALS[4]),
)

PATHS = ("src/a", "runs/a", "a", "src/../a", "src/../../a", "../a", "/a", "out/a", "./src//b", "src")


def _text(**arguments: object) -> str:
    return msgspec.json.encode(arguments).decode().replace('"#"', "#").replace("#", "%d")


# A tool's name and the argument text; ``%d`` becomes a number of its own for each call, so that none repeats another.
ATTEMPTS: tuple[tuple[str, str], ...] = (
    *((name, _text(n="#")) for name in ("look", "peek", "jot", "mail", "bill", "rare")),
    *((name, _text(path=path, n="#")) for name in ("put", "read") for path in PATHS if lead(path) or name == "put"),
    ("sign", _text(key="a", n="#")),
    ("sign", _text(key="b", n="#")),
    ("sign", _text(n="#")),
    ("put", _text(path=3, n="#")),
    ("put", _text(n="#")),
    ("look", '{"n":%d'),
    ("jot", "[%d]"),
    ("mail", ""),
    ("erase", _text(n="#")),
    ("Look", _text(n="#")),
    ("look ", _text(n="#")),
    ("get_api_spec", _text(tool_name="look-#")),
    ("read_output", _text(handle="out-#")),
    ("read_output", _text(handle=3, offset="#")),
    ("search_output", _text(handle="out-#", text="x")),
    ("ask_person", _text(question="May I? #")),
    ("record_finding", _text(subject="s", message="m #")),
    ("record_fix", _text(path="../a", diff="#")),
    ("child_status", _text(child="nobody-#")),
    ("delegate", _text(child="nobody-#", task="x")),
    ("delegate", _text(child="left", tusk="#")),
)
WORDS = ("put", "look", "jot", "mail", "peek", "delegate", "message_child", "stall", "get_api_spec", "ask_person")


def foci(names: frozenset[str]) -> tuple[Focus, ...]:
    """The policies that may be given to an actor with these tools."""
    some = [name for name in WORDS if name in names]
    denials = [Focus(denied=frozenset({name})) for name in some]
    pairs = [Focus(denied=frozenset({a, b})) for a, b in itertools.pairwise(some)]
    only = [Focus(allowed=frozenset({name})) for name in some]
    mixed = [Focus(frozenset(some[:3]), frozenset(some[:1])), Focus(frozenset(some)), Focus(frozenset())]
    return (OPEN_FOCUS, *denials, *pairs, *only, *mixed)
