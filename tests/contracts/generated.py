"""The generated parts of ARCHITECTURE.md; ``python -m tests.contracts.generated --write`` renews them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from actors.loop import TRANSITIONS
from orchestrator.denials import CODES
from orchestrator.policy import GATES, OFFERED

DOCUMENT = Path(__file__).parents[2] / "ARCHITECTURE.md"
BLOCK = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def gates() -> str:
    """Return the table of gates with their codes and remedies."""
    lines = ["| # | | gate | codes |", "|---|---|---|---|"]
    for number, gate in enumerate(GATES, 1):
        codes = ", ".join(f"`{code}` ({retry.value})" for code, (at, _, retry) in CODES.items() if at == number)
        text = (gate.__doc__ or "").strip().partition(": ")[2].rstrip(".")
        lines.append(f"| {number} | {'O' if gate in OFFERED else 'C'} | {text} | {codes} |")
    return "\n".join(lines) + "\n"


def transitions() -> str:
    """Return the table of the loop's transitions."""
    lines = ["| phase | fact | handled by |", "|---|---|---|"]
    lines += [
        f"| {phase.value} | `{fact.__name__}` | `{handler.__name__}` |"
        for (phase, fact), handler in TRANSITIONS.items()
    ]
    return "\n".join(lines) + "\n"


MAKERS = {"gates": gates, "transitions": transitions}


def renewed(text: str) -> str:
    """Return the document *text* with every generated part as the code has it now."""
    return BLOCK.sub(lambda found: found.group(1) + MAKERS[found.group(2)]() + found.group(3), text)


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m tests.contracts.generated --write")
    DOCUMENT.write_text(renewed(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
