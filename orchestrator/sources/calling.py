"""One call of a server's tool, and what the server asks of a person while it runs.

The modern protocol asks by its answer, which is driven here, call by call, so that a question is always the question
of a known call. In the older one the server asks by itself; such a question belongs to the call in flight, and where
several are, nobody can tell whose it is: it is declined.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from actors.errors import ToolFault
from actors.text import clip
from orchestrator.sources.content import as_answer, as_json
from orchestrator.sources.ending import MAX_SAID

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from actors.tools import ToolContext
    from orchestrator.sources.watch import Watch

    Show = Callable[[float, float | None, str | None], None]

__all__ = ["Answered", "Flight", "Questions", "call_tool"]

MAX_ROUNDS = 10
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 0.25


class Answered(msgspec.Struct, frozen=True):
    """What a tool answered: *failed* as the server says, *structured* as JSON text where it gave a value."""

    text: str
    failed: bool
    structured: str = ""


class Flight:
    """One call in flight: what it is for, what shows its progress, the questions that a person is asked for it."""

    def __init__(self, context: ToolContext, show: Show) -> None:
        self.context = context
        self.beats = 0
        self.asked = 0
        self.asking: set[asyncio.Task[Any]] = set()
        self._show = show
        self._furthest = float("-inf")

    async def heard(self, done: float, total: float | None, message: str | None) -> None:
        """Take note of its progress, which counts while it goes on."""
        if done > self._furthest:
            self._furthest = done
            self.beats += 1
            self._show(done, total, message)

    def land(self) -> None:
        """The call is over: withdraw every question that was asked for it."""
        for asking in self.asking:
            asking.cancel()


class Questions:
    """The questions of one server; *flights* are its calls in flight."""

    def __init__(self, source: str, watch: Watch, flights: Collection[Flight]) -> None:
        self.source = source
        self._watch = watch
        self._flights = flights

    async def asked_by_itself(self, context: Any, params: Any) -> Any:  # noqa: ARG002  # the SDK's form
        """Answer what a server of the older protocol asks by itself."""
        flights = tuple(self._flights)
        if len(flights) != 1:
            why = f"it asked with {len(flights)} calls in flight, so nobody could tell for whom"
        elif flights[0].asked >= MAX_ROUNDS:
            why = f"it had asked {MAX_ROUNDS} times for one call"
        else:
            return await self.ask(flights[0], params)
        from mcp_types import ElicitResult

        self._watch.tell("question_declined", self.source, clip(f"{why}: {params.message}", MAX_SAID))
        return ElicitResult(action="cancel")

    async def ask(self, flight: Flight, params: Any) -> Any:
        """Ask the person for the call *flight*, and return what the protocol calls the result of an elicitation."""
        from mcp_types import ElicitResult

        flight.asked += 1
        schema, link = getattr(params, "requested_schema", None), getattr(params, "url", None)
        message = f"{params.message} ({link})" if link else params.message
        said = await self._said(flight, message, schema)
        if said is None:
            return ElicitResult(action="cancel")
        if said is False:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content=said if schema is not None else None)

    async def _said(self, flight: Flight, message: str, schema: Any) -> Any:
        """Return what the person says; ``None`` as well when the call it is for is over meanwhile."""
        question = self._watch.ask(flight.context, self.source, message, schema)
        asking = asyncio.get_running_loop().create_task(question)
        flight.asking.add(asking)
        try:
            await asyncio.wait({asking})
            return None if asking.cancelled() else asking.result()
        finally:
            asking.cancel()
            flight.asking.discard(asking)
            flight.beats += 1


async def call_tool(
    sdk: Any, questions: Questions, flight: Flight, tool: str, arguments: Mapping[str, Any]
) -> Answered:
    """Call *tool* and return what it answered; a question on the way is asked of the person.

    Raises `ToolFault` for a server that asks without end or for what it is not offered, and what the SDK raises.
    """
    from mcp_types import InputRequiredResult

    responses: dict[str, Any] | None = None
    state, pause = None, FIRST_PAUSE_S
    for _ in range(MAX_ROUNDS):
        result = await _once(sdk, tool, dict(arguments), flight, responses, state)
        if not isinstance(result, InputRequiredResult):
            value = result.structured_content
            return Answered(as_answer(result), bool(result.is_error), "" if value is None else as_json(value))
        state = result.request_state
        responses = {
            key: await _answer(questions, flight, request) for key, request in (result.input_requests or {}).items()
        }
        if not responses:
            responses = None
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)
    raise ToolFault(f"The server {questions.source} asked {MAX_ROUNDS} times and did not answer.")


async def _once(sdk: Any, tool: str, arguments: dict[str, Any], flight: Flight, responses: Any, state: Any) -> Any:
    """Call once; where the server says that what was listed has changed meanwhile, list and call once more."""
    from mcp import MCPError
    from mcp_types import HEADER_MISMATCH

    async def once() -> Any:
        return await sdk.session.call_tool(
            tool,
            arguments,
            progress_callback=flight.heard,
            input_responses=responses,
            request_state=state,
            allow_input_required=True,
        )

    try:
        return await once()
    except MCPError as error:
        if error.code != HEADER_MISMATCH:
            raise
        await sdk.list_tools()
        return await once()


async def _answer(questions: Questions, flight: Flight, request: Any) -> Any:
    """Return the answer to what a server asks in the middle of a call."""
    from mcp_types import ElicitRequest

    if not isinstance(request, ElicitRequest):
        raise ToolFault(f"The server {questions.source} asked for {request.method}, which is not offered to it.")
    return await questions.ask(flight, request.params)
