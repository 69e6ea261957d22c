"""One agent as one Markdown file: front matter says what it is, the text below instructs it.

Keys: ``name`` and ``role`` (both required), ``description`` (one sentence, put before the instructions: a parent reads
it), ``tools`` (names), ``skills`` and ``children`` (files, relative to this one), ``mcp`` (servers, see
`orchestrator.workflows.servers`; a ``cwd`` is relative to the file), ``model`` (``provider:model``; children
without one use their parent's), ``output`` (a JSON Schema of the final answer).

Rules:

- Every fault of every file is told at once, each with file, line and column. An unknown key is one.
- Files are looked for beneath the folder of the first one, nowhere else. A file is read once however often it is named.
- An agent has the tools that its file names and no others; a file with a fault makes no agent at all.
"""

from __future__ import annotations

import os
import posixpath
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from actors.definition import AgentDefinition, Skill, ToolSet
from actors.errors import DefinitionError
from actors.roles.role import Role
from orchestrator.formats.front_matter import read_front_matter
from orchestrator.workflows.fault import FaultLog, Mark
from orchestrator.workflows.load import read_text
from orchestrator.workflows.schema import canonical, read_schema
from orchestrator.workflows.section import Section, nearest
from orchestrator.workflows.servers import read_servers
from orchestrator.workspace.roots import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from actors.sources import MCPSource
    from actors.tools import Tool
    from orchestrator.workflows.document import Mapping as MappingNode
    from orchestrator.workflows.document import Scalar

__all__ = ["AGENT_FILE_KEYS", "AgentFile", "load_agent_file"]

AGENT_FILE_KEYS = ("name", "role", "description", "tools", "skills", "children", "mcp", "model", "output")
SKILL_KEYS = ("name", "description", "tools")
MAX_FILES = 1000
PLAYBOOK = "playbook:"


@attrs.frozen
class AgentFile:
    """The agent of a file, and the models that the files name, by agent name."""

    definition: AgentDefinition
    models: tuple[tuple[str, str], ...] = ()


def load_agent_file(path: Path, pool: Mapping[str, Tool]) -> AgentFile:
    """Read the agent file at *path* and every file it names; tools are taken from *pool*. Blocks; starts nothing.

    Raises `PlanError` with every fault found; a file that cannot be read is one of them.
    """
    faults = FaultLog()
    real = Path(os.path.realpath(path))
    reader = Reader(real.parent, path.parent, pool, faults)
    agent = reader.agent(real.name, Mark(str(path), 1, 1), ())
    models = dict(reader.models(agent, "")) if agent is not None else {}
    faults.settle(str(path))
    assert agent is not None
    return AgentFile(agent.definition, tuple(models.items()))


@attrs.frozen
class Read:
    """One agent as it was read, with its children."""

    definition: AgentDefinition
    model: str
    mark: Mark
    children: tuple[Read, ...]


