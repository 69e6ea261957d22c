"""What an agent is: instructions, skills, tools, the children it may start. Validated at once, frozen, fingerprinted.

Rules:

- Construction does no I/O and lists every fault in one `DefinitionError`.
- The fingerprint is the SHA-256 of the canonical encoding of everything declared, children included.
- Tools of the definition are complete at construction: the intrinsic ones are in `AgentDefinition.offered`.
- A name is display text in Unicode normal form C; two names equal in that form are the same name. Its *address* is
  the name itself where it is already plain, else a plain form with a digest, so no two names share an address.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import TYPE_CHECKING, Any

import attrs

from actors.answers import ASKED
from actors.errors import DefinitionError
from actors.intrinsics import CHILDREN, INTRINSIC, INTRINSICS, READING
from actors.roles import ROLES
from actors.roles.role import Role
from actors.schema import canonical, digest, schema_faults
from actors.selection import Selector
from actors.sources import MCPSource
from actors.states import StateChart
from actors.tools import Tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


__all__ = ["AgentDefinition", "MCPSource", "Skill", "ToolSet", "address"]

MAX_NAME = 64
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
JOINERS = frozenset({"\u200c", "\u200d"})


def address(name: str) -> str:
    """Return the stable plain address of a display *name*; different names have different addresses."""
    if PLAIN.fullmatch(name):
        return name
    plain = re.sub(r"[^a-z0-9]+", "-", unicodedata.normalize("NFKD", name).lower()).strip("-")[:40] or "agent"
    return f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def name_faults(name: str, kind: str) -> Iterator[str]:
    """Yield what is wrong with a display *name*."""
    if not name.strip("\u200c\u200d").strip():
        yield f"{kind} name is blank"
    elif name != name.strip():
        yield f"{kind} name {name!r} has blanks around it"
    if len(name) > MAX_NAME:
        yield f"{kind} name {name[:MAX_NAME]!r}… has {len(name)} characters; the limit is {MAX_NAME}"
    for character in name:
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") and character not in JOINERS:
            yield f"{kind} name {name!r} holds the invisible character U+{ord(character):04X}"


def _normal(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _words(words: Iterable[str]) -> tuple[str, ...]:
    if isinstance(words, str):
        msg = f"expected a collection of texts, got the text {words!r}; write ({words!r},)"
        raise TypeError(msg)
    return tuple(words)


@attrs.frozen
class Skill:
    """A text the model can read when it needs it; offered only where every tool it names is in the definition."""

    name: str = attrs.field(converter=_normal)
    description: str
    text: str
    tools: tuple[str, ...] = attrs.field(default=(), converter=_words)


def _tools(tools: Iterable[Tool]) -> tuple[Tool, ...]:
    return tuple(tools)


def _sources(sources: Iterable[MCPSource]) -> tuple[MCPSource, ...]:
    return tuple(sources)


@attrs.frozen
class ToolSet:
    """The tools of a definition by where they come from, the workflow states that offer them, the selector for many."""

    direct: tuple[Tool, ...] = attrs.field(default=(), converter=_tools)
    mcp: tuple[MCPSource, ...] = attrs.field(default=(), converter=_sources)
    states: StateChart | None = None
    selector: Selector | None = None


def _skills(skills: Iterable[Skill]) -> tuple[Skill, ...]:
    return tuple(skills)


def _children(children: Iterable[AgentDefinition]) -> tuple[AgentDefinition, ...]:
    return tuple(children)


@attrs.frozen
class AgentDefinition:
    """One agent, as data. Equal definitions have equal fingerprints; nothing about it changes after construction.

    ``output`` is a JSON Schema as text for the final answer, or empty for free text. An answer that does not satisfy it
    is corrected once, and the next one fails the turn. ``wake`` tells whether notices of background children start a
    turn when the actor is idle, ``steer`` whether they join a turn in flight.
    ``tools`` keeps what was declared; ``offered`` holds all tools by name, the intrinsic ones included.
    """

    name: str = attrs.field(converter=_normal)
    role: Role = attrs.field(converter=Role)
    instructions: str = ""
    skills: tuple[Skill, ...] = attrs.field(default=(), converter=_skills)
    tools: ToolSet = attrs.field(factory=ToolSet)
    children: tuple[AgentDefinition, ...] = attrs.field(default=(), converter=_children)
    output: str = ""
    wake: bool = attrs.field(default=True, kw_only=True)
    steer: bool = attrs.field(default=False, kw_only=True)
    offered: tuple[Tool, ...] = attrs.field(init=False, eq=False, repr=False)
    address: str = attrs.field(init=False, eq=False, repr=False)
    fingerprint: str = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        faults = tuple(_faults(self))
        if faults:
            raise DefinitionError(f"definition {self.name!r}", faults)
        object.__setattr__(self, "address", address(self.name))
        object.__setattr__(self, "offered", (*self.tools.direct, *(INTRINSICS[name] for name in _intrinsic(self))))
        object.__setattr__(self, "fingerprint", digest(canonical(self._declaration())))

    def _declaration(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "role": self.role.value,
            "instructions": self.instructions,
            "skills": [attrs.asdict(skill) for skill in self.skills],
            "tools": [tool.declaration() for tool in self.offered],
            "mcp": [source.declaration() for source in self.tools.mcp],
            "children": [child.fingerprint for child in self.children],
            "output": self.output,
            **({} if self.tools.states is None else {"states": _chart(self.tools.states)}),
            **({} if self.tools.selector is None else {"selector": attrs.asdict(self.tools.selector)}),
            "wake": self.wake,
            "steer": self.steer,
        }

    def full_instructions(self) -> str:
        """Return what the model is told: the role's text, the agent's own, and the list of skills and children."""
        parts = [ROLES[self.role].instructions, self.instructions.strip()]
        if self.skills:
            parts.append("Skills (read one with read_skill):\n" + _lines((s.name, s.description) for s in self.skills))
        if self.children:
            about = ((c.address, c.instructions.strip().partition("\n")[0][:160]) for c in self.children)
            parts.append("Agents you may start with delegate:\n" + _lines(about))
        if self.output:
            parts.append(f"{ASKED}{self.output}")
        return "\n\n".join(part for part in parts if part)


def _chart(chart: StateChart) -> list[Any]:
    return [[state.name, sorted(state.tools), list(state.moves)] for state in chart.states]


def _lines(pairs: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"- {name}: {text}" if text else f"- {name}" for name, text in pairs)


def _intrinsic(definition: AgentDefinition) -> tuple[str, ...]:
    skills = ("read_skill",) if definition.skills else ()
    children = CHILDREN if definition.children else ()
    finding = () if definition.tools.selector is None else ("find_tools",)
    data = ("read_source",) if any(source.data for source in definition.tools.mcp) else ()
    return (*READING, *finding, *data, *skills, "ask_person", *children, *ROLES[definition.role].tools)


def _faults(definition: AgentDefinition) -> Iterator[str]:
    yield from name_faults(definition.name, "agent")
    yield from _skill_faults(definition)
    yield from _tool_faults(definition)
    yield from _source_faults(definition)
    names = {tool.name for tool in definition.tools.direct}
    for part in (definition.tools.states, definition.tools.selector):
        if part is not None:
            come = {name for name in part.named() if _may_come(definition, name)}
            yield from part.faults(frozenset(names | come))
    yield from _child_faults(definition)
    if definition.output:
        yield from schema_faults(definition.output, set(), label="output")


def _may_come(definition: AgentDefinition, name: str) -> bool:
    """Tell whether *name* may be the name of a tool that a source brings; once they are listed it is known."""
    return any(name.startswith(source.lead) for source in definition.tools.mcp)


def _repeated(names: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield name
        seen.add(name)


def _skill_faults(definition: AgentDefinition) -> Iterator[str]:
    known = {tool.name for tool in definition.tools.direct} | set(_intrinsic(definition))
    for skill in definition.skills:
        yield from name_faults(skill.name, "skill")
        for name in skill.tools:
            if name not in known and not _may_come(definition, name):
                yield f"skill {skill.name!r} names the tool {name!r}, which the definition does not have"
    for name in _repeated(skill.name for skill in definition.skills):
        yield f"duplicate skill name {name!r}"


def _tool_faults(definition: AgentDefinition) -> Iterator[str]:
    spec = ROLES[definition.role]
    for tool in definition.tools.direct:
        if tool.source == INTRINSIC:
            yield f"tool {tool.name!r} calls itself {INTRINSIC}; only the tools of reserved names are"
        if tool.name in INTRINSICS:
            yield f"tool name {tool.name!r} is reserved for an intrinsic tool; rename yours"
        rights = spec.faults(tool.access, tool.approval, tool.authorities)
        yield from (f"tool {tool.name!r} {fault}" for fault in rights)
        if tool.run is None:
            yield f"tool {tool.name!r} has no function to run"
    for name in _repeated(tool.name for tool in definition.tools.direct):
        first, second = [t for t in definition.tools.direct if t.name == name][:2]
        yield f"duplicate direct tool name {name!r}, owned by {first.source!r} and by {second.source!r}"


def _source_faults(definition: AgentDefinition) -> Iterator[str]:
    for source in definition.tools.mcp:
        yield from source.faults(ROLES[definition.role])
    for name in _repeated(source.name for source in definition.tools.mcp):
        yield f"duplicate MCP tool source {name!r}"


def _child_faults(definition: AgentDefinition) -> Iterator[str]:
    may_start = ROLES[definition.role].may_start
    for child in definition.children:
        if child.role not in may_start:
            roles = ", ".join(sorted(role.value for role in may_start))
            yield f"child {child.name!r} is a {child.role.value}; a {definition.role.value} may start {roles}"
    for name in _repeated(child.name for child in definition.children):
        yield f"duplicate child name {name!r}"
    for place in set(_repeated(child.address for child in definition.children)):
        names = sorted({child.name for child in definition.children if child.address == place})
        if len(names) > 1:
            yield f"the children {names[0]!r} and {names[1]!r} share the address {place!r}; rename one"
