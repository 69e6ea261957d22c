"""Running one tool's code to one result: it answers, fails, hangs, is stopped, cancels itself."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from actors.errors import OutcomeUnknown, ToolFault
from actors.grants import Access
from actors.intrinsics import INTRINSIC
from actors.messages import Outcome, ToolResult
from actors.text import clean, clip
from actors.tools import Reconciled
from orchestrator.context import PARKED, CallContext, Delivered
from orchestrator.journal.work import OutputStored
from orchestrator.outputs import as_text, preview

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from actors.messages import ToolCall
    from actors.tools import Tool
    from orchestrator.capability import Capability
    from orchestrator.clock import Deadlines
    from orchestrator.journal.journal import Journal

    Intrinsic = Callable[[Capability, ToolCall, Mapping[str, Any]], Awaitable[Any]]

__all__ = ["Ran", "Runner"]

MAX_FAULT = 1000


class Ran(msgspec.Struct, frozen=True):
    """What running came to: the result, and the child turns whose outcomes it delivers."""

    result: ToolResult
    discharged: tuple[str, ...] = ()


class Runner:
    """Runs the tools of one session. ``intrinsics`` does those of reserved names."""

    def __init__(self, journal: Journal, deadlines: Deadlines, intrinsics: Mapping[str, Intrinsic]) -> None:
        self._journal = journal
        self._deadlines = deadlines
        self._intrinsics = intrinsics

    async def run(
        self, capability: Capability, call: ToolCall, tool: Tool, arguments: dict[str, Any], context: CallContext
    ) -> Ran | None:
        """Return what became of the call; ``None`` when it waits for a person and its turn has to be parked.

        Raises CancelledError only when the session itself is torn down.
        """
        task = asyncio.current_task()
        assert task is not None
        late: list[float] = []
        before = task.cancelling()
        key = 0 if tool.timeout_s is None else self._deadlines.add(tool.timeout_s, partial(_time_out, task, late))
        capability.running[call.id] = task
        try:
            return self._answered(
                capability, call, tool, await self._answer(capability, call, tool, arguments, context)
            )
        except OutcomeUnknown as unknown:
            return Ran(ToolResult(call.id, call.name, clip(str(unknown), MAX_FAULT), Outcome.UNKNOWN))
        except ToolFault as fault:
            return _error(call, str(fault))
        except asyncio.CancelledError:
            if not late and not capability.stopping and task.cancelling() > before:
                raise
            return Ran(_cut_off(call, tool, late=bool(late), stopping=capability.stopping))
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001  # whatever the tool's code raises is its answer
            return _error(call, f"{type(error).__name__}: {error}")
        finally:
            if late:
                task.uncancel()
            capability.running.pop(call.id, None)
            if key:
                self._deadlines.remove(key)

    async def reconcile(self, tool: Tool, context: CallContext, arguments: dict[str, Any]) -> tuple[Reconciled, str]:
        """Ask a tool what became of an earlier call; a check that fails is told, and leaves it unknown."""
        assert tool.reconcile is not None
        try:
            given = arguments if tool.reshape is None else tool.reshape.inner(arguments)
            return await tool.reconcile(context, given), ""
        except Exception as error:  # noqa: BLE001  # the tool's code
            return Reconciled.UNKNOWN, clip(f"{type(error).__name__}: {error}", MAX_FAULT)

    def _answer(
        self, capability: Capability, call: ToolCall, tool: Tool, arguments: dict[str, Any], context: CallContext
    ) -> Awaitable[Any]:
        if tool.source == INTRINSIC:
            return self._intrinsics[tool.name](capability, call, arguments)
        assert tool.run is not None
        return tool.run(context, arguments if tool.reshape is None else tool.reshape.inner(arguments))

    def _answered(self, capability: Capability, call: ToolCall, tool: Tool, value: Any) -> Ran | None:
        if value is PARKED:
            return None
        if isinstance(value, Delivered):
            outcome = Outcome.ERROR if value.failed else Outcome.OK
            return Ran(ToolResult(call.id, call.name, clean(value.text), outcome), value.discharged)
        return Ran(self._bounded(capability, call, tool, as_text(tool.name, value)))

    def _bounded(self, capability: Capability, call: ToolCall, tool: Tool, text: str) -> ToolResult:
        """Return the result of a call; a text over the tool's limit is stored and shown in part."""
        if len(text) * 4 > tool.output_limit_bytes and len(text.encode()) > tool.output_limit_bytes:
            handle = f"out-{self._journal.seq + 1}"
            self._journal.append(capability.member.path, OutputStored(handle, text))
            text = preview(text, tool.output_limit_bytes, handle)
        return ToolResult(call.id, call.name, text)


def _error(call: ToolCall, text: str) -> Ran:
    return Ran(ToolResult(call.id, call.name, clip(text, MAX_FAULT), Outcome.ERROR))


def _time_out(task: asyncio.Task[object], late: list[float]) -> None:
    late.append(1.0)
    task.cancel()


def _cut_off(call: ToolCall, tool: Tool, *, late: bool, stopping: bool) -> ToolResult:
    """Return the result of a call whose code ended by cancellation: of its time limit, of a stop, or of its own."""
    if late:
        return _interrupted(call, tool, f"did not end within its {tool.timeout_s:g} s", Outcome.ERROR)
    if stopping:
        return _interrupted(call, tool, "was stopped", Outcome.CANCELLED)
    return ToolResult(call.id, call.name, "The tool cancelled itself.", Outcome.ERROR)


def _interrupted(call: ToolCall, tool: Tool, how: str, otherwise: Outcome) -> ToolResult:
    """Return the result of a call that was cut off: what may have had an effect has an unknown outcome."""
    if tool.access is Access.READ:
        return ToolResult(call.id, call.name, f"{call.name} {how}.", otherwise)
    text = f"{call.name} {how}. It may have happened all the same; it will not be run again before that is known."
    return ToolResult(call.id, call.name, text, Outcome.UNKNOWN)
