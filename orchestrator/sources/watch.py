"""What a connection reports to its session, and asks of it: a protocol, so that a connection knows no journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from actors.tools import ToolContext

__all__ = ["Watch"]


class Watch(Protocol):
    """The session, as its connections see it."""

    async def started(self, mark: str, source: str) -> None:
        """A process with *mark* is about to be started; returns when that is on record for good."""

    def running(self, mark: str, leader: int) -> None:
        """The process with *mark* is the one of number *leader*, the first of a group of its own."""

    def ended(self, mark: str, *, gone: bool) -> None:
        """Nothing with *mark* runs any more, or, if not *gone*, something could not be ended."""

    def tell(self, kind: str, source: str, text: str) -> None:
        """People watching should see this."""

    def progress(self, context: ToolContext) -> Callable[[float, float | None, str | None], None]:
        """Return what hears of the progress of the call *context*."""

    async def ask(self, context: ToolContext, source: str, message: str, schema: Mapping[str, Any] | None) -> Any:
        """Ask the person: return the content of the answer (a dict), ``False`` for a no, ``None`` for no answer."""
