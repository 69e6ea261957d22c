"""What is audited, as values: the tools, who calls them, and with which authority and context."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from actors.definition import AgentDefinition
from actors.grants import Grants
from actors.states import WorkflowState
from actors.tools import Tool
from orchestrator.focus import OPEN, Policy

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Annotations", "Caller", "Declared", "NamedSet", "Situation", "Subject"]


def _names(names: Iterable[str]) -> frozenset[str]:
    return frozenset(names)


@attrs.frozen
class Annotations:
    """What a tool's source says that it really does; ``None`` where it says nothing."""

    read_only: bool | None = None
    destructive: bool | None = None
    open_world: bool | None = None


@attrs.frozen
class Declared:
    """A tool of the catalog.

    ``definition_bytes`` is the size that the owners of a definition which is not public have measured, or ``None`` to
    measure the encoding that is sent. ``connected`` tells whether there is a function behind the tool.
    """

    tool: Tool
    annotations: Annotations = attrs.field(factory=Annotations)
    definition_bytes: int | None = None
    connected: bool = True


@attrs.frozen
class Situation:
    """What a caller has in some of its sessions and lacks in a plain one, such as a paired computer."""

    name: str
    grants: Grants = attrs.field(factory=Grants)
    context: frozenset[str] = attrs.field(default=frozenset(), converter=_names)


@attrs.frozen
class Caller:
    """One row of the audit: a definition with the authority and the context it is called with.

    ``approver`` tells whether a person can be asked, ``typed`` whether a person types into it.
    """

    name: str
    definition: AgentDefinition
    grants: Grants
    context: frozenset[str] = attrs.field(default=frozenset(), converter=_names)
    policy: Policy = OPEN
    approver: bool = attrs.field(default=False, kw_only=True)
    typed: bool = attrs.field(default=False, kw_only=True)
    situations: tuple[Situation, ...] = attrs.field(default=(), kw_only=True)


@attrs.frozen
class NamedSet:
    """Tools that are offered together under a name, such as what a selector was seen to pick for an intent."""

    name: str
    tools: tuple[str, ...]


@attrs.frozen
class Subject:
    """A catalog with its callers. The first of ``states`` is where a workflow begins; without any there are none."""

    name: str
    tools: tuple[Declared, ...]
    callers: tuple[Caller, ...]
    states: tuple[WorkflowState, ...] = ()
    selections: tuple[NamedSet, ...] = ()
