"""The one path to any tool: decide, ask a person, record the intent, run, record the outcome. The supervisor has it.

Rules:

- Whatever the way in, a call is decided by `decide` on facts gathered for it, and the decision comes before any effect.
- The facts are gathered again after every wait (for a person, for the intent to be durable), so a right that was
  revoked meanwhile does not count.
- Every call ends in one `CallFinished`, whatever the tool does. A session that is torn down records nothing: what was
  in flight is in doubt, exactly as after a crash. A call that waits for a person in a parked turn has no end yet.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from msgspec.structs import replace

from actors.grants import Access
from actors.intrinsics import INTRINSIC
from actors.messages import CallFinished, Denial, Outcome, ToolResult, Usage
from actors.ports import Offer
from actors.tools import Approval, Reconciled
from orchestrator.arguments import canonical_arguments, effect_key, parse
from orchestrator.context import CallContext, SessionRecord
from orchestrator.denials import deny
from orchestrator.facts import PERMIT, Attempt, Consent, NeedsApproval
from orchestrator.gathering import Asked, Gathering
from orchestrator.journal.consent import StateMoved
from orchestrator.journal.records import CallIntended, EffectSettled
from orchestrator.policy import decide
from orchestrator.selection import choose
from orchestrator.telemetry import log

if TYPE_CHECKING:
    from actors.messages import ToolCall
    from orchestrator.approvals import Approvals
    from orchestrator.capability import Capability
    from orchestrator.consents import Consents
    from orchestrator.facts import Facts, Verdict
    from orchestrator.journal.journal import Journal
    from orchestrator.registry import Registered
    from orchestrator.running import Runner
    from orchestrator.runtime import Principal
    from orchestrator.workspace.roots import Workspace

__all__ = ["Bridge"]

NO_USAGE = Usage()


class Bridge:
    """The bridge of one session."""

    def __init__(
        self,
        journal: Journal,
        principal: Principal,
        workspace: Workspace | None,
        gathering: Gathering,
        runner: Runner,
        approvals: Approvals,
        consents: Consents,
    ) -> None:
        self._journal = journal
        self._principal = principal
        self._workspace = workspace
        self._gathering = gathering
        self._runner = runner
        self._approvals = approvals
        self._consents = consents
        self._record = SessionRecord(journal.state)
        self._offers: dict[tuple[object, ...], Offer] = {}

    def offer(self, capability: Capability) -> Offer:
        """Return the effective tools of *capability* now. A memo by value of a pure function, not a stored decision."""
        member, state = capability.member, self._journal.state
        grants = member.authority(capability.narrowing)
        spent = self._gathering.spent(member, "delegate" if "delegate" in member.resolved.tools else "")
        resolved = member.resolved
        now = (grants, spent, state.workflow, resolved.revisions() if resolved.origins else ())
        known = capability.offered
        if known is not None and known[0] == now:
            return known[1]
        intent = "" if resolved.definition.tools.selector is None else capability.intent
        key = (resolved.fingerprint, capability.policy, intent, *now)
        offer = self._offers.get(key)
        if offer is None:
            tools = tuple(item.offered for item in self._selected(capability))
            offer = Offer(resolved.fingerprint, tools, tuple(tool.name for tool in tools))
            if not intent:
                self._offers[key] = offer
        capability.offered = (now, offer)
        return offer

    def place(self) -> str:
        """Return where the workflow stands, as a model request is stamped with it."""
        return self._gathering.place()

    def _selected(self, capability: Capability) -> list[Registered]:
        """Return the effective tools; of many, those that the definition's selector chooses and the intrinsic ones."""
        catalog = self.catalog(capability)
        effective = [item for item, verdict in catalog if verdict is PERMIT or isinstance(verdict, NeedsApproval)]
        selector = capability.member.resolved.definition.tools.selector
        if selector is None:
            return effective
        names = choose(selector, catalog, capability.intent, self._gathering.present).names
        return [item for item in effective if item.tool.source == INTRINSIC or item.tool.name in names]

    def catalog(self, capability: Capability) -> tuple[tuple[Registered, Verdict], ...]:
        """Return every tool of the definition with its verdict."""
        resolved = capability.member.resolved
        return tuple(
            (item, decide(Attempt(name, call=False), self._gathering.facts(Asked(capability, name, known=item))))
            for name, item in resolved.tools.items()
        )

    async def execute(self, capability: Capability, call: ToolCall) -> ToolResult | None:
        """Run one call; its one result is recorded when this returns. ``None``: it waits, and its turn is to be parked.

        Raises nothing but CancelledError.
        """
        asked = self._decode(capability, call)
        if self._principal.access is not None:
            asked = replace(asked, standing=await self._gathering.standing(capability, call.name))
        facts = self._gathering.facts(asked)
        verdict: Verdict | ToolResult = decide(Attempt(call.name), facts)
        while isinstance(verdict, NeedsApproval):
            assert asked.known is not None
            assert asked.arguments is not None
            if not await self._approvals.obtain(capability, call.id, asked.known, asked.arguments):
                return None
            asked = self._decode(capability, call)
            if self._principal.access is not None:
                asked = replace(asked, standing=await self._gathering.standing(capability, call.name))
            facts = self._gathering.facts(asked)
            verdict = decide(Attempt(call.name), facts)
        if isinstance(verdict, Denial) and verdict.code == "unresolved_effect":
            verdict = await self._settle(call, asked, facts, verdict)
        known, arguments = asked.known, asked.arguments
        if verdict is not PERMIT or known is None or arguments is None:
            return self._finish(capability, self._refused(call, verdict, asked, facts))
        if known.tool.access is not Access.READ:
            stopped = await self._intend(call, asked, facts.consent)
            if stopped is not None:
                return self._finish(capability, stopped)
        capability.member.account.spend(NO_USAGE, calls=1)
        ran = await self._runner.run(capability, call, known.tool, arguments, self._context(capability, call, facts))
        if ran is None:
            capability.member.account.spend(NO_USAGE, calls=-1)
            return None
        result = ran.result
        if asked.edited:
            text = f"Run with the arguments as a person edited them: {asked.edited}\n{result.text}"
            result = ToolResult(call.id, call.name, text, result.outcome)
        self._move(capability, result, facts)
        return self._finish(capability, result, ran.discharged)

    def _decode(self, capability: Capability, call: ToolCall) -> Asked:
        """Return the call decoded; a person's edit of its arguments takes the place of the model's."""
        known = capability.member.resolved.tools.get(call.name)
        if known is None:
            return Asked(capability, call.name, call.id, None, {})
        edited = ""
        if known.tool.approval is not Approval.NEVER or known.origin is not None:
            edited = self._consents.approved_arguments(capability.member.path, call.id)
        arguments, fault = parse(edited or call.arguments, known.validator)
        return Asked(capability, call.name, call.id, known, arguments, fault, None, edited)

    async def _intend(self, call: ToolCall, asked: Asked, consent: Consent) -> ToolResult | None:
        """Make the intent durable; return the call's result if it may not run any more after that wait.

        A *consent* holds for the tool as it was: where its server has changed it meanwhile, it is looked up again.
        """
        capability, known, arguments = asked.capability, asked.known, asked.arguments
        assert known is not None
        assert arguments is not None
        tool, key = known.tool, effect_key(known.tool, arguments)
        version = "" if known.origin is None else known.version
        text = canonical_arguments(arguments)
        intent = CallIntended(capability.turn, call.id, tool.name, tool.version, tool.access, key, text)
        self._journal.append(capability.member.path, intent)
        try:
            await self._journal.sync()
        except asyncio.CancelledError:
            if not capability.stopping:
                raise
            return ToolResult(call.id, call.name, f"{call.name} was stopped before it began.", Outcome.CANCELLED)
        facts = self._gathering.facts(asked, consent if known.origin is None or known.version == version else None)
        verdict = decide(Attempt(call.name), facts)
        return None if verdict is PERMIT else self._refused(call, verdict, asked, facts)

    async def _settle(self, call: ToolCall, asked: Asked, facts: Facts, verdict: Denial) -> Verdict | ToolResult:
        """Ask the tool what became of the earlier, unresolved call; decide again if the tool knows."""
        known, arguments = asked.known, asked.arguments
        assert known is not None
        assert arguments is not None
        tool = known.tool
        found, by = Reconciled.UNKNOWN, "the tool's own check"
        if tool.reconcile is not None:
            found, failed = await self._runner.reconcile(tool, self._context(asked.capability, call, facts), arguments)
            if failed:
                return deny(verdict.code, call.name, facts.actor, f"{verdict.message} Its check failed: {failed}.")
        elif tool.idempotency_key is not None and arguments.get(tool.idempotency_key):
            found, by = Reconciled.DID_NOT_HAPPEN, "its idempotency key"
        if found is Reconciled.UNKNOWN:
            return verdict
        happened = found is Reconciled.HAPPENED
        settled = EffectSettled(effect_key(tool, arguments), happened, by)
        self._journal.append(asked.capability.member.path, settled)
        if happened:
            return ToolResult(call.id, call.name, f"{call.name} had been done already, as {by} found out.")
        return decide(Attempt(call.name), self._gathering.facts(asked))

    def _context(self, capability: Capability, call: ToolCall, facts: Facts) -> CallContext:
        opened = self._journal.state.opened
        return CallContext(
            "" if opened is None else opened.session,
            capability.member.path,
            capability.turn,
            call.id,
            self._principal.name,
            self._principal.owner or self._principal.name,
            facts.grants,
            self._workspace,
            self._record,
        )

    def _move(self, capability: Capability, result: ToolResult, facts: Facts) -> None:
        """Move the workflow, where the success of this tool does, from the state in which it was permitted."""
        chart = capability.member.resolved.definition.tools.states
        if chart is None or result.outcome is not Outcome.OK:
            return
        name = self._journal.state.workflow or chart.initial
        if facts.state is None or facts.state.now != f"{name}#{self._journal.state.moves}":
            return
        state = chart.get(name)
        target = dict(state.moves).get(result.name) if state is not None else None
        if target is not None:
            self._journal.append(capability.member.path, StateMoved(target, result.name))

    def _refused(self, call: ToolCall, verdict: object, asked: Asked, facts: Facts) -> ToolResult:
        """Turn what `decide` said, or what the tool's own check found, into the call's result."""
        if isinstance(verdict, ToolResult):
            return verdict
        if isinstance(verdict, NeedsApproval):
            verdict = deny("approval_unavailable", call.name, facts.actor, f"{call.name} needs a person's approval.")
        assert isinstance(verdict, Denial)
        text = verdict.text
        if facts.consent is Consent.REJECTED:
            reason = self._consents.reason(asked.capability.member.path, call.id)
            text = f"{text} The reason: {reason}" if reason else text
        return ToolResult(call.id, call.name, text, Outcome.DENIED, verdict)

    def _finish(self, capability: Capability, result: ToolResult, discharged: tuple[str, ...] = ()) -> ToolResult:
        """Record the one result of a call; a call whose turn is sealed already only settles its effect."""
        path, denial = capability.member.path, result.denial
        if denial is not None:
            log(logging.INFO, "call denied", actor=path, tool=denial.tool, code=denial.code, turn=capability.turn)
        if not capability.revoked:
            self._journal.append(path, CallFinished(capability.turn, result, discharged))
            return result
        for key, intent in self._journal.state.unresolved.items():
            if (intent.turn, intent.call) == (capability.turn, result.call_id) and result.outcome is Outcome.OK:
                self._journal.append(path, EffectSettled(key, happened=True, by="its late result"))
                break
        return result
