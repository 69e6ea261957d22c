"""An audit for programs: one JSON object. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import msgspec

from orchestrator.catalog.budget import estimated_tokens

if TYPE_CHECKING:
    from orchestrator.catalog.audit import Audit, Column, SelectionTotal
    from orchestrator.catalog.viewpoint import Cell

__all__ = ["report_json"]


def report_json(audit: Audit) -> bytes:
    """Return *audit* as ``{"actors": {ACTOR: {TOOL: …}}, "totals": …, "findings": […]}``.

    A cell has ``permitted`` (a tool that needs a yes is), ``code`` (of the first gate that refuses, ``needs_approval``
    or null), ``missing`` (every authority and context field) and ``definition_bytes``.
    """
    return msgspec.json.encode(
        {
            "actors": {
                column.caller.name: {cell.tool: _cell(cell) for cell in column.cells} for column in audit.columns
            },
            "totals": {
                "tools": len(audit.sizes),
                "definition_bytes": audit.definition_bytes,
                "estimated_tokens": estimated_tokens(audit.definition_bytes),
                "budget_bytes": audit.budget_bytes,
                "actors": {column.caller.name: _actor(column, audit) for column in audit.columns},
                "selections": {chosen.name: _selection(chosen) for chosen in audit.selections},
            },
            "findings": [attrs.asdict(finding) for finding in audit.findings],
        }
    )


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "permitted": cell.permitted,
        "code": cell.code or None,
        "missing": cell.missing,
        "definition_bytes": cell.definition_bytes,
    }


def _actor(column: Column, audit: Audit) -> dict[str, Any]:
    situations = column.caller.situations
    return {
        "tools": len(column.owned),
        "permitted": len(column.permitted),
        "definition_bytes": column.definition_bytes,
        "permitted_bytes": column.permitted_bytes,
        "intrinsic_bytes": column.intrinsic_bytes,
        "estimated_tokens": column.estimated_tokens,
        "situations": {
            each.name: [cell.tool for cell in column.cells if each.name in cell.situations] for each in situations
        },
        "states": {
            state.name: [cell.tool for cell in column.cells if state.name in cell.states]
            for state in audit.subject.states
        },
    }


def _selection(chosen: SelectionTotal) -> dict[str, Any]:
    return {"tools": chosen.tools, "definition_bytes": chosen.definition_bytes, "refused": dict(chosen.refused)}
