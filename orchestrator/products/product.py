"""A product: a workflow with its tools, its offline model and its report, under one name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

import attrs

from actors.ports import Model
from actors.states import StateChart
from actors.tools import Tool
from orchestrator.errors import UnknownProduct
from orchestrator.journal.records import Entry
from orchestrator.journal.state import SessionState
from orchestrator.runtime import Principal, SessionLimits
from orchestrator.workflows.engine import WorkflowResult

__all__ = ["PRODUCTS", "Product", "Report", "find_product"]

PRODUCTS = ("mend", "support-desk")


@attrs.frozen
class Report:
    """What a run came to, for people (Markdown) and for programs (JSON text); *ok* decides the exit code."""

    ok: bool
    headline: str
    markdown: str
    json: str
    files: tuple[tuple[str, str], ...] = ()


@attrs.frozen
class Product:
    """A shipped workflow. ``requires`` names modules that the tools run as commands, with how to get them.

    ``principal`` is who acts in its sessions by default, ``states`` the workflow states of agents that have their
    tools. A ``fresh`` product works in an empty folder of its own unless it is given one.
    """

    name: str
    description: str
    workflow: Path
    tools: tuple[Tool, ...]
    limits: SessionLimits
    model: Callable[[], Model]
    report: Callable[[SessionState, tuple[Entry, ...], WorkflowResult], Report]
    requires: tuple[tuple[str, str], ...] = ()
    principal: Principal = attrs.field(factory=Principal)
    states: StateChart | None = None
    fresh: bool = False


def find_product(name: str) -> Product:
    """Return the shipped product *name*. Raises `UnknownProduct`, naming those there are."""
    if name not in PRODUCTS:
        raise UnknownProduct(name, PRODUCTS)
    product = importlib.import_module(f"orchestrator.products.{name.replace('-', '_')}.product").PRODUCT
    assert isinstance(product, Product)
    return product
