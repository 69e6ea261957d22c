"""The callers of a product file: which agent, with which authority and context, in which situations.

A caller: ``agent``, ``authorities``, ``access`` (default: the highest its role may hold), ``context``, ``approver``
(a person can be asked), ``typed`` (a person types into it), ``situations`` (name → further ``authorities``,
``access`` and ``context`` that it has in some of its sessions). The field ``principal`` is always present.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from actors.grants import Access, Grants
from actors.roles import ROLES
from actors.roles.role import cap
from orchestrator.catalog.subject import Caller, Situation
from orchestrator.runtime import OWNER
from orchestrator.workflows.document import Mapping
from orchestrator.workflows.draft import check_name
from orchestrator.workflows.rights import read_authorities, read_one_of
from orchestrator.workflows.section import Section, nearest, word_of

if TYPE_CHECKING:
    from actors.definition import AgentDefinition
    from orchestrator.workflows.document import Node, Scalar

__all__ = ["ALWAYS_PRESENT", "default_callers", "read_callers", "read_fields"]

CALLER_KEYS = ("agent", "authorities", "access", "context", "approver", "typed", "situations")
SITUATION_KEYS = ("authorities", "access", "context")
FIELD = re.compile(r"[a-z][a-z0-9_]{0,63}")
ALWAYS_PRESENT = frozenset({"principal"})


def default_callers(agents: tuple[AgentDefinition, ...]) -> tuple[Caller, ...]:
    """Return one caller for each agent, with what the person at the machine may do within the agent's role."""
    return tuple(
        Caller(agent.name, agent, cap(OWNER, ROLES[agent.role].ceiling), ALWAYS_PRESENT | {"workspace"})
        for agent in agents
    )


def read_callers(section: Section, agents: dict[str, AgentDefinition], named: frozenset[str]) -> tuple[Caller, ...]:
    """Read the mapping ``callers`` of a product. *agents* are those that could be built, *named* all there are."""
    body = section.mapping("callers")
    if body is None:
        return ()
    if not body.pairs:
        section.faults.add(body.mark, "'callers' is empty", "Name a caller, or remove the key.")
    read = (_caller(name, node, section, agents, named) for name, node in body.pairs)
    return tuple(caller for caller in read if caller is not None)


def _caller(
    name: Scalar, node: Node, outer: Section, agents: dict[str, AgentDefinition], named: frozenset[str]
) -> Caller | None:
    faults = outer.faults
    check_name(name, faults)
    if not isinstance(node, Mapping):
        faults.add(node.mark, f"caller {name.text!r} is {word_of(node)}", "Write a mapping with 'agent:'.")
        return None
    section = Section(node, f"caller {name.text!r}", faults)
    section.only(*CALLER_KEYS)
    agent = section.scalar("agent", required=True)
    if agent is not None and agent.text not in named:
        faults.add(agent.mark, f"there is no agent {agent.text!r}", nearest(agent.text, named))
    authorities, context = read_authorities(section, held=True), read_fields(section, "context")
    access = read_one_of(section, "access", Access) or Access.EXTERNAL
    approver, typed = section.flag("approver"), section.flag("typed")
    situations = _situations(section)
    definition = agents.get(agent.text) if agent is not None else None
    if definition is None:
        return None
    ceiling = ROLES[definition.role].ceiling
    return Caller(
        name.text,
        definition,
        cap(Grants(authorities, access, (".",)), ceiling),
        context | ALWAYS_PRESENT,
        approver=approver,
        typed=typed,
        situations=tuple(
            Situation(each.name, cap(each.grants, ROLES[definition.role].loan_ceiling), each.context)
            for each in situations
        ),
    )


def _situations(section: Section) -> tuple[Situation, ...]:
    body = section.mapping("situations")
    found = []
    for name, node in body.pairs if body is not None else ():
        check_name(name, section.faults)
        if not isinstance(node, Mapping):
            what = f"the situation {name.text!r} of {section.what} is {word_of(node)}"
            section.faults.add(node.mark, what, "Write a mapping with 'authorities' or 'context'.")
            continue
        inner = Section(node, f"situation {name.text!r} of {section.what}", section.faults)
        inner.only(*SITUATION_KEYS)
        if not node.pairs:
            section.faults.add(node.mark, f"{inner.what} adds nothing", "Name 'authorities' or 'context'.")
        grants = Grants(read_authorities(inner, held=True), read_one_of(inner, "access", Access) or Access.READ)
        found.append(Situation(name.text, grants, read_fields(inner, "context")))
    return tuple(found)


def read_fields(section: Section, key: str) -> frozenset[str]:
    """Return the names of context fields at *key*."""
    words = section.words(key)
    for word in words:
        if not FIELD.fullmatch(word.text):
            remedy = "Write it like owner_id: lower case, digits and _"
            section.faults.add(word.mark, f"{word.text[:60]!r} is not a context field", remedy)
    return frozenset(word.text for word in words)
