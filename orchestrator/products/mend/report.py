"""What ``mend`` did, from the record alone: every finding and its fate, who did what, what was denied to whom.

Pure: the same entries give the same report.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from actors.messages import CallFinished
from orchestrator.products.product import Report

if TYPE_CHECKING:
    from orchestrator.journal.records import Entry
    from orchestrator.journal.state import SessionState
    from orchestrator.workflows.engine import WorkflowResult

__all__ = ["report"]

NO_FIX = (
    "the linter offers no fix, the fix overlaps another one, or the file cannot be rewritten exactly from what is "
    "shown of it (line ends of CRLF, a byte order mark, not UTF-8, too long)"
)
FATES = ("fixed", "rejected", "not applied", "no fix", "not reviewed")


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
    outputs = {o.key: msgspec.json.decode(o.output) for o in result.outcomes if o.ok and o.output}
    lint, verify, judge = outputs.get("lint", {}), outputs.get("verify"), outputs.get("judge", {})
    items = _fates(state, outputs)
    counts = Counter(item.fate for item in items)
    failed = next((f"step {o.key}: {o.detail}" for o in result.outcomes if not o.ok), "")
    data = MendReport(
        session="" if state.opened is None else state.opened.session,
        verdict=judge.get("verdict", "failed"),
        reason=judge.get("reason", failed),
        files=lint.get("files", 0),
        findings=lint.get("findings", 0),
        remaining=None if verify is None else verify["after"],
        fates={fate: counts.get(fate, 0) for fate in FATES},
        failed_files=tuple(lint.get("failed", ())),
        items=items,
        denials=denials(entries),
        actors=_work(entries),
        steps=tuple((o.key, o.ok, o.detail) for o in result.outcomes),
    )
    applied = set(outputs.get("fix", {}).get("applied", ()))
    fixes = sorted((fix for _, fix in state.fixes if fix.number in applied), key=lambda fix: (fix.path, fix.number))
    patch = "".join(fix.diff for fix in fixes)
    ok = result.ok and data.verdict == "accepted"
    return Report(ok, _headline(data), _markdown(data), _json(data), (("changes.patch", patch),))


def _fates(state: SessionState, outputs: dict[str, Any]) -> tuple[FindingFate, ...]:
    """Join findings, proposed changes, verdicts and what was applied."""
    fixes = {(who, fix.path, fix.reason.partition(":")[0]): fix for who, fix in state.fixes}
    reviews = {r["fix"]: r for r in outputs.get("review", ()) if r is not None}
    judges = {key: started.by for key, started in state.steps.items()}
    reviewer_of = {
        review["fix"]: judges.get(f"review[{index}]", "")
        for index, review in enumerate(outputs.get("review", ()))
        if review is not None
    }
    applied = set(outputs.get("fix", {}).get("applied", ()))
    failed = {f["fix"]: f["reason"] for f in outputs.get("fix", {}).get("failed", ())}
    fates = []
    for who, finding in state.findings:
        text, mark, kind = finding.message.rpartition(" [")
        fix = fixes.get((who, _spot(finding.place)[0], kind.removesuffix("]")))
        number = None if fix is None else fix.number
        review = None if number is None else reviews.get(number)
        fate, reason = _fate(number, review, applied, failed)
        fates.append(
            FindingFate(
                finding.place,
                finding.subject,
                text if mark else finding.message,
                fate,
                reason,
                who,
                number,
                reviewer_of.get(number, "") if number is not None else "",
                judges.get("fix", "") if fate == "fixed" else "",
            )
        )
    return tuple(sorted(fates, key=lambda item: (_spot(item.place), item.code, item.message)))


def _spot(place: str) -> tuple[str, int, int]:
    """Return path, row and column of ``path:row:column``; of any other text the text."""
    path, *spot = place.rsplit(":", 2)
    if len(spot) == len(("row", "column")) and all(part.isdecimal() for part in spot):
        return path, int(spot[0]), int(spot[1])
    return place, 0, 0


def _fate(
    number: int | None, review: dict[str, Any] | None, applied: set[int], failed: dict[int, str]
) -> tuple[str, str]:
    if number is None:
        return "no fix", NO_FIX
    if review is None:
        return "not reviewed", "its change was not reviewed"
    if review["verdict"] != "accepted":
        return "rejected", review["reason"]
    if number in applied:
        return "fixed", review["reason"]
    return "not applied", failed.get(number, "its change was accepted and not applied")


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
    missed = data.fates["not applied"]
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
