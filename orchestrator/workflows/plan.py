"""A workflow as frozen values, and which of its steps may run now. Pure."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from actors.sources import MCPSource

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = [
    "DEFAULT_MAX_CONCURRENT",
    "DEFAULT_MAX_ROUNDS",
    "AgentSpec",
    "Lend",
    "Plan",
    "Review",
    "Step",
    "digest_of",
    "ready",
]

DEFAULT_MAX_CONCURRENT = 4
DEFAULT_MAX_ROUNDS = 3


class Lend(msgspec.Struct, frozen=True):
    """Authority that the session root lends to a step's actor while the step runs."""

    authorities: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()


class Review(msgspec.Struct, frozen=True):
    """Who judges what a step came to, and who mends it.

    In a file, below a step::

        review:
          by: critic          # an agent with the role reviewer
          fix_by: mender      # an agent with the role fixer
          max_rounds: 3       # reviews at most, 1 to 10; default 3
          lend: {authorities: [workspace.write], roots: [src]}
          prompt: "Look for changes of behaviour in {item.path}."

    A round is a review and, where it wants changes, the fixes it asks for; the last round has no fixes, because nobody
    would review them, so with ``max_rounds: 1`` the review only judges. *lend* is for each turn that fixes, and for
    nothing else: not for the step's own turn, which has its own ``lend``, nor for the reviewer. *prompt* has the places
    to fill in that the step's prompt may have; empty for none.
    """

    by: str
    fix_by: str
    max_rounds: int = DEFAULT_MAX_ROUNDS
    lend: Lend | None = None
    prompt: str = ""


class AgentSpec(msgspec.Struct, frozen=True):
    """One agent as the file names it. *role* is a known role; *tools* and *skills* are names yet to be found."""

    name: str
    role: str
    instructions: str
    tools: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    description: str = ""
    sources: tuple[MCPSource, ...] = ()


class Step(msgspec.Struct, frozen=True):
    """One step.

    :ivar needs: every step that must be done before: those written, then that of *for_each*.
    :ivar for_each: a path to an array in an earlier step's output (``plan.files``), or empty. The output of
        such a step is the list of its items' outputs, in the items' order.
    :ivar output: the JSON Schema of the final text, as canonical JSON, or empty for plain text.
    :ivar lend: None when nothing is lent.
    :ivar max_concurrent: how many items run at once.
    :ivar review: None when nobody reviews the step; of a step with items, each is reviewed for itself.
    """

    id: str
    agent: str
    prompt: str
    needs: tuple[str, ...] = ()
    for_each: str = ""
    background: bool = False
    output: str = ""
    lend: Lend | None = None
    max_concurrent: int = DEFAULT_MAX_CONCURRENT
    review: Review | None = None


class Plan(msgspec.Struct, frozen=True):
    """A workflow without a fault: every name in it is known and nothing in it is a cycle.

    :ivar digest: SHA-256 of all that is here, in hexadecimal; layout and comments of the file are not in it.
    """

    name: str
    description: str
    agents: tuple[AgentSpec, ...]
    steps: tuple[Step, ...]
    digest: str


def digest_of(name: str, description: str, agents: tuple[AgentSpec, ...], steps: tuple[Step, ...]) -> str:
    """Return the digest of a plan of these parts. What a step does not have leaves no trace in it."""
    parts = [msgspec.to_builtins(step) for step in steps]
    for part in parts:
        if part["review"] is None:
            del part["review"]  # as plans had it before there were reviews: their sessions go on
    people = [msgspec.to_builtins(msgspec.structs.replace(agent, sources=())) for agent in agents]
    for agent, person in zip(agents, people, strict=True):
        del person["sources"]  # likewise
        if agent.sources:
            person["mcp"] = [source.declaration() for source in agent.sources]
    return hashlib.sha256(msgspec.json.encode((name, description, people, parts))).hexdigest()


def ready(plan: Plan, done: Collection[str], running: Collection[str]) -> tuple[Step, ...]:
    """Return the steps, in file order, that all needs of are in *done* and that are neither done nor *running*."""
    return tuple(
        step
        for step in plan.steps
        if step.id not in done and step.id not in running and all(need in done for need in step.needs)
    )
