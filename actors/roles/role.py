"""What a role is: a ceiling of authority, base instructions, what it may start, and the shape of its result.

Rules:

- Four namespaces of authority belong to the system: ``workflow``, ``workspace``, ``secrets``, ``children``. In these a
  role's ceiling decides. Any other namespace belongs to a product: it passes a role, and only the principal grants it.
- `cap` narrows to the ceiling; `loan_ceiling` is the most a role can hold together with what is lent to it.
"""

from __future__ import annotations

import enum
from functools import lru_cache
from typing import TYPE_CHECKING

import attrs

from actors.grants import Access, Grants, attenuate, covers
from actors.tools import Approval

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["RESERVED_NAMESPACES", "Role", "RoleSpec", "cap"]

RESERVED_NAMESPACES = frozenset({"workflow", "workspace", "secrets", "children"})


class Role(enum.StrEnum):
    """The five kinds of actor."""

    BUILDER = "builder"
    RUN = "run"
    REVIEWER = "reviewer"
    FIXER = "fixer"
    CHILD = "child"


@attrs.frozen
class RoleSpec:
    """A role's ceiling (without loans), its ceiling with loans, its text, the roles it may start, its own tools.

    A role that ``asks_before_external`` has no tool of access ``external`` that runs without a person's approval.
    """

    role: Role
    ceiling: Grants
    loan_ceiling: Grants
    instructions: str
    may_start: frozenset[Role]
    tools: tuple[str, ...] = ()
    asks_before_external: bool = False

    def faults(self, access: Access, approval: Approval, authorities: Iterable[str]) -> Iterator[str]:
        """Yield why an actor of this role can have no tool of these rights, as the end of a sentence about it."""
        role = self.role.value
        if access.level > self.ceiling.access.level:
            yield (
                f"has access {access.value!r}, above what a {role} may do ({self.ceiling.access.value!r}); "
                "give it to another role"
            )
        if self.asks_before_external and access is Access.EXTERNAL and approval is Approval.NEVER:
            yield (
                f"reaches outside without approval, which a {role} may not do; "
                "give it approval 'each_call', or give it to a run actor"
            )
        for authority in sorted(authorities):
            reserved = authority.partition(".")[0] in RESERVED_NAMESPACES
            if reserved and not covers(self.loan_ceiling.authorities, authority):
                yield f"requires {authority!r}, which a {role} can never hold"


@lru_cache(maxsize=4096)
def cap(grants: Grants, ceiling: Grants) -> Grants:
    """Return *grants* narrowed to a role's *ceiling*; authorities of product namespaces pass."""
    product = frozenset(name for name in grants.authorities if name.partition(".")[0] not in RESERVED_NAMESPACES)
    met = attenuate(grants, ceiling)
    if not product:
        return met
    return attrs.evolve(met, authorities=met.authorities | product)
