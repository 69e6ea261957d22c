"""The builder: plans, and starts the others. It may do anything its principal may, external effects with approval.

A definition that gives a builder an external tool without approval is refused.
"""

from __future__ import annotations

from actors.grants import Access, Grants
from actors.roles.role import Role, RoleSpec

__all__ = ["BUILDER"]

CEILING = Grants(
    authorities=("workflow.*", "workspace.read", "workspace.write", "secrets.manage", "children.start"),
    access=Access.EXTERNAL,
    roots=(".",),
)
BUILDER = RoleSpec(
    role=Role.BUILDER,
    ceiling=CEILING,
    loan_ceiling=CEILING,
    asks_before_external=True,
    instructions="You are the builder. Understand the goal, plan, and hand each part to the agent made for it.",
    may_start=frozenset({Role.RUN, Role.REVIEWER, Role.FIXER, Role.CHILD}),
)
