"""The tools of one server for one session: as they were first listed, and how the server has them now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.sources.pins import differences

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.journal.source import Pin

__all__ = ["Pinned"]


class Pinned:
    """``pins`` are the tools as they were first listed, ``None`` before that; no later listing changes them.

    ``changed`` tells for each that is not the same now what is different, an empty text where it is gone; ``bad`` what
    was left out of the last listing. *tell* hears ``(kind, text)`` of what people should see.
    """

    def __init__(self, pins: tuple[Pin, ...] | None, tell: Callable[[str, str], None]) -> None:
        self.pins = pins
        self.bad: tuple[str, ...] = ()
        self.changed: dict[str, str] = {}
        self._now: dict[str, Pin] = {}
        self._tell = tell

    def listed(self, pins: tuple[Pin, ...], bad: tuple[str, ...]) -> None:
        """Take a listing: the first one is pinned, every other is compared with it, and what is new is told."""
        first = self.pins is None
        if self.pins is None:
            self.pins = pins
        changed = differences(self.pins, pins)
        for name, text in changed.items():
            if self.changed.get(name) != text:
                self._tell("tool_definition_changed", f"{name}: {text or 'it is not there any more'}")
        new = sorted({pin.name for pin in pins} - {pin.name for pin in self.pins} - self._now.keys())
        if new:
            self._tell("tools_added", f"not taken in before a new session: {', '.join(new)}")
        for fault in bad:
            if not first and fault not in self.bad:
                self._tell("tool_left_out", fault)
        self._now = {pin.name: pin for pin in pins}
        self.changed, self.bad = changed, bad

    def now(self, pin: Pin) -> Pin:
        """Return the tool *pin* as its server has it now; one that it does not list is as it was."""
        return self._now.get(pin.name, pin)
