"""An audit as one HTML page: no script, no network, readable in print and without colours. Pure."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from actors.messages import Denial
from orchestrator.catalog.budget import estimated_tokens
from orchestrator.catalog.finding import KINDS
from orchestrator.catalog.letters import sign_of, signs_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.catalog.audit import Audit, Column
    from orchestrator.catalog.viewpoint import Cell

__all__ = ["report_html"]

STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
body { font: 15px/1.45 system-ui, sans-serif; color: #1b2430; background: #fff; margin: 2rem auto; padding: 0 1.5rem;
  max-width: 80rem; }
h1 { font-size: 1.6rem; margin: 0 0 .2rem; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
p { margin: .3rem 0; } .quiet { color: #5b6675; }
table { border-collapse: separate; border-spacing: 3px; }
th { font-weight: 600; text-align: left; padding: .2rem .5rem; vertical-align: bottom; }
thead th { position: sticky; top: 0; background: #fff; } tbody th { font: 600 .85rem ui-monospace, monospace; }
th[scope=row], td { vertical-align: baseline; }
td { padding: .2rem .5rem; } td.size { text-align: right; font-variant-numeric: tabular-nums; color: #5b6675; }
.cell { border-radius: 4px; min-width: 9rem; } .cell b { display: inline-block; min-width: 1.6rem; }
.cell small { overflow-wrap: anywhere; }
.yes { background: #d3efdc; color: #0f4a26; } .ask { background: #d6e6fb; color: #123f7a; }
.authority { background: #f9d4d4; color: #7a1616; } .context { background: #fbe3c0; color: #6b3c00; }
.nobody { background: #e7dcf7; color: #472078; } .state { background: #d9eef2; color: #0e4a57; }
.policy { background: #f7efb5; color: #574b00; } .none { background: #eef0f3; color: #5b6675; }
.other { background: #dfe3e8; color: #28303a; }
.legend { display: flex; flex-wrap: wrap; gap: .4rem 1.2rem; list-style: none; padding: 0; }
.legend b { display: inline-block; width: 1.8rem; text-align: center; border-radius: 4px; margin-right: .4rem; }
.bar { display: inline-block; width: 12rem; height: .8rem; background: #eef0f3; border-radius: 3px; overflow: hidden; }
.bar i { display: block; height: 100%; background: #4b7bb5; } .bar.over i { background: #b53a3a; }
li { margin: .25rem 0; } code { font: .9em ui-monospace, monospace; }
@media print { body { margin: 0; max-width: none; font-size: 11px; } thead th { position: static; }
  thead { display: table-header-group; } tr, li { break-inside: avoid; } h2 { break-after: avoid; } }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def report_html(audit: Audit) -> str:
    """Return *audit* as a page. Everything in it that a catalog wrote is escaped."""
    name = escape(audit.subject.name)
    parts = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Audit of {name}</title><style>{STYLE}</style></head><body>",
        f"<h1>Audit of {name}</h1>",
        *_summary(audit),
        *_legend(audit),
        *_matrix(audit),
        *_totals(audit),
        *_selections(audit),
        *_findings(audit),
        "</body></html>\n",
    )
    return "\n".join(parts)


def _summary(audit: Audit) -> Iterator[str]:
    tokens = estimated_tokens(audit.definition_bytes)
    yield (
        f"<p>Tools: {len(audit.sizes)}. Callers: {len(audit.columns)}. Findings: {len(audit.findings)}. "
        f"{audit.definition_bytes:,} bytes of definitions, about {tokens:,} tokens (bytes / 4).</p>"
    )
    yield '<p class="quiet">Each cell is the answer of the decision that is asked at every call.</p>'


def _legend(audit: Audit) -> Iterator[str]:
    used = tuple(cell for column in audit.columns for cell in column.cells)
    yield '<ul class="legend" aria-label="Legend">'
    for sign in signs_in(used):
        yield f'<li><b class="{sign.colour}">{sign.letter}</b>{sign.meaning}</li>'
    if any(cell.situations for cell in used):
        yield "<li><b>*</b>offered in the situation that is named</li>"
    yield "</ul>"


def _matrix(audit: Audit) -> Iterator[str]:
    heads = "".join(f'<th scope="col">{escape(column.caller.name)}</th>' for column in audit.columns)
    yield '<h2 id="matrix">Who can run what</h2>'
    yield f'<table aria-labelledby="matrix"><thead><tr><th scope="col">tool</th><th scope="col">bytes</th>{heads}</tr>'
    yield "</thead><tbody>"
    about = {declared.tool.name: declared.tool for declared in audit.subject.tools}
    for place, (name, size) in enumerate(audit.sizes):
        cells = "".join(_cell(column.cells[place], column) for column in audit.columns)
        tool = about[name]
        hover = escape(f"{tool.access.value}. {tool.description}", quote=True)
        row = f'<th scope="row" title="{hover}">{escape(name)}</th><td class="size">{size}</td>'
        yield f"<tr>{row}{cells}</tr>"
    yield "</tbody></table>"


def _cell(cell: Cell, column: Column) -> str:
    sign = sign_of(cell)
    verdict = cell.verdict
    if isinstance(verdict, Denial):
        hover = f"{verdict.code} (gate {verdict.gate}): {verdict.message} {verdict.remedy}"
    else:
        hover = f"{cell.tool} for {column.caller.name}: {sign.meaning}"
    words = [*cell.missing, *cell.states, *(f"when {situation}" for situation in cell.situations)]
    shown = escape(", ".join(words))
    star = "*" if cell.situations else ""
    told = f"<b>{sign.letter}{star}</b><small>{shown}</small>"
    return f'<td class="cell {sign.colour}" title="{escape(hover, quote=True)}">{told}</td>'


def _totals(audit: Audit) -> Iterator[str]:
    yield '<h2 id="totals">What each caller is told</h2><table aria-labelledby="totals"><thead><tr>'
    heads = ("caller", "tools offered", "bytes offered", "bytes in all", f"of {audit.budget_bytes:,}", "tokens, about")
    yield "".join(f'<th scope="col">{head}</th>' for head in heads) + "</tr></thead><tbody>"
    for column in audit.columns:
        total = column.definition_bytes + column.intrinsic_bytes
        share = min(100, 100 * total // max(1, audit.budget_bytes))
        over = " over" if total > audit.budget_bytes else ""
        yield (
            f'<tr><th scope="row">{escape(column.caller.name)}</th>'
            f"<td>{len(column.permitted)} of {len(column.owned)}</td>"
            f'<td class="size">{column.permitted_bytes:,}</td><td class="size">{total:,}</td>'
            f'<td><span class="bar{over}" role="img" aria-label="{share} %"><i style="width:{share}%"></i></span></td>'
            f'<td class="size">{column.estimated_tokens:,}</td></tr>'
        )
    yield "</tbody></table>"
    yield '<p class="quiet">In all: every tool of the definition, the intrinsic ones included.</p>'


def _selections(audit: Audit) -> Iterator[str]:
    if not audit.selections:
        return
    yield "<h2>Selections</h2><ul>"
    for chosen in audit.selections:
        yield (
            f"<li><b>{escape(chosen.name)}</b>: {len(chosen.tools)} tools, {chosen.definition_bytes:,} bytes. "
            f"{escape(', '.join(chosen.tools))}.</li>"
        )
        for caller, names in chosen.refused:
            yield f'<li class="quiet">{escape(caller)} would be refused {escape(", ".join(names))}.</li>'
    yield "</ul>"


def _findings(audit: Audit) -> Iterator[str]:
    yield "<h2>Findings</h2>"
    if not audit.findings:
        yield "<p>Nothing found.</p>"
    for kind, sentence in KINDS.items():
        found = [finding for finding in audit.findings if finding.kind == kind]
        if found:
            yield f"<h3><code>{kind}</code> ({len(found)})</h3><p>{escape(sentence.capitalize())}.</p><ul>"
            yield from (f"<li>{escape(finding.message)}</li>" for finding in found)
            yield "</ul>"
            remedies = dict.fromkeys(finding.remedy for finding in found)
            yield from (f'<p class="quiet">{escape(remedy)}</p>' for remedy in remedies)
