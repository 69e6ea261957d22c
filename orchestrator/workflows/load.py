"""From a workflow file to a plan: every fault of it, and of the agent files it names, told at once."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import msgspec

from orchestrator.workflows.cast import check_definitions
from orchestrator.workflows.check import check_agents, check_steps
from orchestrator.workflows.document import MAX_BYTES, Node, Scalar, read_document
from orchestrator.workflows.document import Mapping as MappingNode
from orchestrator.workflows.draft import AGENT_KEYS, AgentDraft, StepDraft, read_agent, read_step
from orchestrator.workflows.fault import FaultLog, Mark
from orchestrator.workflows.plan import Plan, digest_of
from orchestrator.workflows.section import Section, word_of
from orchestrator.workspace.refusal import WorkspaceRefused
from orchestrator.workspace.roots import Workspace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from actors.tools import Tool

__all__ = ["check_file", "load_plan", "parse_plan"]

NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]")
MAX_AGENTS = 1000
MAX_STEPS = 1000
PLAN_KEYS = ("name", "description", "agents", "steps")


def load_plan(path: Path, pool: Mapping[str, Tool] | None = None) -> Plan:
    """Read the workflow file at *path*; agent files must lie beneath its directory. Blocks.

    :param pool: the tools that agents may name; with it, every agent is checked as the definition it will be.

    :raises PlanError: with every fault found; a file that cannot be read is one of them.
    """
    faults = FaultLog()
    real = Path(os.path.realpath(path))
    text = read_text(Workspace(real.parent), f"./{real.name}", str(path), Mark(str(path), 1, 1), faults)
    faults.settle(str(path))
    return parse_plan(text, str(path), directory=real.parent, pool=pool)


def check_file(path: Path, pool: Mapping[str, Tool] | None = None) -> None:
    """Check the workflow file at *path*, or the agent file: one with a role and without agents and steps. Blocks.

    An agent file's children are not looked for: they are agents of the workflow that names the file.

    :raises PlanError: with every fault found.
    """
    faults = FaultLog()
    real = Path(os.path.realpath(path))
    text = read_text(Workspace(real.parent), f"./{real.name}", str(path), Mark(str(path), 1, 1), faults)
    faults.settle(str(path))
    root = read_document(text, str(path), faults)
    if not isinstance(root, MappingNode) or not root.get("role") or root.get("agents") or root.get("steps"):
        parse_plan(text, str(path), directory=real.parent, pool=pool)
        return
    draft = read_agent(Scalar(root.mark, NOT_IN_NAMES.sub("-", real.stem)[:128], plain=True), root, faults)
    if pool is not None and not faults.faults:
        alone = attrs.evolve(draft, spec=msgspec.structs.replace(draft.spec, children=()), children=())
        check_definitions((alone,), pool, faults)
    faults.settle(str(path))


def parse_plan(text: str, place: str, *, directory: Path | None = None, pool: Mapping[str, Tool] | None = None) -> Plan:
    """Return the plan that *text* describes; *place* is what faults call it.

    :param directory: where agent files may lie; without it, naming one is a fault.
    :raises PlanError: with every fault found.
    """
    faults = FaultLog()
    root = read_mapping(text, place, PLAN_KEYS, faults)
    if root is None:
        raise faults.error(place)
    section = Section(root, "the workflow", faults)
    section.only(*PLAN_KEYS)
    name, description = section.text("name", required=True), section.text("description")
    reader = AgentReader(directory, faults)
    agents, named = reader.agents(section)
    steps = read_steps(section)
    check_agents(agents, faults)
    if pool is not None and not faults.faults:
        check_definitions(agents, pool, faults)
    roles = {agent.spec.name: agent.spec.role for agent in agents}
    check_steps(steps, {name: roles.get(name, "") for name in named}, text, faults)
    faults.settle(place)
    specs, parts = tuple(agent.spec for agent in agents), tuple(draft.step for draft in steps)
    return Plan(name, description, specs, parts, digest_of(name, description, specs, parts))


def read_mapping(text: str, place: str, keys: tuple[str, ...], faults: FaultLog) -> MappingNode | None:
    """Return the one mapping that *text* is, or None and a fault; *keys* are those that belong in it."""
    root = read_document(text, place, faults)
    if root is None or isinstance(root, MappingNode):
        return root
    faults.add(root.mark, f"the file is {word_of(root)}", f"Write a mapping with {', '.join(keys)}.")
    return None


def read_text(files: Workspace, path: str, place: str, mark: Mark, faults: FaultLog, *, kind: str = "YAML") -> str:
    """Return the text of a file, or an empty string and a fault at *mark* (inside the file: at *place*)."""
    try:
        data = files.read_bytes(path, MAX_BYTES)
    except WorkspaceRefused as refused:
        faults.add(mark, f"{place} cannot be read: {refused.rule}", f"Name a {kind} file of at most 1 MiB.")
        return ""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        faults.add(Mark(place, line, column), "the file is not UTF-8 text", "Save it as UTF-8.")
        return ""


def read_steps(section: Section) -> tuple[StepDraft, ...]:
    """Read every step of the workflow in *section*."""
    body = section.sequence("steps", required=True)
    if body is None:
        return ()
    if not 1 <= len(body.items) <= MAX_STEPS:
        section.faults.add(body.mark, f"'steps' has {len(body.items)} steps", f"Write 1 to {MAX_STEPS} steps.")
        return ()
    drafts = (read_step(node, number, section.faults) for number, node in enumerate(body.items, start=1))
    return tuple(draft for draft in drafts if draft is not None)


class AgentReader:
    """Reads the agents of one workflow file, wherever they are written."""

    def __init__(self, directory: Path | None, faults: FaultLog) -> None:
        """Read agent files beneath *directory*."""
        self.directory = directory
        self.faults = faults

    def agents(self, section: Section) -> tuple[tuple[AgentDraft, ...], frozenset[str]]:
        """Return every agent that can be read, and the names of all of them, so that no fault begets another."""
        body = section.mapping("agents", required=True)
        if body is None:
            return (), frozenset()
        if not 1 <= len(body.pairs) <= MAX_AGENTS:
            self.faults.add(body.mark, f"'agents' has {len(body.pairs)} agents", f"Write 1 to {MAX_AGENTS} agents.")
        read = (self.agent(name, node) for name, node in body.pairs[:MAX_AGENTS])
        return tuple(agent for agent in read if agent), frozenset(name.text for name, _ in body.pairs)

    def agent(self, name: Scalar, node: Node) -> AgentDraft | None:
        """Read the agent *name* from *node*, or from the file that it names."""
        if not isinstance(node, MappingNode):
            remedy = "Write a mapping with role and instructions."
            self.faults.add(node.mark, f"agent {name.text!r} is {word_of(node)}", remedy)
            return None
        if node.get("file") is None:
            return read_agent(name, node, self.faults)
        section = Section(node, f"agent {name.text!r}, which has a file,", self.faults)
        section.only("file")
        file = section.scalar("file", required=True)
        body = self.file(file) if file else None
        return read_agent(name, body, self.faults) if body else None

    def file(self, file: Scalar) -> MappingNode | None:
        """Return the mapping in the agent file that *file* names."""
        if self.directory is None:
            self.faults.add(file.mark, "agent files cannot be read here", "Write the agent in the workflow.")
            return None
        if file.text.startswith("/"):
            self.faults.add(file.mark, f"{file.text!r} is absolute", "Name it relative to the workflow file.")
            return None
        place = str(Path(file.mark.place).parent / file.text)
        before = len(self.faults.faults)
        text = read_text(Workspace(self.directory), file.text, place, file.mark, self.faults)
        if len(self.faults.faults) > before:
            return None
        return read_mapping(text, place, AGENT_KEYS, self.faults)
