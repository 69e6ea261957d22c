"""The only handle others hold of an actor: its id, and three ways to address it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from actors.messages import EndTurn

__all__ = ["ActorRef", "Post"]


class Post(Protocol):
    """What delivers: the supervisor behind a ref."""

    def tell(self, actor: str, text: str) -> str:
        """Deliver *text*; return ``steered``, ``started`` or ``queued``."""

    async def ask(self, actor: str, text: str, asker: str | None) -> EndTurn:
        """Open a turn with *text* and wait for its end."""

    async def stop(self, actor: str, reason: str) -> None:
        """Stop the actor and all below it."""


@attrs.frozen
class ActorRef:
    """A handle of one actor; it stays valid, and answers with an error, after the actor has ended."""

    id: str
    post: Post = attrs.field(repr=False, eq=False)

    def tell(self, text: str) -> str:
        """Send *text* without waiting: it steers a turn in flight or starts one; the answer says which.

        Raises `MailboxFull` and `ActorStopped`.
        """
        return self.post.tell(self.id, text)

    async def ask(self, text: str, *, asker: str | None = None) -> EndTurn:
        """Open a turn with *text* and return how it ended.

        Raises `MailboxFull`, and `ActorStopped` when the actor ends first: an ask is never left hanging. *asker* is the
        id of the asking actor, if one asks: a cycle of asks is refused (``WouldDeadlock``). On cancel the turn is
        stopped.
        """
        return await self.post.ask(self.id, text, asker)

    async def stop(self, reason: str = "stopped by its holder") -> None:
        """Stop the actor and everything below it; returns when they have ended or were left behind."""
        await self.post.stop(self.id, reason)
