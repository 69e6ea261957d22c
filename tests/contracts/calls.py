"""Function calls per operation as calls.toml records them: ``python -m tests.contracts.calls [--write]``.

The workload is the benchmark's. A count is the same on every machine, but not on every version of Python: it is
recorded on the oldest we support, and the newer ones make no more.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from pathlib import Path

from tests.bench.counts import COUNTED, counted

RECORD = Path(__file__).with_name("calls.toml")
OLDEST = (3, 11)
ON_OLDEST = sys.version_info[:2] == OLDEST
HEAD = """\
# Function calls of one operation, Python and C together, on Python 3.11. A number may only fall.
# Written by: python -m tests.contracts.calls --write
"""


def recorded() -> dict[str, float]:
    """What calls.toml says."""
    calls: dict[str, float] = tomllib.loads(RECORD.read_text(encoding="utf-8"))["calls"]
    return calls


def render(calls: dict[str, float]) -> str:
    """The text of calls.toml for these figures."""
    lines = "".join(f'"{name}" = {number:g}\n' for name, number in calls.items())
    return f"{HEAD}\n[calls]\n{lines}"


def main() -> None:
    """Count, and print or write the file."""
    parser = argparse.ArgumentParser(description="Count the function calls of each operation.")
    parser.add_argument("--write", action="store_true", help="rewrite calls.toml")
    write = parser.parse_args().write
    if write and not ON_OLDEST:
        parser.error(f"the figures are those of Python {OLDEST[0]}.{OLDEST[1]}; run it there")
    text = render({name: counted(name) for name in COUNTED})
    if write:
        RECORD.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
