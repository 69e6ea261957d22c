"""An audit for a person at a terminal. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.catalog.budget import estimated_tokens
from orchestrator.catalog.finding import KINDS
from orchestrator.catalog.letters import sign_of, signs_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.catalog.audit import Audit

__all__ = ["report_text"]


def report_text(audit: Audit) -> str:
    """Return *audit* as plain text: the matrix with its legend, the totals, the findings by kind."""
    return "\n".join((*_matrix(audit), "", *_totals(audit), "", *_findings(audit)))


def _matrix(audit: Audit) -> Iterator[str]:
    width = max((len(name) for name, _ in audit.sizes), default=4)
    heads = [column.caller.name for column in audit.columns]
    yield f"{'tool':{width}}  {'bytes':>6}  {'  '.join(heads)}".rstrip()
    for place, (name, size) in enumerate(audit.sizes):
        cells = [column.cells[place] for column in audit.columns]
        signs = (sign_of(cell).letter + ("*" if cell.situations else " ") for cell in cells)
        row = "  ".join(f"{sign:{len(head)}}" for sign, head in zip(signs, heads, strict=True))
        yield f"{name:{width}}  {size:>6}  {row}".rstrip()
    yield ""
    used = tuple(cell for column in audit.columns for cell in column.cells)
    for sign in signs_in(used):
        yield f"{sign.letter}  {sign.meaning}"
    if any(cell.situations for cell in used):
        yield "*  offered in one of the caller's situations"


def _totals(audit: Audit) -> Iterator[str]:
    tokens = estimated_tokens(audit.definition_bytes)
    yield f"{len(audit.sizes)} tools, {audit.definition_bytes} bytes, about {tokens} tokens (bytes / 4)"
    for column in audit.columns:
        yield (
            f"{column.caller.name}: {len(column.permitted)} of {len(column.owned)} tools, "
            f"{column.permitted_bytes} of {column.definition_bytes} bytes"
        )
    for chosen in audit.selections:
        yield f"selection {chosen.name}: {len(chosen.tools)} tools, {chosen.definition_bytes} bytes"


def _findings(audit: Audit) -> Iterator[str]:
    if not audit.findings:
        yield "nothing found"
    for kind, sentence in KINDS.items():
        found = [finding for finding in audit.findings if finding.kind == kind]
        if found:
            yield f"{kind} ({len(found)}): {sentence}"
            yield from (f"  - {finding.message}" for finding in found)
            yield from (f"  {remedy}" for remedy in dict.fromkeys(finding.remedy for finding in found))
