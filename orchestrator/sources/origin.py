"""Where a registered tool comes from, and how that stands: what gate 3 is told."""

from __future__ import annotations

import attrs

from orchestrator.facts import Source
from orchestrator.journal.source import Pin
from orchestrator.sources.connection import Connection, Standing

__all__ = ["Origin"]

GONE = "the server does not list it any more"


@attrs.frozen
class Origin:
    """The tool that the server of *connection* had as *pin* when the session began."""

    connection: Connection = attrs.field(eq=False, repr=False)
    pin: Pin

    def now(self) -> tuple[Source, str]:
        """Return how the tool's source stands, and in words what is wrong with it."""
        connection, name = self.connection, self.pin.name
        if connection.standing is Standing.DOWN:
            return Source.UNAVAILABLE, f"the server {connection.source.name} does not answer ({connection.reason})"
        if name not in connection.tools.changed:
            return Source.ALIVE, ""
        difference = connection.tools.changed[name]
        return (Source.CHANGED, difference) if difference else (Source.UNAVAILABLE, GONE)

    @property
    def version(self) -> str:
        """The version of the tool as the server has it now."""
        return self.connection.tools.now(self.pin).version
