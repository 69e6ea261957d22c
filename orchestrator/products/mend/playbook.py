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
from orchestrator.workflows.telling import CORRECTION, bare
from orchestrator.workspace.patch import make

if TYPE_CHECKING:
    from actors.messages import ToolResult
    from actors.ports import ModelRequest

__all__ = ["playbook"]

MAX_REASON = 1000
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
        self.text = bare(first.text) if isinstance(first, Said) else ""
        said = (item.text for item in request.history[:begin] if isinstance(item, ModelReply) and not item.calls)
        self.last = tuple(said)[-1:]
        items = request.history[begin + 1 :]
        calls = (item.calls for item in items if isinstance(item, ModelReply))
        results = (item.results for item in items if isinstance(item, Results))
        self.steps: list[list[tuple[ToolCall, ToolResult]]] = [
            list(zip(made, answered, strict=True)) for made, answered in zip(calls, results, strict=False)
        ]

    @property
    def again(self) -> str:
        """The answer to give once more when this turn asks to correct it; these functions know no other."""
        return self.last[0] if self.last and self.text.startswith(CORRECTION) else ""

    @property
    def data(self) -> dict[str, Any]:
        """What a reviewer or a fixer was given, from the last line of what it was told."""
        found: dict[str, Any] = msgspec.json.decode(self.text.rpartition("\n")[2])
        return found

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
    if turn.again:
        return turn.again
    if not turn.steps:
        return [call("list_files", depth=16, pattern="**/*.py")]
    listing = turn.steps[0][0][1]
    names = [line for line in listing.text.splitlines() if re.search(r"\.py \(\d+\)$", line)]
    plan = "Lint the tree, propose changes to each file, review them, apply what is found fit, review again, verify."
    return answer(python_files=len(names), plan=plan)


def run(request: ModelRequest) -> Calls | str:
    """Lint, or verify."""
    turn = Turn(request)
    if turn.again:
        return turn.again
    if turn.text.startswith("Verify"):
        return verify(turn)
    if not turn.steps:
        return [call("run_linter")]
    linted = turn.steps[0][0][1]
    return linted.text if linted.outcome is Outcome.OK else f"The linter failed: {linted.text}"


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
    if turn.again:
        return turn.again
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
    """Judge the changes that were proposed to a file, then whether they were made; or judge the verification."""
    turn = Turn(request)
    if turn.again:
        return turn.again
    if turn.text.startswith("Judge"):
        return judge(turn)
    data = turn.data
    return choose(turn, data) if data["round"] == 1 else confirm(turn, data)


def choose(turn: Turn, data: dict[str, Any]) -> Calls | str:
    """Read and try each proposed change; what is fit is to be applied, what is not is a note with the reason."""
    numbers = [proposal["fix"] for proposal in msgspec.json.decode(data["answer"])["proposals"]]
    if not numbers:
        return answer(verdict="accepted", findings=[], summary="No change was proposed.")
    if not turn.steps:
        return [call(name, fix=number) for number in numbers for name in ("read_fix", "try_fix")]
    seen = [value(result) for _, result in turn.steps[0]]
    findings = [
        judged(number, proposal, tried) for number, proposal, tried in zip(numbers, seen[::2], seen[1::2], strict=True)
    ]
    fit = any(finding["severity"] != "note" for finding in findings)
    return answer(verdict="changes_wanted" if fit else "accepted", findings=findings)


def judged(number: int, proposal: dict[str, Any] | None, tried: dict[str, Any] | None) -> dict[str, Any]:
    """Return the finding on one proposed change."""
    fit, reason = False, "it could not be read or tried"
    if proposal is not None and tried is not None:
        fit, reason = opinion(proposal, tried)
    found = {"id": f"fix-{number}", "place": "" if proposal is None else proposal["path"][:300]}
    found |= {"severity": "minor" if fit else "note", "message": reason[:MAX_REASON]}
    return {**found, "suggestion": f"Apply fix {number} as it is on record."} if fit else found


def confirm(turn: Turn, data: dict[str, Any]) -> Calls | str:
    """Look whether each change that the fixer says it made is in its file; take its word where it declined."""
    made = [finding for finding in data["findings"] if finding["state"] == "fixed"]
    if made and not turn.steps:
        return [call("try_fix", fix=int(RECORDED.findall(finding["id"])[0])) for finding in made]
    seen = [value(result) for _, result in turn.steps[0]] if made else []
    missing = [
        {key: finding[key] for key in ("id", "place", "severity")}
        | {"message": "the file does not hold the change, or does not compile"}
        for finding, tried in zip(made, seen, strict=True)
        if tried is None or not (tried["applied"] and tried["compiles"])
    ]
    return answer(verdict="changes_wanted" if missing else "accepted", findings=missing)


def opinion(proposal: dict[str, Any], tried: dict[str, Any]) -> tuple[bool, str]:
    """Tell whether a change that was tried is fit to be applied, and why."""
    kind, _, codes = proposal["reason"].partition(": ")
    if kind != "safe":
        return False, f"the linter calls these fixes unsafe, they may change what the code does: {codes}"
    if not tried["compiles"]:
        return False, f"the file would not compile: {tried.get('fault', '')}"
    if tried["new"]:
        return False, f"it would bring new findings: {', '.join(sorted(tried['new']))}"
    return True, f"it compiles, removes {sum(tried['gone'].values())} findings and brings none"


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
    """Read every change of the worklist, apply each, and say what could not be applied.

    A change that may have been applied when the process ended is asked for again: its tool looks whether it was.
    """
    turn = Turn(request)
    if turn.again:
        return turn.again
    ids = [item["id"] for item in turn.data["worklist"]]
    if not turn.steps:
        return [call("read_fix", fix=int(RECORDED.findall(name)[0])) for name in ids]
    read = {name: value(result) for name, (_, result) in zip(ids, turn.steps[0], strict=True)}
    changes = {name: patch_of(found) for name, found in read.items() if found is not None}
    if len(turn.steps) == 1 and changes:
        return list(changes.values())
    results = {made.arguments: result for made, result in turn.results("diff_patch_workspace_file")}
    ends = {name: results[change.arguments] for name, change in changes.items()}
    doubtful = [name for name, result in ends.items() if result.outcome is Outcome.UNKNOWN]
    if doubtful:
        return [changes[name] for name in doubtful]
    return answer(items=[fixed(name, ends.get(name)) for name in ids])


def fixed(name: str, result: ToolResult | None) -> dict[str, str]:
    """Return what became of one item of the worklist."""
    if result is None:
        return {"id": name, "state": "declined", "reason": "it is not on record"}
    state = "fixed" if result.outcome is Outcome.OK else "declined"
    return {"id": name, "state": state, "reason": result.text[:MAX_REASON] or state}


def patch_of(found: dict[str, Any]) -> ToolCall:
    """Return the call that applies a change as it is on record."""
    return call("diff_patch_workspace_file", path=found["path"], diff=found["diff"])
