"""A playbook: ordinary functions that decide what each agent says, one for each agent. No network, no key.

A function gets the `ModelRequest` and returns a `ModelReply`, a text, or the calls to make; it may be async. It is
asked once for each step, sees the whole history, and keeps no state of its own, so a resumed session asks it again with
the same history and gets the same answer.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import msgspec

from actors.messages import ModelReply, ReplyStop, ToolCall, Usage
from actors.ports import ModelError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from actors.ports import ModelRequest

    Answer = ModelReply | ToolCall | str | tuple[ToolCall, ...] | list[ToolCall]
    Play = Callable[[ModelRequest], Answer | Awaitable[Answer]]

__all__ = ["FunctionModel", "as_reply", "call"]


def call(name: str, /, *, call_id: str = "", **arguments: Any) -> ToolCall:
    """Return a call of the tool *name*; without a *call_id* the loop names it."""
    return ToolCall(call_id, name, msgspec.json.encode(arguments).decode())


def as_reply(answer: Answer) -> ModelReply:
    """Return *answer* as a reply. Raises TypeError for anything that is neither text, nor calls, nor a reply."""
    if isinstance(answer, ModelReply):
        return answer
    if isinstance(answer, str):
        return ModelReply(answer, usage=ONE_REQUEST)
    calls = (answer,) if isinstance(answer, ToolCall) else tuple(answer)
    if not all(isinstance(item, ToolCall) for item in calls):
        msg = f"a playbook answered {answer!r}; give a text, a call, a list of calls, or a ModelReply"
        raise TypeError(msg)
    return ModelReply("", calls, ReplyStop.TOOL_CALLS, ONE_REQUEST)


ONE_REQUEST = Usage(requests=1)


class FunctionModel:
    """Answers each request by the function of its agent (by definition name), or by *default*.

    Raises `ModelError` for an agent without a function.
    """

    def __init__(self, plays: Mapping[str, Play], *, default: Play | None = None) -> None:
        self._plays = dict(plays)
        self._default = default

    async def reply(self, request: ModelRequest, delta: Callable[[str], None]) -> ModelReply:
        """Return what the agent's function decides; its text is sent as one piece."""
        play = self._plays.get(request.agent, self._default)
        if play is None:
            known = ", ".join(sorted(self._plays)) or "none"
            msg = f"the playbook has no function for the agent {request.agent!r} (it has: {known})"
            raise ModelError(msg)
        try:
            answer = play(request)
            reply = as_reply(await answer if inspect.isawaitable(answer) else answer)
        except SystemExit as error:
            msg = f"the playbook's function for {request.agent!r} wants to exit the program ({error.code})"
            raise ModelError(msg) from error
        if reply.text:
            delta(reply.text)
        return reply
