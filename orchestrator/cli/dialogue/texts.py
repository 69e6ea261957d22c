"""The texts of a session's actors on a screen: the root's as it flows, a child's by lines, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.text import clean, clip
from orchestrator.cli.line import lines_of, one_line

if TYPE_CHECKING:
    from orchestrator.cli.dialogue.screen import Screen

__all__ = ["MAX_LINE", "Texts", "lead", "say"]

MAX_LINE = 400
INDENT = "  "


def lead(path: str) -> str:
    """Return what stands before a line about the actor *path*: a dot for the root, indent and name for a child."""
    depth = path.count("/")
    return f"{INDENT * depth}[{path.rpartition('/')[2]}]" if depth else "·"


def say(screen: Screen, path: str, text: str) -> None:
    """Show *text*, as one line of bounded length, as something about the actor *path*."""
    screen.say(f"{lead(path)} {clip(one_line(text), MAX_LINE)}")


class Texts:
    """What each actor has begun to say. *root* is the actor whose text flows."""

    def __init__(self, screen: Screen, root: str) -> None:
        self._screen = screen
        self._root = root
        self._sent: dict[str, str] = {}
        self._begun: dict[str, str] = {}

    def piece(self, path: str, text: str) -> None:
        """Show a piece of a reply that is streaming."""
        self._sent[path] = self._sent.get(path, "") + text
        self._show(path, text)

    def whole(self, path: str, text: str) -> None:
        """A reply is whole: show what of it has not streamed. One that began anew is shown whole."""
        text, sent = clean(text), clean(self._sent.pop(path, ""))
        if text.startswith(sent):
            self._show(path, text[len(sent) :])
        elif not sent.endswith(text):
            self.cut(path)
            self._show(path, text)
        self.cut(path)

    def cut(self, path: str) -> None:
        """End the text that an actor has begun."""
        self._sent.pop(path, None)
        begun = self._begun.pop(path, "")
        if path == self._root:
            self._screen.still()
        elif begun.strip():
            say(self._screen, path, begun)

    def _show(self, path: str, text: str) -> None:
        if path == self._root:
            self._screen.flow(text)
            return
        *whole, self._begun[path] = lines_of(self._begun.get(path, "") + text).split("\n")
        for line in whole:
            say(self._screen, path, line)
