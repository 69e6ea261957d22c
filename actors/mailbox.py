"""A bounded mailbox with one reader: turns in order of arrival, and a control lane that is never refused.

A turn waits here until the actor is idle. A message for the turn in flight does not wait here: the loop takes it in at
arrival, and *steered* tells how many it holds, so the bound counts both. The control lane holds at most one stop for
each turn. Queues exist only while something is in them: an idle actor's mailbox is a few empty fields.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from actors.errors import MailboxFull

if TYPE_CHECKING:
    from actors.messages import TurnOpened, TurnStopped

__all__ = ["Mailbox"]


class Mailbox:
    """The mail of the actor *owner*, at most *capacity* messages; ``refused`` counts those not taken."""

    __slots__ = ("_stops", "_turns", "capacity", "owner", "refused")

    def __init__(self, owner: str, capacity: int) -> None:
        self.owner = owner
        self.capacity = capacity
        self.refused = 0
        self._turns: deque[TurnOpened] | None = None
        self._stops: dict[str, TurnStopped] | None = None

    def __len__(self) -> int:
        """How many turns wait."""
        return len(self._turns) if self._turns else 0

    def check(self, steered: int = 0) -> None:
        """Raise `MailboxFull`, and count the refusal, when waiting turns and *steered* messages reach the bound."""
        if len(self) + steered >= self.capacity:
            self.refused += 1
            raise MailboxFull(self.owner, self.capacity)

    def put(self, fact: TurnOpened, steered: int = 0) -> None:
        """Take a turn in. Raises `MailboxFull`."""
        self.check(steered)
        if self._turns is None:
            self._turns = deque()
        self._turns.append(fact)

    def take(self) -> TurnOpened | None:
        """Return the next turn to open, or ``None``."""
        if self._turns is None:
            return None
        fact = self._turns.popleft()
        if not self._turns:
            self._turns = None
        return fact

    def stop(self, fact: TurnStopped) -> None:
        """Take a stop in by the control lane. It may come before the turn it stops; the first one counts."""
        if self._stops is None:
            self._stops = {}
        self._stops.setdefault(fact.turn, fact)

    def stopping(self, turn: str) -> bool:
        """Tell whether a stop of *turn* waits in the control lane."""
        return self._stops is not None and turn in self._stops

    def take_stop(self, turn: str) -> TurnStopped | None:
        """Return the stop of *turn*, if one came, and forget it."""
        if self._stops is None:
            return None
        fact = self._stops.pop(turn, None)
        if not self._stops:
            self._stops = None
        return fact
