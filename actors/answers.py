"""What whoever is held to a JSON Schema is told: before the answer, and once more after one that is not as asked. Pure.

Rules:

- A schema is told before the first answer, by `ASKED`; a correction names what is wrong with the answer that came.
- A text that is one Markdown fence around JSON counts as that JSON. Models fence by habit, nothing is lost with the
  fence, and whoever reads the output needs no second parser. Any other text beside the JSON is a fault.
"""

from __future__ import annotations

import msgspec

__all__ = ["ASKED", "CORRECTION", "correction", "unfenced"]

ASKED = "Answer with JSON that satisfies this schema, and nothing else:\n"
CORRECTION = "Your answer could not be taken: "
OPENINGS = frozenset({"```", "```json"})
CLOSING = "```"


def correction(fault: str) -> str:
    """Return what a model is told whose answer has *fault*."""
    return (
        f"{CORRECTION}{fault}.\nGive the whole answer once more: JSON that satisfies the schema of what was asked, and "
        "nothing else."
    )


def unfenced(text: str) -> str:
    """Return the JSON in *text* when one fence, marked as JSON or as nothing, is around all of it; else *text*."""
    opening, newline, rest = text.strip().partition("\n")
    if not newline or opening.rstrip().lower() not in OPENINGS or not rest.endswith(CLOSING):
        return text
    inside = rest.removesuffix(CLOSING).strip()
    try:
        msgspec.json.decode(inside)
    except (ValueError, RecursionError):
        return text
    return inside
