"""A workflow as frozen values, and which of its steps may run now. Pure."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["DEFAULT_MAX_CONCURRENT", "AgentSpec", "Lend", "Plan", "Step", "digest_of", "ready"]

DEFAULT_MAX_CONCURRENT = 4


class Lend(msgspec.Struct, frozen=True):
    """Authority that the session root lends to a step's actor while the step runs."""

    authorities: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()


class AgentSpec(msgspec.Struct, frozen=True):
    """One agent as the file names it. *role* is a known role; *tools* and *skills* are names yet to be found."""

    name: str
    role: str
    instructions: str
    tools: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    description: str = ""


class Step(msgspec.Struct, frozen=True):
    """One step.

    :ivar needs: every step that must be done before: those written, then that of *for_each*.
    :ivar for_each: a path to an array in an earlier step's output (``plan.files``), or empty. The output of
        such a step is the list of its items' outputs, in the items' order.
    :ivar output: the JSON Schema of the final text, as canonical JSON, or empty for plain text.
    :ivar lend: None when nothing is lent.
    :ivar max_concurrent: how many items run at once.
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
    """Return the digest of a plan of these parts."""
    return hashlib.sha256(msgspec.json.encode((name, description, agents, steps))).hexdigest()


def ready(plan: Plan, done: Collection[str], running: Collection[str]) -> tuple[Step, ...]:
    """Return the steps, in file order, that all needs of are in *done* and that are neither done nor *running*."""
    return tuple(
        step
        for step in plan.steps
        if step.id not in done and step.id not in running and all(need in done for need in step.needs)
    )
