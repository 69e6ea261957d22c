"""The kernel's values of what a history is made of: grants, definitions, tools, the chart of states, a workspace."""

from __future__ import annotations

import functools
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from actors import Access, AgentDefinition, Role, Tool, ToolSet
from actors.grants import Budget, Grants
from actors.schema import canonical
from actors.states import StateChart, WorkflowState
from tests.proof.naive import TOOLS, Declared
from tests.proof.terms import STATES

if TYPE_CHECKING:
    from tests.proof.terms import Holding, Node

__all__ = ["CHART", "declared", "defined", "encoded", "grants", "workspace"]

CHART = StateChart(WorkflowState(name, tools, moves.items()) for name, (tools, moves) in STATES.items())


@functools.cache
def grants(what: Holding) -> Grants:
    """The kernel's value of a holding."""
    return Grants(what.authorities, Access(what.access), what.roots, Budget(calls=what.calls))


@functools.cache
def workspace() -> Path:
    """A folder with a link that leads out of it; the same for every session, since nothing is written there."""
    place = Path(tempfile.mkdtemp(prefix="proof-"))
    weakref.finalize(Declared, shutil.rmtree, place, ignore_errors=True)
    for name in ("src", "runs"):
        (place / name).mkdir()
    (place / "out").symlink_to("/")
    return place


def defined(node: Node, run: Any) -> AgentDefinition:
    """The definition of a node and all below it; its tools tell *run* who called them."""
    tools = ToolSet(
        direct=tuple(declared(name, TOOLS[name], run) for name in node.tools), states=CHART if node.staged else None
    )
    children = tuple(defined(child, run) for child in node.children)
    return AgentDefinition(node.name, Role(node.role), tools=tools, children=children)


def declared(name: str, tool: Declared, run: Any) -> Tool:
    """The kernel's declaration of a tool of the naive table."""

    async def play(context: Any, _: Any) -> str:
        return str(await run(name, context))

    properties = {field: {"type": kind} for field, kind in tool.given}
    schema = {"type": "object", "properties": properties, "required": sorted(tool.must)}
    return Tool(
        name,
        "Does it.",
        canonical(schema),
        access=Access(tool.access),
        authorities=frozenset({tool.authority} - {""}),
        needs=frozenset({tool.needs} - {""}),
        targets=frozenset({tool.path} - {""}),
        effect_key=(tool.effect,) if tool.effect else None,
        approval="each_call" if tool.asks else "never",
        timeout_s=None,
        run=play,
    )


def encoded(**arguments: Any) -> str:
    """Arguments as JSON text."""
    return msgspec.json.encode(arguments).decode()
