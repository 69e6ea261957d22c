"""The child: does one bounded task with a part of its parent's authority."""

from __future__ import annotations

from actors.grants import Access, Grants
from actors.roles.role import Role, RoleSpec

__all__ = ["CHILD"]

CEILING = Grants(
    authorities=("workflow.*", "workspace.*", "secrets.*", "children.*"), access=Access.EXTERNAL, roots=(".",)
)
CHILD = RoleSpec(
    role=Role.CHILD,
    ceiling=CEILING,
    loan_ceiling=CEILING,
    instructions="You do the one task you are given and answer with its result.",
    may_start=frozenset({Role.CHILD}),
    tools=("record_finding", "record_fix"),
)
