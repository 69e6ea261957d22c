"""The five roles, side by side."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from actors.roles.builder import BUILDER
from actors.roles.child import CHILD
from actors.roles.fixer import FIXER
from actors.roles.reviewer import REVIEWER
from actors.roles.run import RUN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from actors.roles.role import Role, RoleSpec

__all__ = ["ROLES"]

ROLES: Mapping[Role, RoleSpec] = MappingProxyType({spec.role: spec for spec in (BUILDER, RUN, REVIEWER, FIXER, CHILD)})
