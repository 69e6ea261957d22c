"""``orchestrator check``: every fault of workflow and agent files, with line and column."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from orchestrator.cli.job import POOL
from orchestrator.products.product import PRODUCTS, find_product
from orchestrator.workflows.fault import PlanError
from orchestrator.workflows.load import check_file, load_plan

if TYPE_CHECKING:
    from orchestrator.workflows.fault import Fault

__all__ = ["check"]


def check(*what: str, json: bool = False) -> int:
    """Check workflow files and agent files (.yaml) and products without running them.

    Exit code 2 when anything has a fault.

    Parameters
    ----------
    what:
        Files, or names of products; default: every product.
    json:
        Print the faults as one JSON array.

    """
    faults: list[Fault] = []
    for name in what or PRODUCTS:
        try:
            if name in PRODUCTS:
                product = find_product(name)
                load_plan(product.workflow, {tool.name: tool for tool in product.tools})
            else:
                check_file(Path(name), POOL)
        except PlanError as error:
            faults.extend(error.faults)
            continue
        if not json:
            print(f"{name}: fine")
    if json:
        sys.stdout.write(msgspec.json.encode(faults).decode() + "\n")
    else:
        for fault in faults:
            print(f"orchestrator: {fault}", file=sys.stderr)
    return 2 if faults else 0
