"""The reviewer: reads and judges. It can write nothing, and neither can any child it starts."""

from __future__ import annotations

from actors.grants import Access, Grants
from actors.roles.role import Role, RoleSpec

__all__ = ["REVIEWER"]

CEILING = Grants(authorities=("workflow.read", "workspace.read", "children.start"), access=Access.READ)
REVIEWER = RoleSpec(
    role=Role.REVIEWER,
    ceiling=CEILING,
    loan_ceiling=CEILING,
    instructions="You review. Judge only what you have read, and give a reason with every verdict.",
    may_start=frozenset({Role.CHILD}),
    tools=("record_finding",),
)
