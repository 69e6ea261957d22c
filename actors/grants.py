"""Authority: what an actor *may* do at all, and how it narrows.

Rules of this module, all pure:

- An authority is ``namespace.verb``. A *held* authority may end in ``.*`` and then covers its whole namespace.
- Access is ordered: read < write < external.
- A root is a slash-separated path relative to the workspace; ``.`` is all of it. A root covers what lies beneath it.
- A budget figure of ``None`` means "no limit of its own".
- `attenuate` is the greatest lower bound of two grants: never wider than either, in any dimension.
- `lend` is the only operation that adds, and it adds no more than it is told to.
"""

from __future__ import annotations

import enum
import re
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "UNLIMITED",
    "Access",
    "Budget",
    "Grants",
    "at_most",
    "attenuate",
    "covers",
    "lend",
    "normal_root",
    "root_covers",
]

N = TypeVar("N", int, float)
AUTHORITY = re.compile(r"[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)+|[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*\.\*")


class Access(enum.StrEnum):
    """A tool's declared side effect. ``level`` orders them: read 0, write 1, external 2."""

    level: int

    READ = "read"
    WRITE = "write"
    EXTERNAL = "external"


for _level, _access in enumerate(Access):
    _access.level = _level


@attrs.frozen
class Budget:
    """What may be spent: tool calls, tokens, money (in the account's currency) and seconds. ``None``: no limit."""

    calls: int | None = None
    tokens: int | None = None
    money: float | None = None
    seconds: float | None = None

    def __attrs_post_init__(self) -> None:
        for name in ("calls", "tokens", "money", "seconds"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                msg = f"Budget.{name} is {value!r}; give a number of at least 0, or None for no limit"
                raise ValueError(msg)


UNLIMITED = Budget()


def normal_root(root: str) -> str:
    """Return *root* in normal form.

    Raises ValueError for a root that is absolute, climbs out of the workspace, or holds an odd character.
    """
    if root.startswith("/") or "\\" in root or "\0" in root or root.strip() != root or not root:
        msg = f"root {root!r} is not a path relative to the workspace; write it like 'src/app', or '.' for all of it"
        raise ValueError(msg)
    parts = [part for part in root.split("/") if part not in ("", ".")]
    if ".." in parts:
        msg = f"root {root!r} climbs out of the workspace; a root holds no '..'"
        raise ValueError(msg)
    return "/".join(parts) or "."


def _roots(roots: Iterable[str]) -> frozenset[str]:
    if isinstance(roots, str):
        msg = f"roots is the string {roots!r}; give a collection such as ({roots!r},)"
        raise TypeError(msg)
    return frozenset(normal_root(root) for root in roots)


def _authorities(names: Iterable[str]) -> frozenset[str]:
    if isinstance(names, str):
        msg = f"authorities is the string {names!r}; give a collection such as ({names!r},)"
        raise TypeError(msg)
    held = frozenset(names)
    for name in sorted(held):
        if not AUTHORITY.fullmatch(name):
            msg = f"authority {name!r} is not of the form namespace.verb (or namespace.*), in lower case"
            raise ValueError(msg)
    return held


@attrs.frozen
class Grants:
    """What an actor may do: authorities held, highest access, write roots, budget.

    Built once, compared by value, hashable. The default grants nothing but reading without any authority.
    """

    authorities: frozenset[str] = attrs.field(default=frozenset(), converter=_authorities)
    access: Access = attrs.field(default=Access.READ, converter=Access)
    roots: frozenset[str] = attrs.field(default=frozenset(), converter=_roots)
    budget: Budget = UNLIMITED


def covers(held: frozenset[str], needed: str) -> bool:
    """Tell whether *held* includes the authority *needed* (itself, or a namespace above it)."""
    if needed in held:
        return True
    stem = needed.removesuffix(".*") if needed.endswith(".*") else needed.rpartition(".")[0]
    while stem:
        if f"{stem}.*" in held and f"{stem}.*" != needed:
            return True
        stem = stem.rpartition(".")[0]
    return False


def root_covers(root: str, path: str) -> bool:
    """Tell whether *path* is *root* or lies beneath it; both relative to the workspace and in normal form."""
    return root in (".", path) or path.startswith(f"{root}/")


def _meet_authorities(left: frozenset[str], right: frozenset[str]) -> frozenset[str]:
    if left == right:
        return left
    return frozenset({a for a in left if covers(right, a)} | {b for b in right if covers(left, b)})


def _meet_roots(left: frozenset[str], right: frozenset[str]) -> frozenset[str]:
    if left == right:
        return left
    inner = {a for a in left if any(root_covers(b, a) for b in right)}
    return frozenset(inner | {b for b in right if any(root_covers(a, b) for a in left)})


def _least(left: N | None, right: N | None) -> N | None:
    if left is None:
        return right
    return left if right is None else min(left, right)


def _meet_budget(left: Budget, right: Budget) -> Budget:
    if left == right:
        return left
    return Budget(
        calls=_least(left.calls, right.calls),
        tokens=_least(left.tokens, right.tokens),
        money=_least(left.money, right.money),
        seconds=_least(left.seconds, right.seconds),
    )


@lru_cache(maxsize=4096)
def attenuate(left: Grants, right: Grants) -> Grants:
    """Return what both *left* and *right* allow; never wider than either. Commutative, associative, idempotent."""
    if left is right or left == right:
        return left
    return Grants(
        authorities=_meet_authorities(left.authorities, right.authorities),
        access=left.access if left.access.level <= right.access.level else right.access,
        roots=_meet_roots(left.roots, right.roots),
        budget=_meet_budget(left.budget, right.budget),
    )


def lend(base: Grants, extra: Grants) -> Grants:
    """Return *base* with the authorities, access and roots of *extra* added. Budgets are never lent."""
    return Grants(
        authorities=base.authorities | extra.authorities,
        access=base.access if base.access.level >= extra.access.level else extra.access,
        roots=base.roots | extra.roots,
        budget=base.budget,
    )


def at_most(inner: Grants, outer: Grants) -> bool:
    """Tell whether *inner* is no wider than *outer* in authorities, access and roots."""
    return (
        inner.access.level <= outer.access.level
        and all(covers(outer.authorities, name) for name in inner.authorities)
        and all(any(root_covers(root, path) for root in outer.roots) for path in inner.roots)
    )
