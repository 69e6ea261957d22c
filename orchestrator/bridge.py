"""The one path to any tool: capability → decide → intent → run → outcome → record. Only the supervisor knows it.

Rules:

- Whatever the way in, a call is decided by `decide` on facts gathered here, and the decision comes before any effect.
- The intent of a call with an effect is durable before the effect starts, and the facts are gathered again after that
  wait, so a right that was revoked meanwhile does not count.
- Every call ends in one `CallFinished`, whatever the tool does: it fails, hangs, is stopped, cancels itself.
- A session that is torn down records nothing: what was in flight is in doubt, exactly as after a crash.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from actors.errors import ToolFault
from actors.grants import Access
from actors.intrinsics import INTRINSIC
from actors.messages import CallFinished, Denial, Outcome, ToolResult, Usage
from actors.ports import Offer
from actors.text import clean, clip
from actors.tools import Reconciled
from orchestrator.arguments import canonical_arguments, effect_key, parse
from orchestrator.context import CallContext, Delivered, SessionRecord
from orchestrator.denials import deny
from orchestrator.facts import PERMIT, Attempt, Facts, NeedsApproval
from orchestrator.gathering import Gathering
from orchestrator.journal.records import CallIntended, EffectSettled
from orchestrator.journal.work import OutputStored
from orchestrator.outputs import as_text, preview
from orchestrator.policy import decide
from orchestrator.telemetry import log

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from actors.messages import ToolCall
    from actors.tools import Tool
    from orchestrator.capability import Capability
    from orchestrator.clock import Deadlines
    from orchestrator.facts import Verdict
    from orchestrator.journal.journal import Journal
    from orchestrator.registry import Registered
    from orchestrator.runtime import SessionLimits
    from orchestrator.workspace.roots import Workspace

    Intrinsic = Callable[[Capability, ToolCall, Mapping[str, Any]], Awaitable[Any]]

__all__ = ["Bridge"]

MAX_FAULT = 1000
NO_USAGE = Usage()
NOTHING_MISSING: frozenset[str] = frozenset()


class Bridge:
    """The bridge of one session. ``intrinsics`` does the tools of reserved names."""

    def __init__(
        self,
        journal: Journal,
        deadlines: Deadlines,
        principal: str,
        workspace: Workspace | None,
        intrinsics: Mapping[str, Intrinsic],
        limits: SessionLimits,
    ) -> None:
        self._journal = journal
        self._deadlines = deadlines
        self._principal = principal
        self._workspace = workspace
        self._record = SessionRecord(journal.state)
        self._intrinsics = intrinsics
        self._gathering = Gathering(journal, workspace, limits)
        self._offers: dict[tuple[object, ...], Offer] = {}

    def offer(self, capability: Capability) -> Offer:
        """Return the effective tools of *capability* now. A memo by value of a pure function, not a stored decision."""
        member = capability.member
        grants = member.authority(capability.narrowing)
        spent = self._gathering.spent(member, "delegate" if "delegate" in member.resolved.tools else "")
        known = capability.offered
        if known is not None and known[0] == (grants, spent):
            return known[1]
        key = (member.resolved.definition.fingerprint, grants, capability.policy, spent)
        offer = self._offers.get(key)
        if offer is None:
            tools = tuple(
                item.offered
                for item, verdict in self.catalog(capability)
                if verdict is PERMIT or isinstance(verdict, NeedsApproval)
            )
            names = tuple(tool.name for tool in tools)
            offer = self._offers[key] = Offer(member.resolved.definition.fingerprint, tools, names)
        capability.offered = ((grants, spent), offer)
        return offer

    def catalog(self, capability: Capability) -> tuple[tuple[Registered, Verdict], ...]:
        """Return every tool of the definition with its verdict."""
        resolved = capability.member.resolved
        return tuple(
            (item, decide(Attempt(name, call=False), self._gathering.facts(capability, name, item)))
            for name, item in resolved.tools.items()
        )

    async def execute(self, capability: Capability, call: ToolCall) -> ToolResult:
        """Run one call: its one result is recorded when this returns. Raises nothing but CancelledError."""
        known = capability.member.resolved.tools.get(call.name)
        arguments, fault = ({}, None) if known is None else parse(call.arguments, known.validator)
        facts = self._gathering.facts(capability, call.name, known, arguments, fault)
        verdict: Verdict | ToolResult = decide(Attempt(call.name), facts)
        if verdict is not PERMIT and facts.unresolved and known is not None and arguments is not None:
            verdict = await self._settle(capability, call, known.tool, arguments, facts, verdict)
        if verdict is not PERMIT or known is None or arguments is None:
            return self._finish(capability, _refused(call, verdict, facts.actor))
        if known.tool.access is not Access.READ:
            self._intend(capability, call, known.tool, arguments)
            try:
                await self._journal.sync()
            except asyncio.CancelledError:
                if not capability.stopping:
                    raise
                text = f"{call.name} was stopped before it began."
                return self._finish(capability, ToolResult(call.id, call.name, text, Outcome.CANCELLED))
            verdict = decide(Attempt(call.name), self._gathering.facts(capability, call.name, known, arguments, fault))
            if verdict is not PERMIT:
                return self._finish(capability, _refused(call, verdict, facts.actor))
        capability.member.account.spend(NO_USAGE, calls=1)
        return await self._run(capability, call, known.tool, arguments, facts)

    def _intend(self, capability: Capability, call: ToolCall, tool: Tool, arguments: dict[str, Any]) -> None:
        key = effect_key(tool, arguments)
        text = canonical_arguments(arguments)
        intent = CallIntended(capability.turn, call.id, tool.name, tool.version, tool.access, key, text)
        self._journal.append(capability.member.path, intent)

    async def _settle(
        self,
        capability: Capability,
        call: ToolCall,
        tool: Tool,
        arguments: dict[str, Any],
        facts: Facts,
        verdict: Verdict | ToolResult,
    ) -> Verdict | ToolResult:
        """Ask the tool what became of the earlier, unresolved call; decide again if the tool knows."""
        if not isinstance(verdict, Denial) or verdict.code != "unresolved_effect":
            return verdict
        key = effect_key(tool, arguments)
        found, by = Reconciled.UNKNOWN, "the tool's own check"
        if tool.reconcile is not None:
            try:
                found = await tool.reconcile(self._call_context(capability, call, facts), arguments)
            except Exception as error:  # noqa: BLE001  # the tool's code; the effect then stays unresolved
                return deny(
                    verdict.code, call.name, facts.actor, f"{verdict.message} Its check failed: {error!r:.200}."
                )
        elif tool.idempotency_key is not None and arguments.get(tool.idempotency_key):
            found, by = Reconciled.DID_NOT_HAPPEN, "its idempotency key"
        if found is Reconciled.UNKNOWN:
            return verdict
        happened = found is Reconciled.HAPPENED
        self._journal.append(capability.member.path, EffectSettled(key, happened, by))
        if happened:
            return ToolResult(call.id, call.name, f"{call.name} had been done already, as {by} found out.")
        return decide(
            Attempt(call.name),
            self._gathering.facts(capability, call.name, capability.member.resolved.tools[call.name], arguments),
        )

    def _call_context(self, capability: Capability, call: ToolCall, facts: Facts) -> CallContext:
        state = self._journal.state
        session = "" if state.opened is None else state.opened.session
        path = capability.member.path
        return CallContext(
            session, path, capability.turn, call.id, self._principal, facts.grants, self._workspace, self._record
        )

    async def _run(
        self, capability: Capability, call: ToolCall, tool: Tool, arguments: dict[str, Any], facts: Facts
    ) -> ToolResult:
        """Run the tool's code under its time limit and turn whatever happens into one result."""
        task = asyncio.current_task()
        assert task is not None
        late: list[float] = []
        before = task.cancelling()
        key = 0 if tool.timeout_s is None else self._deadlines.add(tool.timeout_s, partial(_time_out, task, late))
        capability.running[call.id] = task
        discharged: tuple[str, ...] = ()
        try:
            if tool.source == INTRINSIC:
                value = await self._intrinsics[tool.name](capability, call, arguments)
            else:
                assert tool.run is not None
                value = await tool.run(self._call_context(capability, call, facts), arguments)
            if isinstance(value, Delivered):
                discharged = value.discharged
                result = ToolResult(
                    call.id, call.name, clean(value.text), Outcome.ERROR if value.failed else Outcome.OK
                )
            else:
                result = self._bounded(capability, call, tool, as_text(tool.name, value))
        except ToolFault as fault:
            result = ToolResult(call.id, call.name, clip(str(fault), MAX_FAULT), Outcome.ERROR)
        except asyncio.CancelledError:
            if not late and not capability.stopping and task.cancelling() > before:
                raise
            result = _cut_off(call, tool, late=bool(late), stopping=capability.stopping)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001  # whatever the tool's code raises is its answer
            result = ToolResult(call.id, call.name, clip(f"{type(error).__name__}: {error}", MAX_FAULT), Outcome.ERROR)
        finally:
            if late:
                task.uncancel()
            capability.running.pop(call.id, None)
            if key:
                self._deadlines.remove(key)
        return self._finish(capability, result, discharged)

    def _bounded(self, capability: Capability, call: ToolCall, tool: Tool, text: str) -> ToolResult:
        """Return the result of a call; a text over the tool's limit is stored and shown in part."""
        if len(text) * 4 > tool.output_limit_bytes and len(text.encode()) > tool.output_limit_bytes:
            handle = f"out-{self._journal.seq + 1}"
            self._journal.append(capability.member.path, OutputStored(handle, text))
            text = preview(text, tool.output_limit_bytes, handle)
        return ToolResult(call.id, call.name, text)

    def _finish(self, capability: Capability, result: ToolResult, discharged: tuple[str, ...] = ()) -> ToolResult:
        """Record the one result of a call; a call whose turn is sealed already only settles its effect."""
        path = capability.member.path
        if result.denial is not None:
            log(
                logging.INFO,
                "call denied",
                actor=path,
                tool=result.denial.tool,
                code=result.denial.code,
                turn=capability.turn,
            )
        if not capability.revoked:
            self._journal.append(path, CallFinished(capability.turn, result, discharged))
            return result
        for key, intent in self._journal.state.unresolved.items():
            if (intent.turn, intent.call) == (capability.turn, result.call_id) and result.outcome is Outcome.OK:
                self._journal.append(path, EffectSettled(key, happened=True, by="its late result"))
                break
        return result


def _time_out(task: asyncio.Task[object], late: list[float]) -> None:
    late.append(1.0)
    task.cancel()


def _refused(call: ToolCall, verdict: object, actor: str) -> ToolResult:
    """Turn what `decide` said, or what the tool's own check found, into the call's result."""
    if isinstance(verdict, ToolResult):
        return verdict
    if isinstance(verdict, NeedsApproval):
        verdict = deny("approval_unavailable", call.name, actor, f"{call.name} needs a person's approval.")
    assert isinstance(verdict, Denial)
    return ToolResult(call.id, call.name, verdict.text, Outcome.DENIED, verdict)


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
