"""The scripts say what is wrong and trust nothing they fetch."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING

import pytest

from tests.contracts.tree import ROOT

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = (
    "scripts/run",
    "scripts/setup",
    "scripts/test",
    "scripts/check",
    "scripts/bench",
    "scripts/prove",
    "scripts/mutate",
    ".ci/run",
)


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )


def unpack(archive: Path, destination: Path) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, str(ROOT / "scripts" / "unpack.py"), str(archive), "top", str(destination))


def archive_of(folder: Path, *members: tarfile.TarInfo) -> Path:
    path = folder / "made.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for member in members:
            member.size = 2 if member.isreg() else 0
            tar.addfile(member, io.BytesIO(b"x\n") if member.isreg() else None)
    return path


def plain(name: str) -> tarfile.TarInfo:
    return tarfile.TarInfo(name)


def link(name: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, "/etc/passwd"
    return member


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_executable_and_stops_at_the_first_error(command: str) -> None:
    path = ROOT / command
    assert os.access(path, os.X_OK)
    assert "\nset -euo pipefail\n" in path.read_text(encoding="utf-8")
    assert run("bash", "-n", str(path)).returncode == 0


def test_an_interpreter_that_does_not_fit_is_refused_by_name() -> None:
    done = run(str(ROOT / "scripts" / "setup"), PYTHON="/nowhere/python")
    assert done.returncode == 2
    assert "PYTHON=/nowhere/python is not a Python 3.11, 3.12 or 3.13" in done.stderr


def test_what_is_no_name_of_an_extra_is_refused() -> None:
    done = run(str(ROOT / "scripts" / "setup"), "dev; true")
    assert (done.returncode, done.stdout) == (2, "")
    assert "'dev; true' is not the name of an extra" in done.stderr


def test_plain_files_are_unpacked_with_ordinary_modes(tmp_path: Path) -> None:
    member = plain("top/a/b.py")
    member.mode = 0o4777
    done = unpack(archive_of(tmp_path, plain("top/c.txt"), member), tmp_path / "out" / "tree")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "tree" / "a" / "b.py").read_text(encoding="utf-8") == "x\n"
    assert not (tmp_path / "out" / "tree" / "a" / "b.py").stat().st_mode & 0o7111
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["tree"]


@pytest.mark.parametrize(
    "member",
    [
        plain("top/../../evil"),
        plain("/top/evil"),
        plain("other/evil"),
        plain("top\\..\\evil"),
        link("top/link"),
        link("top/hard", tarfile.LNKTYPE),
        link("top/pipe", tarfile.FIFOTYPE),
    ],
    ids=lambda member: member.name,
)
def test_an_archive_with_anything_else_is_refused_and_leaves_nothing(tmp_path: Path, member: tarfile.TarInfo) -> None:
    done = unpack(archive_of(tmp_path, plain("top/fine"), member), tmp_path / "out" / "tree")
    assert done.returncode == 2
    assert "is refused" in done.stderr
    assert "Traceback" not in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_what_is_no_archive_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "made.tar.gz").write_bytes(b"not an archive")
    done = unpack(tmp_path / "made.tar.gz", tmp_path / "out" / "tree")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
