"""Focus: what one actor should use in one turn. It is never seen by, and never changes, another actor.

To stop a thing from happening use grants; a policy only directs attention.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from actors.intrinsics import NEVER_REMOVED

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["OPEN", "Policy", "join"]


def _names(names: Iterable[str]) -> frozenset[str]:
    if isinstance(names, str):
        msg = f"expected a collection of tool names, got the string {names!r}"
        raise TypeError(msg)
    held = frozenset(names)
    for name in sorted(held):
        if not name.strip():
            msg = "a policy names a blank tool; name the tools exactly"
            raise ValueError(msg)
        if name != name.strip():
            msg = f"a policy names the tool {name!r} with surrounding whitespace; name the tools exactly"
            raise ValueError(msg)
    return held


@attrs.frozen
class Policy:
    """What one actor should use in one turn. It directs attention; to stop a thing from happening use grants.

    ``allowed`` of ``None`` allows every tool of the definition. ``denied`` wins. ``delegable`` names denied tools that
    the model may be told to hand to a child.
    """

    allowed: frozenset[str] | None = attrs.field(default=None, converter=attrs.converters.optional(_names))
    denied: frozenset[str] = attrs.field(default=frozenset(), converter=_names)
    delegable: frozenset[str] = attrs.field(default=frozenset(), converter=_names)

    @classmethod
    def deny(cls, *names: str, delegable: bool = False) -> Policy:
        """Everything but *names*."""
        return cls(denied=names, delegable=names if delegable else ())

    @classmethod
    def allow(cls, *names: str) -> Policy:
        """Only *names*, and the intrinsic reading tools, which no policy of this kind removes."""
        return cls(allowed=names)

    def permits(self, name: str) -> bool:
        """Tell whether the tool *name* may be used."""
        if name in self.denied:
            return False
        return self.allowed is None or name in self.allowed or name in NEVER_REMOVED

    def names(self) -> frozenset[str]:
        """Every tool the policy speaks of."""
        return self.denied | (self.allowed or frozenset())


OPEN = Policy()


def join(left: Policy, right: Policy) -> Policy:
    """Return the policy of a turn with two causes: what both allow, without what either denies."""
    if left == right:
        return left
    if left.allowed is None or right.allowed is None:
        allowed = left.allowed if right.allowed is None else right.allowed
    else:
        allowed = left.allowed & right.allowed
    return Policy(allowed, left.denied | right.denied, left.delegable & right.delegable)
