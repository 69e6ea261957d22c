"""``mend``: find, review and fix lint faults in a Python source tree."""

from __future__ import annotations

from pathlib import Path

from orchestrator.products.mend.playbook import playbook
from orchestrator.products.mend.report import report
from orchestrator.products.mend.tools import MEND_TOOLS
from orchestrator.products.product import Product
from orchestrator.runtime import SessionLimits
from orchestrator.workspace.toolset import WORKSPACE_TOOLS

__all__ = ["PRODUCT"]

PRODUCT = Product(
    name="mend",
    description="Find, review and fix lint faults in a Python source tree.",
    workflow=Path(__file__).with_name("workflow.yaml"),
    tools=(*WORKSPACE_TOOLS, *MEND_TOOLS),
    limits=SessionLimits(depth=3, alive=64, total=100_000),
    model=playbook,
    report=report,
    requires=(("ruff", "install the extra 'lint'"),),
)
