"""The run actor: carries out what the builder planned. It writes beneath its run roots only."""

from __future__ import annotations

from actors.grants import Access, Grants
from actors.roles.role import Role, RoleSpec

__all__ = ["RUN"]

CEILING = Grants(
    authorities=("workflow.read", "workflow.run", "workspace.read", "workspace.write", "children.start"),
    access=Access.EXTERNAL,
    roots=("runs",),
)
RUN = RoleSpec(
    role=Role.RUN,
    ceiling=CEILING,
    loan_ceiling=Grants(authorities=CEILING.authorities, access=CEILING.access, roots=(".",)),
    instructions="You run the work you are given, step by step, and report what happened as it happened.",
    may_start=frozenset({Role.CHILD}),
)
