"""The offline model of ``mend``: for each agent a function that decides the next calls from what it has seen so far.

Everything else is real: the tools, the linter, the bridge, the decision, the journal. The functions keep no state of
their own, so a resumed run asks them again with the same history and gets the same answers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from actors.messages import ModelReply, Outcome, Results, Said, ToolCall
from orchestrator.models.function import FunctionModel, call
from orchestrator.products.mend.edits import apply_fixes
from orchestrator.products.mend.linter import Finding
from orchestrator.workspace.patch import make

if TYPE_CHECKING:
    from actors.messages import ToolResult
    from actors.ports import ModelRequest

__all__ = ["playbook"]

AT_ONCE = 8
RECORDED = re.compile(r"\d+")
Calls = list[ToolCall]


def playbook() -> FunctionModel:
    """Return the model that plays all agents of ``mend``."""
    plays = {"builder": build, "run": run, "mender": mend, "reviewer": review, "fixer": fix}
    return FunctionModel(plays)


class Turn:
    """What one turn has said and seen so far: its input, and each reply's calls with their results."""

    def __init__(self, request: ModelRequest) -> None:
        begin = max(index for index, item in enumerate(request.history) if isinstance(item, Said))
        first = request.history[begin]
        self.text = first.text if isinstance(first, Said) else ""
        items = request.history[begin + 1 :]
        calls = (item.calls for item in items if isinstance(item, ModelReply))
        results = (item.results for item in items if isinstance(item, Results))
        self.steps: list[list[tuple[ToolCall, ToolResult]]] = [
            list(zip(made, answered, strict=True)) for made, answered in zip(calls, results, strict=False)
        ]

    def results(self, name: str) -> list[tuple[ToolCall, ToolResult]]:
        """Return every call of the tool *name* with its result, in order."""
        return [pair for step in self.steps for pair in step if pair[0].name == name]


def value(result: ToolResult) -> Any:
    """Return what a tool or a child answered, decoded; ``None`` for one that failed or answered in plain words."""
    try:
        return msgspec.json.decode(result.text) if result.outcome is Outcome.OK else None
    except msgspec.DecodeError:
        return None


def answer(**fields: Any) -> str:
    """Return the final answer as JSON."""
    return msgspec.json.encode(fields).decode()


def build(request: ModelRequest) -> Calls | str:
    """Look at the tree once and count its Python files."""
    turn = Turn(request)
    if not turn.steps:
        return [call("list_files", depth=16, pattern="**/*.py")]
    listing = turn.steps[0][0][1]
    names = [line for line in listing.text.splitlines() if re.search(r"\.py \(\d+\)$", line)]
    plan = "Lint the tree, mend each file in a child of its own, review every change, apply what is accepted, verify."
    return answer(python_files=len(names), plan=plan)


def run(request: ModelRequest) -> Calls | str:
    """Lint and have every file mended; or verify."""
    turn = Turn(request)
    if turn.text.startswith("Verify"):
        return verify(turn)
    if not turn.steps:
        return [call("run_linter")]
    linted = value(turn.steps[0][0][1])
    if linted is None:
        return f"The linter failed: {turn.steps[0][0][1].text}"
    paths = [file["path"] for file in linted["files"]]
    started = turn.results("delegate")
    collected = turn.results("collect_child")
    if len(collected) < len(started):
        names = [result.text.partition(" ")[0] for _, result in started[len(collected) :]]
        return [call("collect_child", child=name) for name in names]
    if len(started) < len(paths):
        batch = paths[len(started) : len(started) + AT_ONCE]
        return [call("delegate", child="mender", task=f"Mend the file: {path}", background=True) for path in batch]
    return summary(linted, paths, [result for _, result in collected])


def summary(linted: dict[str, Any], paths: list[str], collected: list[ToolResult]) -> str:
    """Return what the menders proposed, and the files they failed on."""
    proposals: list[dict[str, Any]] = []
    failed: list[str] = []
    for path, result in zip(paths, collected, strict=True):
        proposed = value(result)
        if proposed is None:
            failed.append(path)
        else:
            proposals.extend({**proposal, "path": path} for proposal in proposed["proposals"])
    counts = {"files": len(paths), "findings": linted["findings"], "broken": linted["broken"]}
    return answer(**counts, proposals=proposals, failed=failed)


def verify(turn: Turn) -> Calls | str:
    """Check the tree in a throwaway copy."""
    if not turn.steps:
        return [call("verify_tree")]
    before = RECORDED.search(turn.text)
    found = value(turn.steps[0][0][1])
    if found is None or before is None:
        return f"The tree could not be verified: {turn.steps[0][0][1].text}"
    known = msgspec.json.decode(turn.text.partition("did not compile: ")[2])
    broken = [path for path in found["broken"] if path not in known]
    return answer(before=int(before.group()), after=found["findings"], compiles=not broken, broken=broken)


def mend(request: ModelRequest) -> Calls | str:
    """Read one file and its findings, put them and at most two changes on record."""
    turn = Turn(request)
    path = turn.text.partition(": ")[2]
    if not turn.steps:
        return [call("lint_file", path=path), call("read_file", path=path, max_lines=2000)]
    if len(turn.steps) == 1:
        return propose(turn, path)
    findings = turn.results("record_finding")
    proposals = [
        {
            "fix": int(RECORDED.findall(result.text)[0]),
            "safe": made["reason"].startswith("safe"),
            "codes": made["reason"].partition(": ")[2].split(", "),
        }
        for made, result in ((msgspec.json.decode(c.arguments), r) for c, r in turn.results("record_fix"))
    ]
    return answer(findings=len(findings), proposals=proposals)


