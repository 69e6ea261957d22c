"""What ``mend`` did, from the record alone: every finding and its fate, who did what, what was denied to whom.

Pure: the same entries give the same report.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from actors.messages import CallFinished
from orchestrator.journal.work import FixesRecorded, ReviewRecorded, Verdict
from orchestrator.products.product import Report
from orchestrator.workflows.review import ItemState, worklist

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.journal.records import Entry
    from orchestrator.journal.state import SessionState
    from orchestrator.workflows.engine import WorkflowResult

__all__ = ["report"]

NO_FIX = (
    "the linter offers no fix, the fix overlaps another one, or the file cannot be rewritten exactly from what is "
    "shown of it (line ends of CRLF, a byte order mark, not UTF-8, too long)"
)
NOT_APPLIED = "not applied"
FATES = ("fixed", "rejected", NOT_APPLIED, "no fix", "not reviewed")
READ = ("lint", "verify", "judge")
Fate = tuple[str, str, str, str]
NOT_PROPOSED: Fate = ("no fix", NO_FIX, "", "")
NOT_REVIEWED: Fate = ("not reviewed", "its change was not reviewed", "", "")


class FindingFate(msgspec.Struct, frozen=True):
    """One finding and what became of it. *by* found it, *decided_by* judged its change, *applied_by* applied it."""

    place: str
    code: str
    message: str
    fate: str
    reason: str
    by: str
    fix: int | None = None
    decided_by: str = ""
    applied_by: str = ""


class DeniedCall(msgspec.Struct, frozen=True):
    """Equal refusals of one turn: how often, and the first and last entry."""

    actor: str
    tool: str
    code: str
    message: str
    turn: str
    count: int
    first: int
    last: int


class MendReport(msgspec.Struct, frozen=True):
    """The whole report as data."""

    session: str
    verdict: str
    reason: str
    files: int
    findings: int
    remaining: int | None
    fates: dict[str, int]
    failed_files: tuple[str, ...]
    items: tuple[FindingFate, ...]
    denials: tuple[DeniedCall, ...]
    actors: tuple[tuple[str, int, int], ...]
    steps: tuple[tuple[str, bool, str], ...]


def report(state: SessionState, entries: tuple[Entry, ...], result: WorkflowResult) -> Report:
    """Return the report of a run of ``mend``."""
    outputs = {o.key: msgspec.json.decode(o.output) for o in result.outcomes if o.ok and o.key in READ}
    lint, verify, judge = outputs.get("lint", {}), outputs.get("verify"), outputs.get("judge", {})
    files, items = lint.get("files", ()), _fates(state)
    counts = Counter(item.fate for item in items)
    failed = next((f"step {o.key}: {o.detail}" for o in result.outcomes if not o.ok), "")
    data = MendReport(
        session="" if state.opened is None else state.opened.session,
        verdict=judge.get("verdict", "failed"),
        reason=judge.get("reason", failed),
        files=len(files),
        findings=lint.get("findings", 0),
        remaining=None if verify is None else verify["after"],
        fates={fate: counts.get(fate, 0) for fate in FATES},
        failed_files=tuple(file["path"] for n, file in enumerate(files) if _failed(state, f"mend[{n}]")),
        items=items,
        denials=denials(entries),
        actors=_work(entries),
        steps=tuple((o.key, o.ok, o.detail) for o in result.outcomes),
    )
    applied = {item.fix for item in items if item.fate == "fixed"}
    fixes = sorted((fix for _, fix in state.fixes if fix.number in applied), key=lambda fix: (fix.path, fix.number))
    patch = "".join(fix.diff for fix in fixes)
    ok = result.ok and data.verdict == "accepted"
    return Report(ok, _headline(data), _markdown(data), _json(data), (("changes.patch", patch),))


def _failed(state: SessionState, key: str) -> bool:
    """Tell whether the item *key* is over and failed."""
    finished = state.finished_steps.get(key)
    return finished is not None and not finished.ok


def _fates(state: SessionState) -> tuple[FindingFate, ...]:
    """Join findings, proposed changes, and what the reviews of the files say of these."""
    fixes = {(who, fix.path, fix.reason.partition(":")[0]): fix for who, fix in state.fixes}
    judged = {number: judgement for past in state.rounds.values() for number, judgement in _judged(past)}
    fates = []
    for who, finding in state.findings:
        text, mark, kind = finding.message.rpartition(" [")
        fix = fixes.get((who, _spot(finding.place)[0], kind.removesuffix("]")))
        number = None if fix is None else fix.number
        fate = NOT_PROPOSED if number is None else judged.get(number, NOT_REVIEWED)
        message = text if mark else finding.message
        fates.append(FindingFate(finding.place, finding.subject, message, fate[0], fate[1], who, number, *fate[2:]))
    return tuple(sorted(fates, key=lambda item: (_spot(item.place), item.code, item.message)))


def _judged(past: Sequence[ReviewRecorded | FixesRecorded]) -> Iterator[tuple[int, Fate]]:
    """Yield each change that a review speaks of, with its fate: why, who judged it and who applied it."""
    judge = next((record.by for record in past if isinstance(record, ReviewRecorded)), "")
    fixer = next((record.by for record in past if isinstance(record, FixesRecorded)), "")
    last = past[-1]
    refused = isinstance(last, ReviewRecorded) and last.verdict is Verdict.REJECTED
    for item in worklist(past):
        kind, _, number = item.finding.id.partition("-")
        if kind != "fix" or not number.isdecimal():
            continue
        fate, reason = NOT_APPLIED, item.reason if item.state is ItemState.DECLINED else item.finding.message
        if item.state is ItemState.FIXED:
            fate = "fixed"
        elif item.state is ItemState.NOTE or refused:
            fate = "rejected"
        elif item.state is ItemState.OPEN and not fixer:
            reason = "its change was found fit and was not applied"
        yield int(number), (fate, reason, judge, fixer if fate == "fixed" else "")


def _spot(place: str) -> tuple[str, int, int]:
    """Return path, row and column of ``path:row:column``; of any other text the text."""
    path, *spot = place.rsplit(":", 2)
    if len(spot) == len(("row", "column")) and all(part.isdecimal() for part in spot):
        return path, int(spot[0]), int(spot[1])
    return place, 0, 0


def denials(entries: tuple[Entry, ...]) -> tuple[DeniedCall, ...]:
    """Return every refusal, equal ones of one turn as one."""
    found: dict[tuple[str, ...], DeniedCall] = {}
    for entry in entries:
        record = entry.record
        if isinstance(record, CallFinished) and record.result.denial is not None:
            denial = record.result.denial
            key = (entry.actor, record.turn, denial.tool, denial.code, denial.message)
            known = found.get(key)
            first, count = (entry.seq, 0) if known is None else (known.first, known.count)
            found[key] = DeniedCall(
                entry.actor, denial.tool, denial.code, denial.message, record.turn, count + 1, first, entry.seq
            )
    return tuple(found.values())


def _work(entries: tuple[Entry, ...]) -> tuple[tuple[str, int, int], ...]:
    """Return for each actor how many calls it made and how many of them did not succeed."""
    made: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for entry in entries:
        if isinstance(entry.record, CallFinished):
            made[entry.actor] += 1
            failed[entry.actor] += entry.record.result.error
    return tuple((actor, made[actor], failed[actor]) for actor in sorted(made))


def _headline(data: MendReport) -> str:
    fixed, rejected = data.fates["fixed"], data.fates["rejected"]
    missed = data.fates[NOT_APPLIED]
    more = f", {missed} not applied" if missed else ""
    counts = f"{data.findings} findings in {data.files} files: {fixed} fixed, {rejected} rejected{more}"
    return f"{counts}; {data.verdict}: {data.reason}"


def _json(data: MendReport) -> str:
    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode()


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _markdown(data: MendReport) -> str:
    lines = [
        "# mend",
        "",
        f"Session `{data.session}`. {_headline(data)}",
        "",
        "| fate | findings |",
        "|---|---|",
        *(f"| {fate} | {count} |" for fate, count in data.fates.items()),
        "",
        "## Steps",
        "",
        *(
            f"- {key}: {'done' if ok else 'failed'}{f' ({_cell(detail)})' if detail else ''}"
            for key, ok, detail in data.steps
        ),
        "",
        "## What was denied to whom",
        "",
        *(
            [f"- {d.actor}, {d.tool}, {d.count} times: {_cell(d.message)} (`{d.code}`)" for d in data.denials]
            or ["Nothing."]
        ),
        "",
        "## Who did what",
        "",
        "| actor | calls | not successful |",
        "|---|---|---|",
        *(f"| {actor} | {made} | {failed} |" for actor, made, failed in data.actors),
        "",
        "## Findings",
        "",
        "| place | code | finding | fate | why | found by | judged by | applied by |",
        "|---|---|---|---|---|---|---|---|",
        *(
            f"| {_cell(i.place)} | {i.code} | {_cell(i.message)} | {i.fate} | {_cell(i.reason)} | {i.by} | "
            f"{i.decided_by} | {i.applied_by} |"
            for i in data.items
        ),
        "",
    ]
    if data.failed_files:
        lines += ["## Files that could not be mended", "", *(f"- {_cell(path)}" for path in data.failed_files), ""]
    return "\n".join(lines)
