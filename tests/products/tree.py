"""A small source tree with one file of each kind, and what `mend` says of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from orchestrator.cli.main import call

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FILES: dict[str, bytes] = {
    "clean.py": b'"""Fine."""\n\nX = 1\n',
    "safe.py": b"# safe\nimport os\nimport sys\n\n\ndef argument():\n    return sys.argv[ 1 ]\n\n\nx = dict()\n",
    "unsafe.py": b"def same(a):\n    if a == None:\n        return True\n    return False\n",
    "broken.py": b"def broken(:\n    pass\n",
    "dos.py": b"import os\r\n\r\nX = 1\r\n",
    "marked.py": b"\xef\xbb\xbfimport os\n\nX = 1\n",
    "latin.py": b"# caf\xe9\nX = 1\n",
    "empty.py": b"",
    "odd pkg/a:b [c] \xe9.py": b"# odd\nimport os\n\nX = 1\n",
    "warned.py": b'# warned\nimport os\n\nX = "\\d"\n',
    "notes.txt": b"import os\n",
}


def plant(root: Path) -> Path:
    """Make the tree at *root*, with a link that leads out of it; return *root*."""
    for name, data in FILES.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    outside = root.parent / "outside.py"
    outside.write_bytes(b"import os\n")
    (root / "link.py").symlink_to(outside)
    return root


def held(root: Path, leave_out: Iterable[str] = ("link.py",)) -> dict[str, bytes]:
    """What stands beneath *root*."""
    files = (path for path in root.rglob("*") if path.is_file())
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in files
        if path.name not in leave_out and ".ruff_cache" not in path.parts
    }


class Mended:
    """One run of ``orchestrator run mend``: its exit code and everything it left."""

    def __init__(self, root: Path, folder: Path, *more: str) -> None:
        self.folder = folder
        self.code = call(["run", "mend", "--workspace", str(root), "--report", str(folder), *more])
        self.read()

    def read(self) -> None:
        """Take the report from the folder."""
        self.report: dict[str, Any] = json.loads((self.folder / "report.json").read_text())
        self.markdown = (self.folder / "report.md").read_text()
        self.patch = (self.folder / "changes.patch").read_text()

    def fates(self) -> list[tuple[str, str, str]]:
        """Place, code and fate of each finding."""
        return fates(self.report)


def fates(report: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Place, code and fate of each finding of a report, sorted."""
    return sorted((item["place"], item["code"], item["fate"]) for item in report["items"])
