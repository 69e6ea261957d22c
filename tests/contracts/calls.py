"""Function calls per operation as calls.toml records them: ``python -m tests.contracts.calls [--write]``.

The workload is the benchmark's. Counts are the same on every machine with one minor version of Python, so the file says
which one it was recorded with.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from pathlib import Path
from typing import Any

from tests.bench.counts import COUNTED, counted

RECORD = Path(__file__).with_name("calls.toml")
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
HEAD = """\
# Function calls of one operation, Python and C together. A number may only fall.
# Written by: python -m tests.contracts.calls --write
"""


def recorded() -> dict[str, Any]:
    """What calls.toml says."""
    return tomllib.loads(RECORD.read_text(encoding="utf-8"))


def render(python: str, calls: dict[str, float]) -> str:
    """The text of calls.toml for these figures."""
    lines = "".join(f'"{name}" = {number:g}\n' for name, number in calls.items())
    return f'{HEAD}\npython = "{python}"\n\n[calls]\n{lines}'


def main() -> None:
    """Count, and print or write the file."""
    parser = argparse.ArgumentParser(description="Count the function calls of each operation.")
    parser.add_argument("--write", action="store_true", help="rewrite calls.toml")
    text = render(PYTHON, {name: counted(name) for name in COUNTED})
    if parser.parse_args().write:
        RECORD.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
