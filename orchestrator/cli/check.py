"""``orchestrator check``: every fault of workflow and agent files, with line and column."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from orchestrator.cli.dialogue.partner import MARKDOWN
from orchestrator.cli.job import POOL
from orchestrator.cli.line import one_line
from orchestrator.formats.agent_file import load_agent_file
from orchestrator.products.audited import is_product_file, shipped_manifest, shipped_names
from orchestrator.products.manifest import load_manifest
from orchestrator.products.product import PRODUCTS, find_product
from orchestrator.workflows.fault import PlanError
from orchestrator.workflows.load import check_file, load_plan

if TYPE_CHECKING:
    from orchestrator.workflows.fault import Fault

__all__ = ["check"]


def _check(name: str) -> None:
    """Check one file or product. Raises `PlanError` with every fault."""
    shipped = shipped_manifest(name)
    if shipped is not None:
        load_manifest(shipped)
    if name in PRODUCTS:
        product = find_product(name)
        load_plan(product.workflow, {tool.name: tool for tool in product.tools})
    elif name.endswith(MARKDOWN):
        load_agent_file(Path(name), POOL)
    elif shipped is None and is_product_file(Path(name)):
        load_manifest(Path(name))
    elif shipped is None:
        check_file(Path(name), POOL)


def check(*what: str, json: bool = False) -> int:
    """Check workflow, agent and product files (.yaml), agent files (.md) and shipped products without running them.

    Exit code 2 when anything has a fault.

    Parameters
    ----------
    what:
        Files, or names of products; default: every product.
    json:
        Print the faults as one JSON array.

    """
    faults: list[Fault] = []
    for name in what or shipped_names():
        try:
            _check(name)
        except PlanError as error:
            faults.extend(error.faults)
            continue
        if not json:
            print(one_line(f"{name}: fine"))
    if json:
        sys.stdout.write(msgspec.json.encode(faults).decode() + "\n")
    else:
        for fault in faults:
            print(one_line(f"orchestrator: {fault}"), file=sys.stderr)
    return 2 if faults else 0
