"""What the workspace says no with."""

from __future__ import annotations

__all__ = ["WorkspaceRefused"]


class WorkspaceRefused(Exception):
    """A path or a piece of file work was refused, and nothing was changed.

    :ivar path: the path as it was asked for.
    :ivar rule: the rule that refused it.
    :ivar resolved: where the path leads: relative to the root when inside, absolute when not.
    :ivar remedy: what would be accepted instead.
    """

    def __init__(self, path: str, rule: str, resolved: str, remedy: str) -> None:
        """Keep the four parts as fields; the text is made from them."""
        super().__init__(path, rule, resolved, remedy)
        self.path = path
        self.rule = rule
        self.resolved = resolved
        self.remedy = remedy

    def __str__(self) -> str:
        """Return path, rule, resolved path and remedy, in that order, on one line."""
        return f"{self.path!r} is refused: {self.rule} (it leads to {self.resolved!r}). {self.remedy}"
