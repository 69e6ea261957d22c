"""The audit of a catalog: actor × tool by the one decision, sizes, totals, findings. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from actors.intrinsics import INTRINSIC
from orchestrator.catalog.budget import DEFAULT_BUDGET_BYTES, encoded, estimated_tokens, measured, size_of
from orchestrator.catalog.declarations import declaration_findings, name_findings
from orchestrator.catalog.finding import KINDS, Finding
from orchestrator.catalog.proof import refusal_findings
from orchestrator.catalog.subject import Caller, NamedSet, Subject
from orchestrator.catalog.viewpoint import Cell, Viewpoint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.catalog.budget import Encode

__all__ = ["Audit", "Column", "SelectionTotal", "audit"]


@attrs.frozen
class Column:
    """One caller's verdicts, in the catalog's order, with the bytes of the intrinsic tools its definition has too."""

    caller: Caller
    cells: tuple[Cell, ...]
    intrinsic_bytes: int

    @property
    def owned(self) -> tuple[Cell, ...]:
        """The cells of tools that the caller's definition has."""
        names = {tool.name for tool in self.caller.definition.offered}
        return tuple(cell for cell in self.cells if cell.tool in names)

    @property
    def permitted(self) -> tuple[Cell, ...]:
        """The cells of tools that are offered, those that need a yes included."""
        return tuple(cell for cell in self.cells if cell.permitted)

    @property
    def definition_bytes(self) -> int:
        """The size of all tools of the definition, the intrinsic ones aside."""
        return sum(cell.definition_bytes for cell in self.owned)

    @property
    def permitted_bytes(self) -> int:
        """The size of the tools that are offered, the intrinsic ones aside."""
        return sum(cell.definition_bytes for cell in self.permitted)

    @property
    def estimated_tokens(self) -> int:
        """The tokens of everything in the definition, the intrinsic tools included, by estimate."""
        return estimated_tokens(self.definition_bytes + self.intrinsic_bytes)


@attrs.frozen
class SelectionTotal:
    """A named selection with its size, and the callers that would be refused some of it, with what."""

    name: str
    tools: tuple[str, ...]
    definition_bytes: int
    refused: tuple[tuple[str, tuple[str, ...]], ...]


@attrs.frozen
class Audit:
    """What was found. ``sizes`` are the bytes of each tool's encoded definition, in the catalog's order."""

    subject: Subject
    sizes: tuple[tuple[str, int], ...]
    columns: tuple[Column, ...]
    selections: tuple[SelectionTotal, ...]
    findings: tuple[Finding, ...]
    budget_bytes: int

    @property
    def definition_bytes(self) -> int:
        """The size of the whole catalog."""
        return sum(size for _, size in self.sizes)

    def kinds(self) -> frozenset[str]:
        """Return the kinds of what was found."""
        return frozenset(finding.kind for finding in self.findings)


def audit(
    subject: Subject,
    *,
    budget_bytes: int = DEFAULT_BUDGET_BYTES,
    tests: tuple[frozenset[str], ...] | None = None,
    encode: Encode = encoded,
) -> Audit:
    """Audit *subject*. *tests* are the texts of each test function (`proof.texts_of_tests`), ``None`` to not ask.

    *encode* is what makes the bytes that a model is sent of one tool.
    """
    sizes = tuple((declared.tool.name, size_of(declared, encode)) for declared in subject.tools)
    columns = tuple(_column(caller, subject, sizes, encode) for caller in subject.callers)
    selections = tuple(_selection(chosen, dict(sizes), columns) for chosen in subject.selections)
    found = [
        *_reach_findings(subject, columns),
        *_waste_findings(columns),
        *_selection_findings(selections, columns),
        *name_findings(subject),
        *declaration_findings(subject.tools),
        *_budget_findings(columns, budget_bytes),
        *(() if tests is None else refusal_findings(subject, tests)),
    ]
    order = tuple(KINDS)
    findings = tuple(sorted(found, key=lambda finding: order.index(finding.kind)))
    return Audit(subject, sizes, columns, selections, findings, budget_bytes)


