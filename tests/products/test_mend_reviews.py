"""`mend` when its reviewer and its fixer do not agree: what the report says of each change, and what the tree holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from orchestrator.models.function import call
from orchestrator.products.mend import playbook
from tests.products.test_mend_denials import report_of
from tests.products.tree import FILES, held, plant

if TYPE_CHECKING:
    from pathlib import Path

    from actors.ports import ModelRequest

PLAYS: dict[str, Any] = {
    "builder": playbook.build,
    "run": playbook.run,
    "mender": playbook.mend,
    "reviewer": playbook.review,
}
CHANGED = {"odd pkg/a:b [c] \xe9.py", "safe.py", "warned.py"}


def late(request: ModelRequest) -> bool:
    """Whether the fixer is asked for the late step that the report's workflow has besides."""
    return playbook.Turn(request).text.startswith("Late")


def of_fate(report: dict[str, Any], fate: str) -> dict[str, str]:
    """The reason of each finding with this fate, by its file."""
    return {item["place"].rsplit(":", 2)[0]: item["reason"] for item in report["items"] if item["fate"] == fate}


async def test_a_fixer_that_only_says_it_applied_a_change_is_found_out_and_its_files_are_told(tmp_path: Path) -> None:
    def claim(request: ModelRequest) -> Any:
        if late(request):
            return "done"
        items = [{"id": i["id"], "state": "fixed", "reason": "sure"} for i in playbook.Turn(request).data["worklist"]]
        return playbook.answer(items=items)

    root = plant(tmp_path / "tree")
    report = await report_of(root, {**PLAYS, "fixer": claim})
    assert of_fate(report, "not applied") == dict.fromkeys(
        CHANGED, "the file does not hold the change, or does not compile"
    )
    assert set(report["failed_files"]) == CHANGED
    assert report["fates"]["fixed"] == 0
    assert held(root) == FILES
    assert report["remaining"] == report["findings"]
    (mend,) = [detail for key, _, detail in report["steps"] if key == "mend"]
    assert mend.startswith("3 of 8 items failed: ")


async def test_a_change_that_the_fixer_declines_is_told_with_its_reason_and_its_file_is_not_lost(
    tmp_path: Path,
) -> None:
    def decline(request: ModelRequest) -> Any:
        if late(request):
            return "done"
        items = [
            {"id": i["id"], "state": "declined", "reason": "busy"} for i in playbook.Turn(request).data["worklist"]
        ]
        return playbook.answer(items=items)

    report = await report_of(plant(tmp_path / "tree"), {**PLAYS, "fixer": decline})
    assert of_fate(report, "not applied") == dict.fromkeys(CHANGED, "busy")
    assert report["failed_files"] == []
    assert all(item["decided_by"] and not item["applied_by"] for item in report["items"] if item["fate"] != "no fix")


async def test_a_reviewer_that_rejects_a_file_outright_leaves_every_change_of_it_rejected(tmp_path: Path) -> None:
    def reject(request: ModelRequest) -> Any:
        told = playbook.review(request)
        if isinstance(told, str) and '"changes_wanted"' in told:
            return told.replace('"changes_wanted"', '"rejected"')
        return told

    root = plant(tmp_path / "tree")
    report = await report_of(root, {**PLAYS, "reviewer": reject, "fixer": lambda _: "done"})
    assert report["fates"]["fixed"] == report["fates"]["not applied"] == report["fates"]["not reviewed"] == 0
    assert set(of_fate(report, "rejected")) == CHANGED | {"unsafe.py"}
    assert set(report["failed_files"]) == CHANGED
    assert held(root) == FILES


async def test_a_fixer_that_fails_leaves_what_was_found_fit_not_applied(tmp_path: Path) -> None:
    def broken(request: ModelRequest) -> Any:
        if late(request):
            return "done"
        raise RuntimeError("out of order")

    report = await report_of(plant(tmp_path / "tree"), {**PLAYS, "fixer": broken})
    assert of_fate(report, "not applied") == dict.fromkeys(CHANGED, "its change was found fit and was not applied")
    assert set(report["failed_files"]) == CHANGED


async def test_trying_a_change_tells_whether_the_file_holds_it_already(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []

    def reviewer(request: ModelRequest) -> Any:
        turn = playbook.Turn(request)
        if not turn.text.startswith("Judge"):
            seen.extend(msgspec.json.decode(result.text) for _, result in turn.results("try_fix"))
        return playbook.review(request)

    def fixer(request: ModelRequest) -> Any:
        return "done" if late(request) else playbook.fix(request)

    report = await report_of(plant(tmp_path / "tree"), {**PLAYS, "reviewer": reviewer, "fixer": fixer})
    assert report["fates"]["fixed"] == 4
    held_already = [tried for tried in seen if tried["applied"]]
    assert held_already == [{"applies": False, "applied": True, "compiles": True}] * len(CHANGED)
    assert all(tried["applies"] and tried["gone"] for tried in seen if not tried["applied"])


def test_an_answer_that_was_not_taken_is_given_once_more_as_it_was() -> None:
    from actors.messages import ModelReply, Said
    from actors.ports import ModelRequest
    from orchestrator.workflows.telling import correction

    history = (Said("Lint: run the linter."), ModelReply("no"), Said(correction(("x",), "{}")))
    request = ModelRequest("run", "mend/run-0003", "t2", "", history, ())
    for play in (playbook.run, playbook.build, playbook.mend, playbook.review, playbook.fix):
        assert play(request) == "no"
    assert playbook.run(msgspec.structs.replace(request, history=history[:1])) == [call("run_linter")]