class Reader:
    """The reading of one agent and all that it names. What is wrong goes to *faults*, and reading goes on."""

    def __init__(self, directory: Path, shown: Path, pool: Mapping[str, Tool], faults: FaultLog) -> None:
        """Read beneath *directory*, which messages call *shown*."""
        self.directory = directory
        self.shown = shown
        self.pool = pool
        self.faults = faults
        self.read: dict[str, Read | None] = {}
        self.model_of: dict[str, str] = {}

    def agent(self, file: str, mark: Mark, above: tuple[str, ...]) -> Read | None:
        """Return the agent in *file*, which is named at *mark* by the files *above*; None for one with a fault."""
        if file in above:
            chain = " -> ".join((*above[above.index(file) :], file))
            self.faults.add(mark, f"agent files are each other's children: {chain}", "Take one of them out.")
            return None
        if file not in self.read:
            if len(self.read) >= MAX_FILES:
                self.faults.add(mark, f"there are more than {MAX_FILES} agent files", "Start fewer agents.")
                return None
            before = len(self.faults.faults)
            agent = self.parsed(file, mark, above)
            self.read[file] = agent if len(self.faults.faults) == before else None
        return self.read[file]

    def parsed(self, file: str, mark: Mark, above: tuple[str, ...]) -> Read | None:
        """Read *file*, all of it."""
        body, below, instructions = self.front_matter(file, mark, AGENT_FILE_KEYS[:2])
        if body is None:
            return None
        section = Section(body, "the agent", self.faults)
        section.only(*AGENT_FILE_KEYS)
        name, role = section.scalar("name", required=True), section.scalar("role", required=True)
        if role and role.text not in set(Role):
            self.faults.add(role.mark, f"there is no role {role.text!r}", nearest(role.text, map(str, Role)))
        if not instructions:
            self.faults.add(below, "the agent has no instructions", "Write them below the front matter.")
        tools = [self.pool[word.text] for word in section.words("tools") if self.known(word)]
        skills = [self.skill(word, file) for word in section.words("skills")]
        chain = (*above, file)
        children = [self.agent(beside(file, word), word.mark, chain) for word in section.words("children")]
        sources, model = tuple(self.servers(section, file)), self.model(section, file)
        schema = section.mapping("output")
        output = "" if schema is None else canonical(read_schema(schema, self.faults))
        if self.faults.faults or name is None or role is None:
            return None
        try:
            definition = AgentDefinition(
                name=name.text,
                role=Role(role.text),
                instructions="\n\n".join(filter(None, (section.text("description").strip(), instructions))),
                skills=[skill for skill in skills if skill],
                tools=ToolSet(direct=tools, mcp=sources),
                children=[child.definition for child in children if child],
                output=output,
            )
        except DefinitionError as error:
            for fault in error.faults:
                self.faults.add(name.mark, f"agent {name.text!r}: {fault}", "Change its role, tools or children.")
            return None
        return Read(definition, model, name.mark, tuple(child for child in children if child))

    def front_matter(self, file: str, mark: Mark, keys: tuple[str, ...]) -> tuple[MappingNode | None, Mark, str]:
        """Return what *file* holds, see `read_front_matter`; one that cannot be read is a fault at *mark*."""
        place, before = str(self.shown / file), len(self.faults.faults)
        if posixpath.isabs(file):
            self.faults.add(mark, f"{file!r} is absolute", "Name it relative to the file that names it.")
            return None, mark, ""
        text = read_text(Workspace(self.directory), f"./{file}", place, mark, self.faults, kind="Markdown")
        if len(self.faults.faults) > before:
            return None, mark, ""
        return read_front_matter(text, place, keys, self.faults)

    def known(self, word: Scalar) -> bool:
        """Tell whether there is a tool of this name; note it when there is none."""
        if word.text not in self.pool:
            self.faults.add(word.mark, f"there is no tool {word.text!r}", nearest(word.text, self.pool))
        return word.text in self.pool

    def skill(self, word: Scalar, file: str) -> Skill | None:
        """Return the skill in the file that *word* names."""
        body, below, told = self.front_matter(beside(file, word), word.mark, SKILL_KEYS)
        if body is None:
            return None
        section = Section(body, "the skill", self.faults)
        section.only(*SKILL_KEYS)
        name, description = section.text("name", required=True), section.text("description", required=True)
        if not told:
            self.faults.add(below, "the skill has no text", "Write it below the front matter.")
        return Skill(name, description, told, tuple(each.text for each in section.words("tools")))

    def model(self, section: Section, file: str) -> str:
        """Return the model that the file names, a playbook by its full path; empty for none."""
        word = section.scalar("model")
        if word is None:
            return ""
        provider, colon, rest = word.text.partition(":")
        if not (provider and colon and rest):
            self.faults.add(word.mark, f"{word.text[:60]!r} is not a model", "Write it like provider:model.")
        if not word.text.startswith(PLAYBOOK):
            return word.text
        return f"{PLAYBOOK}{self.folder(file) / rest}"

    def servers(self, section: Section, file: str) -> Iterator[MCPSource]:
        """Yield the MCP servers that *file* names; one with a folder starts in it wherever the session is."""
        for server in read_servers(section):
            yield attrs.evolve(server, cwd=str(self.folder(file) / server.cwd)) if server.cwd else server

    def folder(self, file: str) -> Path:
        """Return the folder that *file* stands in."""
        return self.directory / posixpath.dirname(file)

    def models(self, agent: Read, above: str) -> Iterator[tuple[str, str]]:
        """Yield each agent's name with its model, its own or that of the agent *above* it."""
        name, model = agent.definition.name, agent.model or above
        if self.model_of.setdefault(name, model) != model:
            self.faults.add(agent.mark, f"there are two agents {name!r}, of two models", "Give one another name.")
        if model:
            yield name, model
        for child in agent.children:
            yield from self.models(child, model)


def beside(file: str, word: Scalar) -> str:
    """Return the file that *word* names in *file*, from the folder of the first one."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(file), word.text))
