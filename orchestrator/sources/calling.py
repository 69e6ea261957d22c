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
from orchestrator.sources.content import as_answer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from actors.tools import ToolContext
    from orchestrator.sources.watch import Watch

    Heard = Callable[[float, float | None, str | None], Awaitable[None]]

__all__ = ["Answered", "Questions", "call_tool"]

MAX_ROUNDS = 10
MAX_SAID = 800
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 0.25


class Answered(msgspec.Struct, frozen=True):
    """What a tool answered: *failed* as the server says, *structured* as JSON text where it gave a value."""

    text: str
    failed: bool
    structured: str = ""


class Questions:
    """The questions of one server; *calls* are those in flight."""

    def __init__(self, source: str, watch: Watch, calls: Mapping[int, ToolContext]) -> None:
        self.source = source
        self._asking: list[tuple[ToolContext, asyncio.Task[Any]]] = []
        self._watch = watch
        self._calls = calls

    @property
    def open(self) -> bool:
        """Whether a person is being asked."""
        return bool(self._asking)

    async def asked_by_itself(self, context: Any, params: Any) -> Any:  # noqa: ARG002  # the SDK's form
        """Answer what a server of the older protocol asks by itself."""
        from mcp_types import ElicitResult

        calls = tuple(self._calls.values())
        if len(calls) != 1:
            text = f"it asked with {len(calls)} calls in flight, so nobody could tell for whom: {params.message}"
            self._watch.tell("question_declined", self.source, clip(text, MAX_SAID))
            return ElicitResult(action="cancel")
        return await self.ask(calls[0], params)

    async def ask(self, context: ToolContext, params: Any) -> Any:
        """Ask the person for the call *context*, and return what the protocol calls the result of an elicitation."""
        from mcp_types import ElicitResult

        schema, link = getattr(params, "requested_schema", None), getattr(params, "url", None)
        message = f"{params.message} ({link})" if link else params.message
        said = await self._said(context, message, schema)
        if said is None:
            return ElicitResult(action="cancel")
        if said is False:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content=said if schema is not None else None)

    async def _said(self, context: ToolContext, message: str, schema: Any) -> Any:
        """Return what the person says; ``None`` as well when the call it is for is over meanwhile."""
        asking = asyncio.get_running_loop().create_task(self._watch.ask(context, self.source, message, schema))
        self._asking.append((context, asking))
        try:
            await asyncio.wait({asking})
            return None if asking.cancelled() else asking.result()
        finally:
            asking.cancel()
            self._asking.remove((context, asking))

    def withdraw(self, context: ToolContext) -> None:
        """Withdraw every question for the call *context*, which is over."""
        for each, asking in self._asking:
            if each is context:
                asking.cancel()


async def call_tool(
    sdk: Any, questions: Questions, context: ToolContext, tool: str, arguments: Mapping[str, Any], heard: Heard
) -> Answered:
    """Call *tool* and return what it answered; a question on the way is asked of the person.

    Raises `ToolFault` for a server that asks without end or for what it is not offered, and what the SDK raises.
    """
    from mcp_types import InputRequiredResult

    responses: dict[str, Any] | None = None
    state, pause = None, FIRST_PAUSE_S
    for _ in range(MAX_ROUNDS):
        result = await _once(sdk, tool, dict(arguments), heard, responses, state)
        if not isinstance(result, InputRequiredResult):
            value = result.structured_content
            structured = "" if value is None else msgspec.json.encode(value).decode()
            return Answered(as_answer(result), bool(result.is_error), structured)
        state = result.request_state
        responses = {
            key: await _answer(questions, context, request) for key, request in (result.input_requests or {}).items()
        }
        if not responses:
            responses = None
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)
    raise ToolFault(f"The server {questions.source} asked {MAX_ROUNDS} times and did not answer.")


async def _once(sdk: Any, tool: str, arguments: dict[str, Any], heard: Heard, responses: Any, state: Any) -> Any:
    """Call once; where the server says that what was listed has changed meanwhile, list and call once more."""
    from mcp import MCPError
    from mcp_types import HEADER_MISMATCH

    async def once() -> Any:
        return await sdk.session.call_tool(
            tool,
            arguments,
            progress_callback=heard,
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


async def _answer(questions: Questions, context: ToolContext, request: Any) -> Any:
    """Return the answer to what a server asks in the middle of a call."""
    from mcp_types import ElicitRequest

    if not isinstance(request, ElicitRequest):
        raise ToolFault(f"The server {questions.source} asked for {request.method}, which is not offered to it.")
    return await questions.ask(context, request.params)
