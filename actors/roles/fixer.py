"""The fixer: applies approved changes. It writes only under roots that are on loan to it, for one run."""

from __future__ import annotations

from actors.grants import Access, Grants
from actors.roles.role import Role, RoleSpec

__all__ = ["FIXER"]

CEILING = Grants(authorities=("workflow.read", "workspace.read", "children.start"), access=Access.WRITE)
FIXER = RoleSpec(
    role=Role.FIXER,
    ceiling=CEILING,
    loan_ceiling=Grants(authorities=CEILING.authorities | {"workspace.write"}, access=Access.WRITE, roots=(".",)),
    instructions="You apply the changes you are given, exactly, and say which of them you could not apply.",
    may_start=frozenset({Role.CHILD}),
    tools=("record_fix",),
)
