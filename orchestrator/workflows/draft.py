"""What a workflow file says, read key by key, before anyone asks whether the names in it fit together."""

from __future__ import annotations

import re

import attrs

from actors.grants import AUTHORITY, normal_root
from actors.roles.role import Role
from orchestrator.workflows.document import Mapping, Node, Scalar
from orchestrator.workflows.fault import FaultLog, Mark
from orchestrator.workflows.plan import DEFAULT_MAX_CONCURRENT, DEFAULT_MAX_ROUNDS, AgentSpec, Lend, Review, Step
from orchestrator.workflows.schema import JSONValue, canonical, read_schema
from orchestrator.workflows.section import Section, nearest, word_of
from orchestrator.workflows.servers import read_servers

__all__ = ["AGENT_KEYS", "AgentDraft", "ReviewDraft", "StepDraft", "read_agent", "read_step"]

NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")
STEP_ID = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
MAX_CONCURRENT = 1000
MAX_ROUNDS = 10
AGENT_KEYS = ("role", "instructions", "tools", "mcp", "skills", "children", "description")
STEP_KEYS = ("id", "agent", "prompt", "needs", "for_each", "background", "output", "lend", "max_concurrent", "review")
REVIEW_KEYS = ("by", "fix_by", "max_rounds", "lend", "prompt")


@attrs.frozen
class AgentDraft:
    """An agent as read. *mark* is where it is named; *children* and *tools* keep their places."""

    mark: Mark
    spec: AgentSpec
    children: tuple[Scalar, ...]
    tools: tuple[Scalar, ...] = ()


@attrs.frozen
class ReviewDraft:
    """The review of a step as read. Texts keep their places."""

    review: Review
    by: Scalar | None
    fix_by: Scalar | None
    prompt: Scalar | None


@attrs.frozen
class StepDraft:
    """A step as read. Texts that name something keep their places; *schema* is None for plain text."""

    mark: Mark
    step: Step
    agent: Scalar | None
    prompt: Scalar | None
    needs: tuple[Scalar, ...]
    for_each: Scalar | None
    schema: dict[str, JSONValue] | None
    review: ReviewDraft | None = None


def read_agent(name: Scalar, body: Mapping, faults: FaultLog) -> AgentDraft:
    """Read the agent *name* from *body*."""
    section = Section(body, f"agent {name.text!r}", faults)
    section.only(*AGENT_KEYS)
    check_name(name, faults)
    role = section.scalar("role", required=True)
    if role and role.text not in set(Role):
        faults.add(role.mark, f"there is no role {role.text!r}", nearest(role.text, map(str, Role)))
    children = section.words("children")
    tools = section.words("tools")
    for word in tools:
        check_name(word, faults)
    spec = AgentSpec(
        name=name.text,
        role=role.text if role else "",
        instructions=section.text("instructions", required=True),
        tools=tuple(tool.text for tool in tools),
        skills=names(section, "skills"),
        children=tuple(child.text for child in children),
        description=section.text("description"),
        sources=tuple(read_servers(section)),
    )
    return AgentDraft(name.mark, spec, children, tools)


def names(section: Section, key: str) -> tuple[str, ...]:
    """Return the list of names at *key*; one that could name nothing is a fault."""
    words = section.words(key)
    for word in words:
        check_name(word, section.faults)
    return tuple(word.text for word in words)


def check_name(word: Scalar, faults: FaultLog) -> None:
    """Note a name that is not of the kind that tools, skills and agents have."""
    if not NAME.fullmatch(word.text):
        faults.add(word.mark, f"{word.text[:40]!r} is not a name", "Use 1 to 128 of A-Z a-z 0-9 . _ -")


def read_step(node: Node, number: int, faults: FaultLog) -> StepDraft | None:
    """Read the step *node*, the file's *number*-th from 1; None when it is no mapping."""
    if not isinstance(node, Mapping):
        faults.add(node.mark, f"step {number} is {word_of(node)}", "Write a mapping that begins with '- id: NAME'.")
        return None
    named = node.get("id")
    known = isinstance(named, Scalar) and named.text.strip()
    section = Section(node, f"step {named.text!r}" if isinstance(named, Scalar) and known else f"step {number}", faults)
    section.only(*STEP_KEYS)
    name = section.scalar("id", required=True)
    if name and not STEP_ID.fullmatch(name.text):
        remedy = "Begin with a letter and use at most 64 of A-Z a-z 0-9 _ -"
        faults.add(name.mark, f"{name.text[:70]!r} is not a step id", remedy)
    agent, prompt = section.scalar("agent", required=True), section.scalar("prompt", required=True)
    needs, for_each = section.words("needs"), section.scalar("for_each")
    body = section.mapping("output")
    schema = None if body is None else read_schema(body, faults)
    source = for_each.text.partition(".")[0] if for_each else ""
    written = tuple(need.text for need in needs)
    review = read_review(section)
    step = Step(
        id=name.text if name else "",
        agent=agent.text if agent else "",
        prompt=prompt.text if prompt else "",
        needs=(*written, source) if source and source not in written else written,
        for_each=for_each.text if for_each else "",
        background=section.flag("background"),
        output="" if schema is None else canonical(schema),
        lend=read_lend(section),
        max_concurrent=section.count("max_concurrent", DEFAULT_MAX_CONCURRENT, MAX_CONCURRENT),
        review=review.review if review else None,
    )
    if for_each is None and (limit := node.get("max_concurrent")):
        faults.add(limit.mark, "'max_concurrent' says nothing without 'for_each'", "Remove it, or add 'for_each'.")
    return StepDraft(name.mark if name else node.mark, step, agent, prompt, needs, for_each, schema, review)


def read_review(section: Section) -> ReviewDraft | None:
    """Return who reviews the step of *section* and who mends it, or None."""
    body = section.mapping("review")
    if body is None:
        return None
    inner = Section(body, f"'review' of {section.what}", section.faults)
    inner.only(*REVIEW_KEYS)
    by, fix_by, prompt = (
        inner.scalar("by", required=True),
        inner.scalar("fix_by", required=True),
        inner.scalar("prompt"),
    )
    review = Review(
        by=by.text if by else "",
        fix_by=fix_by.text if fix_by else "",
        max_rounds=inner.count("max_rounds", DEFAULT_MAX_ROUNDS, MAX_ROUNDS),
        lend=read_lend(inner),
        prompt=prompt.text if prompt else "",
    )
    return ReviewDraft(review, by, fix_by, prompt)


def read_lend(section: Section) -> Lend | None:
    """Return what *section* lends, or None."""
    body = section.mapping("lend")
    if body is None:
        return None
    lend = Section(body, f"'lend' of {section.what}", section.faults)
    lend.only("authorities", "roots")
    authorities, roots = lend.words("authorities"), lend.words("roots")
    if not body.pairs:
        section.faults.add(body.mark, f"{lend.what} lends nothing", "Name 'authorities', or remove 'lend'.")
    for word in authorities:
        if not AUTHORITY.fullmatch(word.text):
            section.faults.add(word.mark, f"{word.text[:60]!r} is not an authority", "Write it like workspace.write.")
    return Lend(tuple(word.text for word in authorities), tuple(root_of(word, section.faults) for word in roots))


def root_of(word: Scalar, faults: FaultLog) -> str:
    """Return the root *word* in its normal form."""
    try:
        return normal_root(word.text)
    except ValueError as error:
        faults.add(word.mark, str(error).partition(";")[0], "Write it like src/app, or '.' for the whole workspace.")
        return word.text
