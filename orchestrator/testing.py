"""Doubles for tests of your own: a scripted model, a playbook model, a clock that moves when told."""

from __future__ import annotations

import heapq
from collections import deque
from typing import TYPE_CHECKING, Any

from actors.ports import ModelError
from orchestrator.models.function import FunctionModel, as_reply, call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from actors.messages import ModelReply
    from actors.ports import ModelRequest
    from orchestrator.models.function import Answer

__all__ = ["FunctionModel", "ManualClock", "ScriptedModel", "call"]


class UnexpectedCall(ModelError):
    """A scripted model was asked more often than its script says, or for an agent without a script."""


class UnusedCalls(AssertionError):
    """A script was not played to its end; ``left`` counts what remains for each agent."""

    def __init__(self, left: dict[str, int]) -> None:
        self.left = left
        super().__init__(f"the script was not played to its end: {left}")


class ScriptedModel:
    """Answers each agent (by definition name) with the next entry of its script.

    An entry is a text, a call, a list of calls, a `ModelReply`, or an exception to raise. ``requests`` keeps every
    request. An unexpected request fails its turn and is kept in ``unexpected``; `check` raises for both faults.
    """

    def __init__(self, **scripts: Iterable[Answer | BaseException]) -> None:
        self._scripts: dict[str, deque[Any]] = {name: deque(script) for name, script in scripts.items()}
        self.requests: list[ModelRequest] = []
        self.unexpected: list[ModelRequest] = []

    async def reply(self, request: ModelRequest, delta: Callable[[str], None]) -> ModelReply:
        """Return the next entry of the agent's script."""
        self.requests.append(request)
        script = self._scripts.get(request.agent)
        if not script:
            self.unexpected.append(request)
            msg = f"the script has nothing left for {request.agent!r}"
            raise UnexpectedCall(msg)
        answer = script.popleft()
        if isinstance(answer, BaseException):
            raise answer
        reply = as_reply(answer)
        if reply.text:
            delta(reply.text)
        return reply

    def check(self) -> None:
        """Raise `UnexpectedCall` or `UnusedCalls` unless the script was played exactly."""
        if self.unexpected:
            msg = f"unexpected requests for {[request.agent for request in self.unexpected]}"
            raise UnexpectedCall(msg)
        left = {name: len(script) for name, script in self._scripts.items() if script}
        if left:
            raise UnusedCalls(left)


class ManualTimer:
    """A call that a `ManualClock` will make."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Do not make the call."""
        self.call = None


class ManualClock:
    """A clock that stands still until `advance` or `jump` moves it."""

    def __init__(self, start: float = 1000.0, wall_ms: int = 1_700_000_000_000) -> None:
        self._now = start
        self._wall_ms = wall_ms
        self._due: list[tuple[float, int, ManualTimer]] = []
        self._made = 0

    def now(self) -> float:
        """Return monotonic seconds."""
        return self._now

    def wall_ms(self) -> int:
        """Return milliseconds of the wall clock."""
        return self._wall_ms

    def call_at(self, when: float, call: Callable[[], None]) -> ManualTimer:
        """Make *call* once the clock has reached *when*."""
        timer = ManualTimer(call)
        self._made += 1
        heapq.heappush(self._due, (when, self._made, timer))
        return timer

    def advance(self, seconds: float) -> None:
        """Move both clocks by *seconds* and make every call that is due, in order."""
        self._now += seconds
        self._wall_ms += int(seconds * 1000)
        while self._due and self._due[0][0] <= self._now:
            timer = heapq.heappop(self._due)[2]
            if timer.call is not None:
                timer.call()

    def jump(self, seconds: float) -> None:
        """Move only the wall clock, as a person or a time server does."""
        self._wall_ms += int(seconds * 1000)
