"""What is wrong with a catalog's declarations, seen without asking who calls: texts, annotations, names. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from actors.grants import Access
from orchestrator.catalog.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from actors.definition import AgentDefinition
    from orchestrator.catalog.subject import Annotations, Declared, Subject

__all__ = ["contradiction", "declaration_findings", "name_findings", "tells_when_not"]

LIMIT = re.compile(
    r"\b(not (a|an|after|as|at|before|by|for|from|if|in|needed|on|once|the|to|until|when|while|with|without)"
    r"|do not|does not|don't|never|avoid|only (after|before|for|if|in|on|once|to|when|with)|unless|instead|rather than"
    r")\b",
    re.IGNORECASE,
)


def tells_when_not(description: str) -> bool:
    """Tell whether *description* draws a limit somewhere: a "not for", "never", "only when", "instead"."""
    return LIMIT.search(description.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")) is not None


def contradiction(access: Access, annotations: Annotations) -> str:
    """Return how *annotations* contradict the declared *access*, or nothing. What is not annotated contradicts nothing.

    Annotations say what the tool really does. Reading more of the world, or writing without destroying, needs no
    higher access; changing anything needs write, and what is destructive or leaves the system is external.
    """
    if access is Access.READ and annotations.read_only is False:
        return "declared read, and its annotations say that it is not read-only"
    if access is Access.READ and annotations.destructive:
        return "declared read, and its annotations say that it destroys"
    if access is Access.WRITE and annotations.destructive:
        return "declared write, which can be undone, and its annotations say that it destroys"
    if access is Access.WRITE and annotations.open_world:
        return "declared write, which stays inside, and its annotations say that it reaches outside"
    if access is not Access.READ and annotations.read_only:
        return f"declared {access.value}, and its annotations say that it only reads"
    return ""


def declaration_findings(tools: tuple[Declared, ...]) -> Iterator[Finding]:
    """Yield what is wrong with each tool on its own."""
    for declared in tools:
        tool = declared.tool
        if not tells_when_not(tool.description):
            message = f"the description of {tool.name} does not say when not to use it"
            yield Finding("use_not_told", message, "Add a sentence such as 'Not for …'.", tool.name)
        why = contradiction(tool.access, declared.annotations)
        if why:
            remedy = "Declare the access that the tool really has, or correct the annotations."
            yield Finding("misdeclared", f"{tool.name} is {why}", remedy, tool.name)


def name_findings(subject: Subject) -> Iterator[Finding]:
    """Yield every name in skills, policies, states and selections that leads nowhere."""
    known = {declared.tool.name for declared in subject.tools}
    for definition in {caller.definition.fingerprint: caller.definition for caller in subject.callers}.values():
        yield from _skill_findings(definition)
    for caller in subject.callers:
        offered = {tool.name for tool in caller.definition.offered}
        for name in sorted(caller.policy.names() - offered):
            yield _nowhere(f"the policy of {caller.name}", f"the tool {name!r}", actor=caller.name)
    yield from _state_findings(subject, known)
    for chosen in subject.selections:
        for name in chosen.tools:
            if name not in known:
                yield _nowhere(f"the selection {chosen.name}", f"the tool {name!r}")


def _state_findings(subject: Subject, known: set[str]) -> Iterator[Finding]:
    states = {state.name for state in subject.states}
    for state in subject.states:
        for name in sorted(state.tools - known):
            yield _nowhere(f"the state {state.name}", f"the tool {name!r}")
        for name, target in state.moves:
            if target not in states:
                yield _nowhere(f"the move of {name} in the state {state.name}", f"the state {target!r}")


def _skill_findings(definition: AgentDefinition) -> Iterator[Finding]:
    """Yield tools that a skill names and that neither the definition nor one of its sources can have."""
    offered = {tool.name for tool in definition.offered}
    prefixes = tuple(f"{source.name}__" for source in definition.tools.mcp)
    bare = any(source.prefix == "" for source in definition.tools.mcp)
    for skill in definition.skills:
        for name in skill.tools:
            if name not in offered and not bare and not (prefixes and name.startswith(prefixes)):
                yield _nowhere(f"the skill {skill.name} of {definition.name}", f"the tool {name!r}")


def _nowhere(owner: str, what: str, actor: str = "") -> Finding:
    return Finding("unresolved_name", f"{owner} names {what}, which is not there", "Correct the name.", actor=actor)
