"""`mend` on a small tree: what becomes of each finding, of the tree, and of its copy."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from orchestrator.products.mend.linter import RULES
from orchestrator.workspace.patch import apply
from tests.products.tree import FILES, Mended, held, plant

if TYPE_CHECKING:
    from pathlib import Path

ODD = "odd pkg/a:b [c] \xe9.py"
FIXED = {"safe.py", ODD, "warned.py"}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ORCHESTRATOR_HOME", str(tmp_path / "home"))
    return plant(tmp_path / "tree")


def linted(root: Path) -> Counter[tuple[str, str]]:
    """Place and code of what the linter itself finds, without the link."""
    options = ["--isolated", "--no-cache", "--exit-zero", "--output-format=json", f"--select={RULES}"]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", *options, "."], cwd=root, capture_output=True, check=True, timeout=60
    )
    found = [item for item in json.loads(done.stdout) if not item["filename"].endswith("link.py")]
    places = (f"{item['filename'].removeprefix(f'{root}/')}:{item['location']['row']}" for item in found)
    return Counter(zip(places, (item["code"] for item in found), strict=True))


def test_every_finding_of_the_linter_has_exactly_one_fate(root: Path, tmp_path: Path) -> None:
    it = Mended(root, tmp_path / "report")
    assert it.code == 0
    told = Counter((place.rpartition(":")[0], code) for place, code, _ in it.fates())
    assert told == linted(root)
    assert sum(it.report["fates"].values()) == it.report["findings"] == len(it.report["items"])
    assert it.report["failed_files"] == []
    assert {item["fate"] for item in it.report["items"]} == {"fixed", "rejected", "no fix"}
    assert all(item["reason"] for item in it.report["items"])
    for item in it.report["items"]:
        assert item["message"]
        assert f"| {item['place']} |" in it.markdown
    assert it.report["remaining"] == it.report["findings"] - it.report["fates"]["fixed"]


def test_what_can_be_fixed_safely_is_fixed_and_what_cannot_stays_byte_for_byte(root: Path, tmp_path: Path) -> None:
    it = Mended(root, tmp_path / "report", "--json")
    copy = next((tmp_path / "home" / "work").glob("*/tree"))
    after = held(copy)
    assert after.keys() == held(root).keys()
    assert {name for name, data in after.items() if data != FILES[name]} == FIXED
    assert {place.rsplit(":", 2)[0] for place, _, fate in it.fates() if fate == "fixed"} == FIXED
    assert {place.rsplit(":", 2)[0] for place, _, fate in it.fates() if fate == "rejected"} == {"safe.py", "unsafe.py"}
    assert after[ODD] == b"# odd\n\nX = 1\n"


def test_the_tree_itself_is_not_touched_by_a_run_on_a_copy(root: Path, tmp_path: Path) -> None:
    modes = {path: path.lstat().st_mtime_ns for path in root.rglob("*")}
    Mended(root, tmp_path / "report")
    assert held(root) == FILES
    assert {path: path.lstat().st_mtime_ns for path in root.rglob("*")} == modes
    assert (tmp_path / "outside.py").read_bytes() == b"import os\n"


def test_in_place_the_tree_itself_is_mended_and_no_copy_is_made(root: Path, tmp_path: Path) -> None:
    it = Mended(root, tmp_path / "report", "--in-place")
    assert it.code == 0
    assert {name for name, data in held(root).items() if data != FILES[name]} == FIXED
    assert held(root).keys() == FILES.keys()
    assert not (tmp_path / "home" / "work").exists()
    assert (tmp_path / "outside.py").read_bytes() == b"import os\n"
    assert not [place for place, _, _ in it.fates() if "link" in place or "outside" in place]


def test_the_patch_turns_the_tree_into_the_mended_copy(root: Path, tmp_path: Path) -> None:
    it = Mended(root, tmp_path / "report")
    pieces = [f"--- a/{piece}" for piece in it.patch.split("--- a/")[1:]]
    names = [piece.partition("\n")[0].removeprefix("--- a/") for piece in pieces]
    assert set(names) == FIXED
    copy = next((tmp_path / "home" / "work").glob("*/tree"))
    for name, piece in zip(names, pieces, strict=True):
        assert apply((root / name).read_text(), piece) == (copy / name).read_text()
    if git := shutil.which("git"):
        subprocess.run([git, "apply", str(it.folder / "changes.patch")], cwd=root, check=True, timeout=60)
        assert held(root) == held(copy)


def test_two_runs_on_the_same_tree_come_to_the_same(root: Path, tmp_path: Path) -> None:
    first, second = (Mended(root, tmp_path / name) for name in ("one", "two"))
    assert first.patch == second.patch
    assert first.fates() == second.fates()
    changing = ("session", "items", "actors")
    one, two = ({key: it.report[key] for key in it.report if key not in changing} for it in (first, second))
    assert one == two
    assert first.report["session"] != second.report["session"]


def test_a_run_on_what_it_has_mended_finds_nothing_more_to_fix_in_the_same_places(root: Path, tmp_path: Path) -> None:
    first = Mended(root, tmp_path / "one", "--in-place")
    once = held(root)
    second = Mended(root, tmp_path / "two", "--in-place")
    assert second.report["findings"] == first.report["remaining"]
    third = Mended(root, tmp_path / "three", "--in-place")
    assert third.report["findings"] == second.report["remaining"]
    assert second.report["fates"]["fixed"] or held(root) == once


def test_the_report_names_who_found_who_judged_and_who_applied(root: Path, tmp_path: Path) -> None:
    it = Mended(root, tmp_path / "report")
    fixed = [item for item in it.report["items"] if item["fate"] == "fixed"]
    assert fixed
    for item in fixed:
        assert item["by"].startswith("mend/mender-")
        assert "/mender-" in item["by"]
        assert "/reviewer-" in item["decided_by"]
        assert item["applied_by"].startswith("mend/fixer-")
    rejected = [item for item in it.report["items"] if item["fate"] == "rejected"]
    assert all(item["decided_by"] and not item["applied_by"] for item in rejected)
    calls = {actor: made for actor, made, _ in it.report["actors"]}
    assert {item["by"] for item in it.report["items"]} <= calls.keys()
    menders = [actor for actor in calls if "/mender-" in actor]
    assert len(menders) == it.report["files"] == len({i["place"].rsplit(":", 2)[0] for i in it.report["items"]})


def test_a_file_that_was_broken_before_is_not_held_against_the_changes(root: Path, tmp_path: Path) -> None:
    it = Mended(root, tmp_path / "report")
    assert it.report["verdict"] == "accepted"
    assert [fate for place, _, fate in it.fates() if place.startswith("broken.py")]


def test_a_compiler_warning_in_the_tree_is_neither_shown_nor_taken_for_a_fault(
    root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    it = Mended(root, tmp_path / "report")
    assert "SyntaxWarning" not in "".join(capfd.readouterr())
    assert ("warned.py:2:8", "F401", "fixed") in it.fates()


@pytest.mark.parametrize("name", ["", "notes.txt"])
def test_a_tree_without_python_is_fine_and_changes_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCHESTRATOR_HOME", str(tmp_path / "home"))
    root = tmp_path / "tree"
    root.mkdir()
    if name:
        (root / name).write_bytes(FILES[name])
    it = Mended(root, tmp_path / "report")
    assert (it.code, it.report["findings"], it.patch) == (0, 0, "")
    assert it.report["verdict"] == "accepted"
