"""A copy to work on: complete but for what is named, and never half there."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from orchestrator.workspace import copying
from orchestrator.workspace.copying import CopyReport, copy_tree
from orchestrator.workspace.refusal import WorkspaceRefused

if TYPE_CHECKING:
    from pathlib import Path


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.fixture
def src(tmp_path: Path) -> Path:
    root = tmp_path / "src"
    (root / "pkg").mkdir(parents=True)
    (root / "pkg" / "a.py").write_bytes(b"12345")
    (root / "run").write_bytes(b"#!")
    return root


def test_modes_are_copied_and_what_is_read_only_can_be_written_in_the_copy(src: Path, tmp_path: Path) -> None:
    (src / "run").chmod(0o750)
    (src / "pkg").chmod(0o500)
    (src / "pkg" / "a.py").chmod(0o444)
    report = copy_tree(src, tmp_path / "deep" / "dst")
    dst = tmp_path / "deep" / "dst"
    assert report == CopyReport(2, 7, (), (), ())
    assert (dst / "pkg" / "a.py").read_bytes() == b"12345"
    assert stat.S_IMODE((dst / "run").stat().st_mode) == 0o750
    assert stat.S_IMODE((dst / "pkg").stat().st_mode) == 0o700
    assert stat.S_IMODE((dst / "pkg" / "a.py").stat().st_mode) == 0o644
    assert stat.S_IMODE((src / "pkg" / "a.py").stat().st_mode) == 0o444
    assert names_in(dst.parent) == ["dst"]


def test_what_is_left_out_is_listed(src: Path, tmp_path: Path) -> None:
    for name in (".git", ".venv", "pkg/__pycache__"):
        (src / name).mkdir()
        (src / name / "f").touch()
    (src / "out").symlink_to("/etc/passwd")
    (src / "pkg" / "climb").symlink_to("../../elsewhere")
    os.mkfifo(src / "pipe")
    report = copy_tree(src, tmp_path / "dst")
    assert report.left_out == (".git", ".venv", "pkg/__pycache__")
    assert report.links_out == ("out", "pkg/climb")
    assert report.special == ("pipe (fifo)",)
    assert names_in(tmp_path / "dst") == ["pkg", "run"]


def test_links_inside_lead_to_the_copy(src: Path, tmp_path: Path) -> None:
    (src / "absolute").symlink_to(src / "pkg" / "a.py")
    (src / "pkg" / "up").symlink_to("..")
    copy_tree(src, tmp_path / "dst")
    dst = tmp_path / "dst"
    assert (dst / "absolute").resolve() == dst / "pkg" / "a.py"
    assert (dst / "pkg" / "up").resolve() == dst


@pytest.mark.parametrize("bounds", [{"max_files": 1}, {"max_bytes": 6}])
def test_a_tree_over_a_bound_is_refused_and_leaves_nothing(src: Path, tmp_path: Path, bounds: dict[str, int]) -> None:
    with pytest.raises(WorkspaceRefused, match="the tree holds more than"):
        copy_tree(src, tmp_path / "dst", **bounds)
    assert names_in(tmp_path) == ["src"]


def test_a_copy_that_fails_leaves_nothing(src: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def disk_full(_descriptor: int, _mode: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(copying.os, "fchmod", disk_full)
    with pytest.raises(WorkspaceRefused, match="No space left on device"):
        copy_tree(src, tmp_path / "dst")
    assert names_in(tmp_path) == ["src"]


def test_an_empty_destination_is_taken_and_a_used_one_is_not(src: Path, tmp_path: Path) -> None:
    dst = tmp_path / "dst"
    dst.mkdir()
    copy_tree(src, dst)
    with pytest.raises(WorkspaceRefused, match="already there"):
        copy_tree(src, dst)


def test_a_destination_inside_the_source_and_a_source_that_is_no_directory_are_refused(
    src: Path, tmp_path: Path
) -> None:
    with pytest.raises(WorkspaceRefused, match="inside its source"):
        copy_tree(src, src / "pkg" / "dst")
    for source in (src / "run", src / "missing"):
        with pytest.raises(WorkspaceRefused, match="the source is not a directory"):
            copy_tree(source, tmp_path / "dst")
