"""Log lines of a chat: on its screen, where they do not break the typed line, and only those that no event tells."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.cli.dialogue.screen import Screen

__all__ = ["logged_on"]

TOLD = frozenset({"actor restarted", "actor gave up", "call denied", "journal failed"})
FIELDS = ("actor", "calls", "approval", "code", "reason")


class ScreenLog(logging.Handler):
    """Shows each log line on *screen*."""

    def __init__(self, screen: Screen) -> None:
        super().__init__()
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        """Show *record*, unless an event tells it."""
        if record.msg not in TOLD:
            fields = (f"{name} {getattr(record, name)}" for name in FIELDS if hasattr(record, name))
            self._screen.say(f"· {record.getMessage()}: {', '.join(fields)}")


@contextmanager
def logged_on(screen: Screen) -> Iterator[None]:
    """Show what the library logs on *screen* meanwhile."""
    logger, handler = logging.getLogger("orchestrator"), ScreenLog(screen)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
