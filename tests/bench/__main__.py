"""``python -m tests.bench [NAME…] [--json] [--quick]``: print every figure, or those named, beside its floor."""

from __future__ import annotations

import argparse
import platform
import sys

import msgspec

from tests.bench.figures import FIGURES
from tests.bench.row import table


def main() -> int:
    """Measure what the command line names. Exit 2 for a name that is none."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Ratios to a bare asyncio actor, in one run.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FIGURES)}; all without one")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, no 10,000 children: under 20 s")
    asked = parser.parse_args()
    unknown = [name for name in asked.names if name not in FIGURES]
    if unknown:
        parser.error(f"{unknown[0]!r} is no figure; there are {', '.join(FIGURES)}")
    rows = []
    for name in asked.names or FIGURES:
        print(f"bench: {name}", file=sys.stderr)
        rows.extend(FIGURES[name](quick=asked.quick))
    if asked.json:
        made = {"python": platform.python_version(), "machine": platform.machine()}
        figures = [{**msgspec.to_builtins(row), "verdict": row.verdict} for row in rows]
        print(msgspec.json.encode({**made, "figures": figures}).decode())
    else:
        print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
