"""``support-desk``: look a customer up, review a refund, execute it with a person's approval, tell the customer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from actors.grants import Access, Grants
from actors.states import StateChart
from orchestrator.products.manifest import load_manifest
from orchestrator.products.product import Product, Report
from orchestrator.products.support_desk.playbook import playbook
from orchestrator.runtime import OWNER, Principal, SessionLimits

if TYPE_CHECKING:
    from orchestrator.journal.records import Entry
    from orchestrator.journal.state import SessionState
    from orchestrator.workflows.engine import WorkflowResult

__all__ = ["PRODUCT"]

FOLDER = Path(__file__).parent
MANIFEST = load_manifest(FOLDER / "product.yaml")
AGENT = MANIFEST.caller("agent")
GRANTS = Grants(OWNER.authorities | AGENT.grants.authorities, Access.EXTERNAL, (".",))


def report(state: SessionState, entries: tuple[Entry, ...], result: WorkflowResult) -> Report:
    """Return how the case ended, and every approval that was asked for it."""
    outcome = result.outcomes[0] if result.outcomes else None
    ended = msgspec.json.decode(outcome.output) if outcome is not None and outcome.ok else {}
    asked = [
        {
            "approval": name,
            "actor": approval.path,
            "tool": approval.asked.tool,
            "arguments": approval.asked.arguments,
            "approved": None if approval.answered is None else approval.answered.approved,
            "by": "" if approval.answered is None else approval.answered.by,
        }
        for name, approval in state.approvals.items()
    ]
    headline = str(ended.get("answer") or (outcome.detail if outcome is not None else "the case waits for a person"))
    data = {"case": ended, "approvals": asked, "workflow": state.workflow, "records": len(entries)}
    lines = [
        f"- {a['approval']}: {a['tool']} {a['arguments']}, {_said(a['approved'])} {a['by']}".rstrip() for a in asked
    ]
    markdown = "\n".join(("# support-desk", "", headline, "", "## Approvals", "", *(lines or ["None."]), ""))
    return Report(result.ok and bool(ended.get("refunded")), headline, markdown, msgspec.json.encode(data).decode())


def _said(approved: object) -> str:
    """Return in words what became of a question: approved, rejected, or neither yet."""
    return "nobody has answered" if approved is None else "approved by" if approved else "rejected by"


PRODUCT = Product(
    name=MANIFEST.name,
    description=MANIFEST.description,
    workflow=FOLDER / "workflow.yaml",
    tools=tuple(declared.tool for declared in MANIFEST.tools),
    limits=SessionLimits(),
    model=playbook,
    report=report,
    principal=Principal(grants=GRANTS),
    states=StateChart(MANIFEST.states),
    fresh=True,
)
