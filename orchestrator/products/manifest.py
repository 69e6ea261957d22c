"""A product as its ``product.yaml`` declares it: agents, tools, workflow states, callers. Every fault is told at once.

Keys of the file: ``name``, ``description``, ``agents`` (as in workflow files), ``tools``, ``states``, ``callers`` and
``selections``. See `orchestrator.products.declared` for a tool and `orchestrator.products.callers` for a caller.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from actors.definition import AgentDefinition
from actors.states import WorkflowState
from orchestrator.catalog.subject import Caller, Declared, NamedSet, Subject
from orchestrator.products.callers import default_callers, read_callers
from orchestrator.products.declared import read_tools
from orchestrator.products.package import package_at
from orchestrator.products.states import read_states
from orchestrator.workflows.cast import check_definitions, definitions
from orchestrator.workflows.check import check_agents
from orchestrator.workflows.fault import FaultLog, Mark, PlanError
from orchestrator.workflows.load import AgentReader, read_mapping, read_text
from orchestrator.workflows.section import Section, nearest
from orchestrator.workspace.roots import Workspace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.workflows.document import Mapping as MappingNode

__all__ = ["MANIFEST_KEYS", "Manifest", "ManifestError", "load_manifest", "parse_manifest"]

MANIFEST_KEYS = ("name", "description", "agents", "tools", "states", "callers", "selections")


class ManifestError(PlanError):
    """A product file that makes no product; *faults* are all of them, in the order of the file."""

    def __str__(self) -> str:
        """Return how many faults there are, and each of them on its own line."""
        count = len(self.faults)
        return "\n".join((f"{count} fault{'s' if count > 1 else ''} in the product", *map(str, self.faults)))


@attrs.frozen
class Manifest:
    """A product without a fault: every name in it is known, and every agent is possible in its role.

    The first of ``states`` is where a workflow begins; without any there are none. A product that names no callers has
    one for each agent, with what its role may hold.
    """

    name: str
    description: str
    agents: tuple[AgentDefinition, ...]
    tools: tuple[Declared, ...]
    states: tuple[WorkflowState, ...]
    callers: tuple[Caller, ...]
    selections: tuple[NamedSet, ...] = ()

    def agent(self, name: str) -> AgentDefinition:
        """Return the agent *name*. Raises KeyError."""
        return {agent.name: agent for agent in self.agents}[name]

    def caller(self, name: str) -> Caller:
        """Return the caller *name*. Raises KeyError."""
        return {caller.name: caller for caller in self.callers}[name]

    def subject(self) -> Subject:
        """Return what an audit looks at."""
        return Subject(self.name, self.tools, self.callers, self.states, self.selections)


def load_manifest(path: Path) -> Manifest:
    """Read the product file at *path*; agent files must lie beneath its directory. Blocks.

    Modules that ``run`` names are imported; they must lie in the product's own package, the one the file stands in.

    Raises `ManifestError` with every fault found; a file that cannot be read is one of them.
    """
    faults = FaultLog()
    real = Path(os.path.realpath(path))
    text = read_text(Workspace(real.parent), f"./{real.name}", str(path), Mark(str(path), 1, 1), faults)
    settle(faults, str(path))
    return parse_manifest(text, str(path), directory=real.parent)


def parse_manifest(text: str, place: str, *, directory: Path | None = None) -> Manifest:
    """Return the product that *text* describes; *place* is what faults call it.

    Without a *directory*, naming an agent file or a function is a fault. Raises `ManifestError` with every fault found.
    """
    faults = FaultLog()
    root = read_mapping(text, place, MANIFEST_KEYS, faults)
    if root is None:
        raise ManifestError(faults.error(place).faults)
    reading = Reading(root, directory, faults)
    manifest = reading.manifest()
    settle(faults, place)
    assert manifest is not None
    return manifest


def settle(faults: FaultLog, place: str) -> None:
    """Raise `ManifestError` when there is any fault."""
    if faults.faults:
        raise ManifestError(faults.error(place).faults)


class Reading:
    """The reading of one product file; what is wrong goes to *faults*, and reading goes on."""

    def __init__(self, root: MappingNode, directory: Path | None, faults: FaultLog) -> None:
        """Read *root*; agent files and functions are looked for from *directory*."""
        self.section = Section(root, "the product", faults)
        self.directory = directory
        self.faults = faults

    def manifest(self) -> Manifest | None:
        """Return the product, or None when there is a fault."""
        section = self.section
        section.only(*MANIFEST_KEYS)
        name, description = section.text("name", required=True), section.text("description")
        package = package_at(self.directory) if self.directory is not None else None
        tools, named = read_tools(section, package)
        agents = self.agents({each.tool.name: each for each in tools}, complete=len(tools) == len(named))
        states = read_states(section, named)
        selections = self.selections(named)
        roles = {agent.name: agent for agent in agents or ()}
        callers = read_callers(section, roles, self.agent_names())
        if self.faults.faults or agents is None:
            return None
        return Manifest(name, description, agents, tools, states, callers or default_callers(agents), selections)

    def agent_names(self) -> frozenset[str]:
        """Return every agent name that the file holds, so that no fault begets another."""
        body = self.section.node.get("agents")
        pairs = getattr(body, "pairs", ())
        return frozenset(name.text for name, _ in pairs)

    def agents(self, tools: Mapping[str, Declared], *, complete: bool) -> tuple[AgentDefinition, ...] | None:
        """Return the definitions, or None when an agent has a fault; tools are looked up when all could be read."""
        mine = FaultLog()
        drafts, _ = AgentReader(self.directory, mine).agents(self.section_of(mine))
        check_agents(drafts, mine)
        pool = {name: declared.tool for name, declared in tools.items()}
        if complete and not mine.faults:
            check_definitions(drafts, pool, mine)
        self.faults.faults |= mine.faults
        if mine.faults or not complete:
            return None
        return tuple(definitions((draft.spec for draft in drafts), pool).values())

    def section_of(self, faults: FaultLog) -> Section:
        """Return the file's section with a fault log of its own."""
        return Section(self.section.node, self.section.what, faults)

    def selections(self, tools: frozenset[str]) -> tuple[NamedSet, ...]:
        """Return the named selections."""
        body = self.section.mapping("selections")
        if body is None:
            return ()
        found = []
        inner = Section(body, "'selections'", self.faults)
        for name, _ in body.pairs:
            words = inner.words(name.text)
            for word in words:
                if word.text not in tools:
                    self.faults.add(word.mark, f"there is no tool {word.text!r}", nearest(word.text, tools))
            found.append(NamedSet(name.text, tuple(word.text for word in words)))
        return tuple(found)