def _column(caller: Caller, subject: Subject, sizes: tuple[tuple[str, int], ...], encode: Encode) -> Column:
    view = Viewpoint(caller, subject.states)
    cells = tuple(view.cell(name, size) for name, size in sizes)
    intrinsic = sum(measured(tool, encode) for tool in caller.definition.offered if tool.source == INTRINSIC)
    return Column(caller, cells, intrinsic)


def _selection(chosen: NamedSet, sizes: dict[str, int], columns: tuple[Column, ...]) -> SelectionTotal:
    refused = []
    for column in columns:
        offered = {cell.tool for cell in column.permitted}
        names = tuple(name for name in chosen.tools if name not in offered)
        if names:
            refused.append((column.caller.name, names))
    total = sum(sizes.get(name, 0) for name in chosen.tools)
    return SelectionTotal(chosen.name, chosen.tools, total, tuple(refused))


def _reach_findings(subject: Subject, columns: tuple[Column, ...]) -> Iterator[Finding]:
    """Yield tools that no actor can run, whose every offer is refused, or that run nowhere a person types."""
    everything = frozenset[str]().union(
        *(caller.context for caller in subject.callers),
        *(situation.context for caller in subject.callers for situation in caller.situations),
    )
    owners = {tool.name for caller in subject.callers for tool in caller.definition.offered}
    typed = [Viewpoint(caller, subject.states) for caller in subject.callers if caller.typed]
    for place, declared in enumerate(subject.tools):
        name = declared.tool.name
        if name not in owners:
            message = f"{name} is in no actor's definition"
            yield Finding("no_actor", message, "Give it to an agent, or take it out of the catalog.", name)
            continue
        why = _reasons(columns, place)
        if not any(column.cells[place].permitted or column.cells[place].situations for column in columns):
            yield Finding("no_actor", f"no actor can run {name}: {why}", MEND, name)
            yield Finding("always_refused", f"every offer of {name} would be refused: {why}", MEND, name)
        if typed and not any(view.could(name, everything) for view in typed):
            why = _reasons(tuple(column for column in columns if column.caller.typed), place)
            yield Finding("nowhere_typed", f"{name} can run nowhere that a person types: {why}", MEND, name)


def _waste_findings(columns: tuple[Column, ...]) -> Iterator[Finding]:
    """Yield each actor whose definition holds tools that it is never offered."""
    for column in columns:
        never = [cell for cell in column.owned if not cell.permitted and not cell.situations]
        if never:
            actor, size = column.caller.name, sum(cell.definition_bytes for cell in never)
            names = ", ".join(cell.tool for cell in never)
            message = f"{actor} is never offered {len(never)} of its {len(column.owned)} tools, {size} bytes: {names}"
            yield Finding("never_offered", message, MEND, actor=actor)


MEND = "Provide what is missing, or take the tool out of these definitions."


def _reasons(columns: tuple[Column, ...], place: int) -> str:
    """Return why each caller is refused the tool at *place*, equal reasons together."""
    by_reason: dict[str, list[str]] = {}
    for column in columns:
        cell = column.cells[place]
        if not cell.permitted and cell.code != "unknown_tool":
            missing = f" ({', '.join(cell.missing)})" if cell.missing else ""
            by_reason.setdefault(cell.code + missing, []).append(column.caller.name)
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in by_reason.items())


def _selection_findings(selections: tuple[SelectionTotal, ...], columns: tuple[Column, ...]) -> Iterator[Finding]:
    for chosen in selections:
        refused = [frozenset(names) for _, names in chosen.refused]
        if len(refused) < len(columns) or not refused:
            continue
        for name in chosen.tools:
            if all(name in names for names in refused):
                message = f"the selection {chosen.name} holds {name}, which every actor would be refused"
                yield Finding("refused_selection", message, "Ask reach and decision before ranking.", name)


def _budget_findings(columns: tuple[Column, ...], budget_bytes: int) -> Iterator[Finding]:
    for column in columns:
        total = column.definition_bytes + column.intrinsic_bytes
        if total > budget_bytes:
            actor = column.caller.name
            message = f"the tools of {actor} take {total} bytes; the budget is {budget_bytes}"
            remedy = "Take tools out, shorten their texts, or use a selector."
            yield Finding("over_budget", message, remedy, actor=actor)
