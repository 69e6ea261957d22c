"""Who a chat is with: one agent of a product, of a product file or of a workflow file, or the agent of a Markdown file.

Rules:

- Without a name it is the first agent of the file. A product file says in ``callers`` with which authority and context
  an agent is called: the first caller of the agent counts, or the one that is named. Where a file names no caller, and
  for a shipped product's own agent, it is what the person at this machine may do within the agent's role.
- A caller that nobody stands behind (``approver: false``) has nobody to ask here either.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from actors.tools import Approval
from orchestrator.cli.fault import InputFault
from orchestrator.cli.job import POOL
from orchestrator.formats.agent_file import load_agent_file
from orchestrator.models.opening import open_model
from orchestrator.models.routed import RoutedModel
from orchestrator.products.audited import is_product_file, shipped_manifest, shipped_names
from orchestrator.products.callers import default_callers
from orchestrator.products.manifest import Manifest, load_manifest
from orchestrator.products.product import PRODUCTS, Product, find_product
from orchestrator.runtime import Principal, SessionLimits
from orchestrator.workflows.cast import definitions
from orchestrator.workflows.load import load_plan
from orchestrator.workflows.section import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from actors.definition import AgentDefinition
    from actors.ports import Model
    from actors.states import StateChart
    from actors.tools import Tool

__all__ = ["MARKDOWN", "Partner", "find_partner"]

MARKDOWN = ".md"
YAML = (".yaml", ".yml")

HERE = frozenset({"principal", "workspace"})


@attrs.frozen
class Partner:
    """One agent, with all that a session with it needs.

    ``what`` names it again from any folder. ``names`` are the agents that there are. ``workspace`` tells whether its
    caller has one, ``fresh`` whether an empty one is made for it. ``model`` opens its own model, where it has one.
    """

    what: str
    definition: AgentDefinition
    names: tuple[str, ...]
    principal: Principal = attrs.field(factory=Principal)
    caller: str = ""
    limits: SessionLimits = attrs.field(factory=SessionLimits)
    model: Callable[[], Model] | None = None
    workspace: bool = True
    fresh: bool = False
    person: bool = True
    markdown: bool = False

    @property
    def asks(self) -> bool:
        """Whether there is a person, and a tool of the agent, or of one that it may start, that may ask.

        A server may ask in the middle of a call, and a tool that it has changed is asked about.
        """
        each = tuple(tree(self.definition))
        asking = (tool for one in each for tool in one.tools.direct if tool.approval is not Approval.NEVER)
        return self.person and any((*asking, *(one.tools.mcp for one in each)))


def tree(definition: AgentDefinition) -> Iterator[AgentDefinition]:
    """Yield *definition* and every one that it, or its children, may start."""
    yield definition
    for child in definition.children:
        yield from tree(child)


def find_partner(what: str, agent: str, caller: str) -> Partner:
    """Return the agent *agent* of *what*, called as *caller*; empty names take the first. Blocks; writes nothing.

    Raises `InputFault`, and `PlanError` with every fault of a file.
    """
    if what.endswith(MARKDOWN):
        return _of_markdown(what, agent, caller)
    shipped = shipped_manifest(what)
    if what in PRODUCTS:
        product = find_product(what)
        if shipped is None:
            return _of_workflow(what, product.workflow, agent, caller, product)
        return _of_manifest(what, load_manifest(shipped), agent, caller, product)
    if shipped is not None:
        return _of_manifest(what, load_manifest(shipped), agent, caller)
    if not what.endswith(YAML):
        known = ", ".join(shipped_names())
        remedy = "name a product, a .yaml file, or an agent's .md file"
        raise InputFault(repr(what), f"is neither a product ({known}) nor a file of agents", remedy)
    path = Path(what)
    if is_product_file(path):
        return _of_manifest(str(path.resolve()), load_manifest(path), agent, caller)
    return _of_workflow(str(path.resolve()), path, agent, caller)


def _of_markdown(what: str, agent: str, caller: str) -> Partner:
    path = Path(what)
    file = load_agent_file(path, POOL)
    _chosen(agent, "--agent", (file.definition.name,))
    _chosen(caller, "--caller", ())
    names = tuple(dict.fromkeys(each.name for each in tree(file.definition)))
    models = dict(file.models)
    model = (lambda: _routed(models)) if all(name in models for name in names) else None
    return Partner(str(path.resolve()), file.definition, (file.definition.name,), model=model, markdown=True)


def _routed(models: Mapping[str, str]) -> Model:
    opened = {name: open_model(name) for name in dict.fromkeys(models.values())}
    if len(opened) == 1:
        return next(iter(opened.values()))
    return RoutedModel({agent: opened[name] for agent, name in models.items()})


def _of_workflow(what: str, path: Path, agent: str, caller: str, product: Product | None = None) -> Partner:
    pool: Mapping[str, Tool] = POOL if product is None else {tool.name: tool for tool in product.tools}
    states: StateChart | None = None if product is None else product.states
    built = definitions(load_plan(path, pool).agents, pool, states=states)
    name = _chosen(agent, "--agent", tuple(built))
    _chosen(caller, "--caller", ())
    return _as_shipped(Partner(what, built[name], tuple(built)), product)


def _of_manifest(what: str, manifest: Manifest, agent: str, caller: str, product: Product | None = None) -> Partner:
    names = tuple(each.name for each in manifest.agents)
    if caller:
        called = manifest.caller(_chosen(caller, "--caller", tuple(each.name for each in manifest.callers)))
        if agent and called.definition.name != _chosen(agent, "--agent", names):
            remedy = f"leave --agent out, or name {called.definition.name}"
            raise InputFault(f"--caller {caller}", f"calls {called.definition.name}, not {agent}", remedy)
    else:
        name = _chosen(agent, "--agent", names)
        called = next((each for each in manifest.callers if each.definition.name == name), None) or next(
            each for each in default_callers(manifest.agents) if each.definition.name == name
        )
    named = manifest.callers != default_callers(manifest.agents)
    definition = called.definition
    if manifest.states and frozenset().union(*(state.tools for state in manifest.states)) <= {
        tool.name for tool in definition.tools.direct
    }:
        definition = attrs.evolve(definition, tools=attrs.evolve(definition.tools, states=_chart(manifest)))
    partner = Partner(
        what,
        definition,
        names,
        Principal(grants=called.grants, context=called.context - HERE),
        called.name,
        workspace="workspace" in called.context,
        person=called.approver or not named,
    )
    return _as_shipped(partner, product, own_principal=not caller)


def _chart(manifest: Manifest) -> StateChart:
    from actors.states import StateChart

    return StateChart(manifest.states)


def _as_shipped(partner: Partner, product: Product | None, *, own_principal: bool = True) -> Partner:
    """Return *partner* with what a shipped product adds: its model, its limits, its principal, its own folder."""
    if product is None:
        return partner
    principal = product.principal if own_principal else partner.principal
    return attrs.evolve(partner, principal=principal, limits=product.limits, model=product.model, fresh=product.fresh)


def _chosen(name: str, option: str, known: Iterable[str]) -> str:
    """Return *name*, or the first of *known* for an empty one. Raises `InputFault`, naming those there are."""
    names = tuple(known)
    if not name:
        return names[0] if names else ""
    if name not in names:
        there = f"there are: {', '.join(names)}" if names else "leave it out"
        near = nearest(name, names) if names else ""
        raise InputFault(f"{option} {name}", "there is none of that name here", f"{there}. {near}".strip())
    return name
