"""What an audit is asked about, by name: a shipped product, a product file, or a workflow file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from actors.grants import Access, Grants, attenuate
from actors.roles import ROLES
from actors.roles.role import Role, cap
from orchestrator.catalog.subject import Caller, Declared, Situation, Subject
from orchestrator.errors import UnknownProduct
from orchestrator.journal.work import Stage
from orchestrator.products.callers import ALWAYS_PRESENT
from orchestrator.products.manifest import load_manifest
from orchestrator.products.product import PRODUCTS, find_product
from orchestrator.runtime import OWNER
from orchestrator.workflows.cast import definitions
from orchestrator.workflows.company import agent_of
from orchestrator.workflows.document import Mapping as MappingNode
from orchestrator.workflows.document import read_document
from orchestrator.workflows.fault import FaultLog
from orchestrator.workflows.load import load_plan
from orchestrator.workspace.toolset import WORKSPACE_TOOLS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from actors.definition import AgentDefinition
    from actors.tools import Tool
    from orchestrator.workflows.plan import Plan

__all__ = ["is_product_file", "shipped_manifest", "shipped_names", "subject_of", "workflow_subject"]

SHELF = Path(__file__).parent
CONTEXT = ALWAYS_PRESENT | {"workspace"}


def shipped_manifest(name: str) -> Path | None:
    """Return the product file that is shipped under *name*, or ``None``."""
    path = SHELF / name.replace("-", "_") / "product.yaml"
    known = {each.parent.name.replace("_", "-") for each in SHELF.glob("*/product.yaml")}
    return path if name in known else None


def shipped_names() -> tuple[str, ...]:
    """Return the names of everything that is shipped and can be audited."""
    return tuple(sorted({*PRODUCTS, *(each.parent.name.replace("_", "-") for each in SHELF.glob("*/product.yaml"))}))


def subject_of(what: str) -> Subject:
    """Return what an audit of *what* looks at. Blocks; writes nothing.

    Raises `UnknownProduct` for what is neither shipped nor a YAML file, `PlanError` with every fault of the file.
    """
    shipped = shipped_manifest(what)
    if shipped is not None:
        return load_manifest(shipped).subject()
    if what in PRODUCTS:
        product = find_product(what)
        return workflow_subject(product.workflow, product.tools)
    if not what.endswith((".yaml", ".yml")):
        raise UnknownProduct(what, (*shipped_names(), "or name a .yaml file"))
    path = Path(what)
    return workflow_subject(path, WORKSPACE_TOOLS) if _has(path, "steps") else load_manifest(path).subject()


def is_product_file(path: Path) -> bool:
    """Tell whether the file is a product file: it declares tools and has no steps."""
    return _has(path, "tools") and _has(path, "agents") and not _has(path, "steps")


def _has(path: Path, key: str) -> bool:
    """Tell whether the file is a mapping with *key*; one that cannot be read is told so by whoever loads it."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return False
    root = read_document(text, str(path), FaultLog())
    return isinstance(root, MappingNode) and root.get(key) is not None


def workflow_subject(path: Path, tools: tuple[Tool, ...]) -> Subject:
    """Return the tools that the agents of the workflow at *path* name, and its agents as the run's root starts them.

    What a step lends is a situation of its agent, what its review lends one of its fixer. An agent that only other
    agents start is a caller below each of them, named by its path. Raises `PlanError`.
    """
    pool = {tool.name: tool for tool in tools}
    plan = load_plan(path, pool)
    built = definitions(plan.agents, pool)
    named = {tool.name for definition in built.values() for tool in definition.tools.direct}
    callers = tuple(_callers(plan, built))
    return Subject(plan.name, tuple(Declared(tool) for tool in tools if tool.name in named), callers)


def _callers(plan: Plan, built: Mapping[str, AgentDefinition]) -> Iterator[Caller]:
    root = cap(OWNER, ROLES[Role.BUILDER].ceiling)
    agents = (name for step in plan.steps for stage in Stage if (name := agent_of(step, stage)))
    waiting = [(name, name, root) for name in dict.fromkeys(agents)]
    seen: set[tuple[str, Grants]] = set()
    for path, name, above in waiting:
        definition = built[name]
        base = cap(attenuate(OWNER, above), ROLES[definition.role].ceiling)
        if (name, base) in seen:
            continue
        seen.add((name, base))
        yield Caller(path, definition, base, CONTEXT, situations=tuple(_lent(plan, path)))
        waiting.extend((f"{path}/{child.address}", child.name, base) for child in definition.children)


def _lent(plan: Plan, agent: str) -> Iterator[Situation]:
    """Yield what the steps of *plan* lend the actor of *agent*: for their own turns, and for the fixes of reviews."""
    for step in plan.steps:
        if step.lend is not None and step.agent == agent:
            yield Situation(f"step {step.id}", Grants(step.lend.authorities, Access.READ, step.lend.roots))
        review = step.review
        if review is not None and review.lend is not None and review.fix_by == agent:
            lent = Grants(review.lend.authorities, Access.READ, review.lend.roots)
            yield Situation(f"fixes of step {step.id}", lent)
