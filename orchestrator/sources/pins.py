"""The tools of a server as they were when a session first saw them, and what has changed since. Pure.

A pin is on record, so that a session that is taken up again still has the tools it was started with, and can tell when
a server no longer means the same by a name.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

import msgspec

from actors.grants import Access
from actors.schema import canonical
from actors.text import clean, clip
from orchestrator.journal.source import Pin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["TASK_ONLY", "differences", "hinted", "pin_of"]

MAX_DIFFERENCE = 2000
MAX_COMPARED = 200
"""Lines on each side, from the first that differs: comparing takes longer than their number."""
TASK_ONLY = "taskOnly"
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def pin_of(entry: Mapping[str, Any]) -> Pin:
    """Return the pin of one entry of a listing, whose name and schema are known to be a text and an object."""
    schema, output, hints = entry["inputSchema"], entry.get("outputSchema"), entry.get("annotations")
    told = hints if isinstance(hints, dict) else {}
    return Pin(
        clean(entry["name"]),
        clean(entry.get("description") or ""),
        canonical(schema),
        canonical(output) if isinstance(output, dict) else "",
        tuple((name, told[name]) for name in HINTS if isinstance(told.get(name), bool)) + _task(entry.get("execution")),
    )


def _task(execution: Any) -> tuple[tuple[str, bool], ...]:
    """Return the mark of a tool that its server runs as a task only, as a part of the older protocol has it."""
    needed = isinstance(execution, dict) and execution.get("taskSupport") == "required"
    return ((TASK_ONLY, True),) if needed else ()


def hinted(pin: Pin) -> Access:
    """Return the access that a server's own hints speak of; where they say nothing it is external."""
    hints = dict(pin.hints)
    if hints.get("readOnlyHint"):
        return Access.READ
    reversible = not hints.get("destructiveHint", True) and not hints.get("openWorldHint", True)
    return Access.WRITE if reversible else Access.EXTERNAL


def differences(old: Iterable[Pin], new: Iterable[Pin]) -> dict[str, str]:
    """Return, for each tool of *old* that is not the same in *new*, what is different; empty text: it is gone."""
    present = {pin.name: pin for pin in new}
    found = {}
    for pin in old:
        now = present.get(pin.name)
        if now is None:
            found[pin.name] = ""
        elif now != pin:
            found[pin.name] = _difference(pin, now)
    return found


def _difference(old: Pin, new: Pin) -> str:
    """Return what is different, never empty."""
    before, after = _lines(old), _lines(new)
    pairs = enumerate(zip(before, after, strict=False))
    start = next((number for number, (one, other) in pairs if one != other), min(len(before), len(after)))
    before, after = before[start : start + MAX_COMPARED], after[start : start + MAX_COMPARED]
    lines = difflib.unified_diff(before, after, lineterm="", n=0)
    told = "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))
    return clip(told, MAX_DIFFERENCE) or "its description has other line ends"


def _lines(pin: Pin) -> list[str]:
    """Return a pin as lines that can be compared."""
    lines = [f"description: {line}" for line in pin.description.splitlines()]
    for label, text in (("schema", pin.schema), ("answers", pin.output)):
        if text:
            shown = msgspec.json.format(text, indent=1)
            lines += [f"{label}: {line}" for line in shown.splitlines()]
    return [*lines, *(f"hint: {name}={value}" for name, value in pin.hints)]