def propose(turn: Turn, path: str) -> Calls | str:
    """Put every finding of a file on record, and the changes that its fixes add up to."""
    linted, source = turn.steps[0][0][1], turn.steps[0][1][1]
    if linted.outcome is not Outcome.OK:
        return f"The file could not be linted: {linted.text}"
    findings = msgspec.json.decode(linted.text, type=tuple[Finding, ...])
    text = exact_text(source)
    fixed: dict[Finding, str] = {}
    changes: Calls = []
    for kind in ("safe", "unsafe") if text is not None else ():
        fixable = [f for f in findings if f.fix is not None and f.fix.applicability == kind]
        changed, done = apply_fixes(text or "", fixable)
        if done and changed != text:
            codes = ", ".join(sorted({f.code or "" for f in done}))
            changes.append(
                call("record_fix", path=path, diff=make(text or "", changed, path), reason=f"{kind}: {codes}")
            )
            fixed.update(dict.fromkeys(done, kind))
    recorded = [
        call(
            "record_finding",
            subject=finding.code or "syntax",
            message=f"{finding.message} [{fixed.get(finding, 'no fix')}]",
            place=f"{path}:{finding.location.row}:{finding.location.column}",
        )
        for finding in findings
    ]
    return [*recorded, *changes]


def exact_text(source: ToolResult) -> str | None:
    """Return a whole file from what ``read_file`` showed, or ``None`` where it cannot be told byte for byte."""
    head, _, body = source.text.partition("\n")
    whole = re.search(r": lines 1-(\d+) of (\d+)", head)
    if source.outcome is not Outcome.OK or whole is None or whole.group(1) != whole.group(2):
        return None
    if "not UTF-8" in head or "byte order mark" in head or "CRLF" in head or "shortened" in source.text[-4000:]:
        return None
    return body if "no newline at the end" in head else f"{body}\n"


def review(request: ModelRequest) -> Calls | str:
    """Judge one change, or the verification."""
    turn = Turn(request)
    if turn.text.startswith("Judge"):
        return judge(turn)
    number = int(RECORDED.findall(turn.text)[0])
    if not turn.steps:
        return [call("read_fix", fix=number), call("try_fix", fix=number)]
    proposal, tried = (value(result) for _, result in turn.steps[0])
    verdict, reason = "rejected", "it could not be read or tried"
    if proposal is not None and tried is not None:
        verdict, reason = opinion(proposal, tried)
    return answer(fix=number, verdict=verdict, reason=reason)


def opinion(proposal: dict[str, Any], tried: dict[str, Any]) -> tuple[str, str]:
    """Return the verdict on a change that was tried, and its reason."""
    kind, _, codes = proposal["reason"].partition(": ")
    if kind != "safe":
        return "rejected", f"the linter calls these fixes unsafe, they may change what the code does: {codes}"
    if not tried["compiles"]:
        return "rejected", f"the file would not compile: {tried.get('fault', '')}"
    if tried["new"]:
        return "rejected", f"it would bring new findings: {', '.join(sorted(tried['new']))}"
    return "accepted", f"it compiles, removes {sum(tried['gone'].values())} findings and brings none"


def judge(turn: Turn) -> str:
    """Judge the tree after the changes."""
    seen = msgspec.json.decode(turn.text.partition(": ")[2])
    if not seen["compiles"]:
        return answer(verdict="rejected", reason=f"these files do not compile any more: {', '.join(seen['broken'])}")
    if seen["after"] > seen["before"]:
        return answer(verdict="rejected", reason=f"findings rose from {seen['before']} to {seen['after']}")
    reason = f"every file that compiled still does; findings went from {seen['before']} to {seen['after']}"
    return answer(verdict="accepted", reason=reason)


def fix(request: ModelRequest) -> Calls | str:
    """Read every accepted change, apply each, and say what could not be applied.

    A change that may have been applied when the process ended is asked for once more: its tool looks whether it was.
    """
    turn = Turn(request)
    reviews = msgspec.json.decode(turn.text.partition(". ")[2])
    accepted = [review["fix"] for review in reviews if review is not None and review["verdict"] == "accepted"]
    if not accepted:
        return answer(applied=[], failed=[])
    if not turn.steps:
        return [call("read_fix", fix=number) for number in accepted]
    read = {number: value(result) for number, (_, result) in zip(accepted, turn.steps[0], strict=True)}
    changes = {number: patch_of(found) for number, found in read.items() if found is not None}
    if len(turn.steps) == 1 and changes:
        return list(changes.values())
    results = {made.arguments: result for made, result in turn.results("diff_patch_workspace_file")}
    ends = {number: results[change.arguments] for number, change in changes.items()}
    doubtful = [number for number, result in ends.items() if result.outcome is Outcome.UNKNOWN]
    if doubtful and len(turn.steps) == len(("read", "apply")):
        return [changes[number] for number in doubtful]
    failed = [{"fix": number, "reason": "it is not on record"} for number in accepted if number not in changes]
    failed += [{"fix": n, "reason": result.text} for n, result in ends.items() if result.outcome is not Outcome.OK]
    return answer(applied=[n for n, result in ends.items() if result.outcome is Outcome.OK], failed=failed)


def patch_of(found: dict[str, Any]) -> ToolCall:
    """Return the call that applies a change as it is on record."""
    return call("diff_patch_workspace_file", path=found["path"], diff=found["diff"])
