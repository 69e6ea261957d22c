"""Which files of a tree do not compile: asked of a process of its own, which writes nothing and imports nothing.

As a script (``python compiling.py ROOT``) it prints the paths that do not compile as one JSON array.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

__all__ = ["COMMAND", "broken"]

COMMAND = (sys.executable, "-I", "-W", "ignore", __file__)


def broken(root: Path) -> list[str]:
    """Return the ``*.py`` files beneath *root* that do not compile, relative and sorted; links are left out."""
    paths = sorted(path for path in root.rglob("*.py") if path.is_file() and not path.is_symlink())
    return [path.relative_to(root).as_posix() for path in paths if not compiles(path)]


def compiles(path: Path) -> bool:
    """Tell whether the file at *path* can be read and compiled."""
    try:
        compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError, OSError, RecursionError, MemoryError):
        return False
    return True


if __name__ == "__main__":
    sys.stdout.write(json.dumps(broken(Path(sys.argv[1]))))
