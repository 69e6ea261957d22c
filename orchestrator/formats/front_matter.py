"""A Markdown file with front matter: one YAML mapping between two lines ``---``, and the text below it.

Marks count lines and columns of the whole file. The text below has plain line ends, and no blanks around it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.workflows.fault import Mark
from orchestrator.workflows.load import read_mapping

if TYPE_CHECKING:
    from orchestrator.workflows.document import Mapping
    from orchestrator.workflows.fault import FaultLog

__all__ = ["read_front_matter"]

FENCE = "---"


def read_front_matter(
    text: str, place: str, keys: tuple[str, ...], faults: FaultLog
) -> tuple[Mapping | None, Mark, str]:
    """Return the mapping of *text*, where the text below it begins, and that text; ``None`` and a fault for no mapping.

    *keys* are those that belong in the mapping, for the message only.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    top = Mark(place, 1, 1)
    if lines[0].rstrip() != FENCE:
        faults.add(
            top, "the file has no front matter", f"Begin with '{FENCE}', then {', '.join(keys)}, then '{FENCE}'."
        )
        return None, top, ""
    end = next((number for number, line in enumerate(lines) if number and line.rstrip() == FENCE), None)
    if end is None:
        faults.add(top, "the front matter has no end", f"Put a line '{FENCE}' below its last key.")
        return None, top, ""
    if not any(line.split("#")[0].strip() for line in lines[1:end]):
        faults.add(top, "the front matter is empty", f"Write keys such as {', '.join(keys)}.")
        return None, top, ""
    head = "\n".join(("", *lines[1:end], ""))
    return read_mapping(head, place, keys, faults), Mark(place, end + 2, 1), "\n".join(lines[end + 1 :]).strip()
