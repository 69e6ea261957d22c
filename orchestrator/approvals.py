"""Approvals: a person's yes to exactly one call, and standing rules with exact scope.

Rules:

- What is asked binds principal, tenant, session, actor path, tool and version, the digest of the canonical arguments,
  and the revision: definition, policy, grants and workflow state of the turn. Any difference later is a mismatch.
- An answer counts once, the first one; it needs the approver's key, which is kept outside: the journal has its digest.
- A yes is used by the call it is bound to, and by no other. Edited arguments are checked like any others, shown as
  edited, and are what runs. A standing rule names the argument values it holds for; there is no rule for a whole tool.
- Time that runs out is no refusal: the call is answered "nobody answered in time" and may be asked again.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from actors.schema import canonical, digest
from actors.text import clip
from orchestrator.approver import Answer, Question, Verdict, key_digest
from orchestrator.arguments import canonical_arguments, parse
from orchestrator.errors import AnswerRefused
from orchestrator.journal.consent import ApprovalAnswered, ApprovalAsked, ApprovalLapsed, RuleMade
from orchestrator.telemetry import log

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from orchestrator.approver import Approver
    from orchestrator.capability import Capability
    from orchestrator.clock import Clock, Deadlines
    from orchestrator.consents import Consents
    from orchestrator.journal.journal import Journal
    from orchestrator.journal.state import ApprovalState
    from orchestrator.registry import Registered, Registry

__all__ = ["Approvals"]

MAX_REASON = 2000


class Host(Protocol):
    """What approvals need of the session around them."""

    def woken(self, path: str) -> None:
        """An answer for the parked turn of the actor *path* has come."""

    def paused(self, path: str) -> AbstractContextManager[None]:
        """Hold the time limits of the actor's turn, and of those that wait for it, still."""


class Approvals:
    """The questions and answers of one session."""

    def __init__(
        self,
        journal: Journal,
        approver: Approver | None,
        consents: Consents,
        clock: Clock,
        deadlines: Deadlines,
        registry: Registry,
        host: Host,
    ) -> None:
        self._journal = journal
        self._approver = approver
        self._consents = consents
        self._clock = clock
        self._deadlines = deadlines
        self._registry = registry
        self._host = host
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._lapses: dict[str, int] = {}

    @property
    def at_hand(self) -> bool:
        """Whether somebody can be asked at once, while a call waits."""
        return self._approver is not None and self._approver.asker is not None

    async def obtain(self, capability: Capability, call: str, known: Registered, arguments: dict[str, Any]) -> bool:
        """See to an answer; return False when the turn has to be parked for it. On cancel the question stays asked."""
        assert self._approver is not None
        approval = self._ask(capability, call, known, arguments)
        await self._journal.sync()
        name = approval.asked.approval
        if approval.answered is not None:
            return True
        if name not in self._lapses:
            left = max(0.0, (approval.asked.expires_ms - self._clock.wall_ms()) / 1000)
            self._lapses[name] = self._deadlines.add(left, lambda: self._lapse(approval))
        if self._approver.asker is None:
            return False
        waiting = self._waiting[name] = asyncio.get_running_loop().create_future()
        asking = asyncio.ensure_future(self._approver.asker.ask(self.question(name)))
        try:
            with self._host.paused(approval.path):
                await asyncio.wait((waiting, asking), return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                self._heard(approval, asking)
        finally:
            asking.cancel()
            asking.add_done_callback(_unheard)
            self._deadlines.remove(self._lapses.pop(name, 0))
            self._waiting.pop(name, None)
        return True

    def _heard(self, approval: ApprovalState, asking: asyncio.Future[Answer | None]) -> None:
        """Take what the asker came back with; a failure, and what does not count for this very question, is none."""
        failed = asking.cancelled() or asking.exception() is not None
        answer = None if failed else asking.result()
        if answer is not None and answer.approval == approval.asked.approval:
            try:
                self.answer(answer)
            except AnswerRefused as refused:
                log(logging.WARNING, "answer refused", approval=refused.approval, code=refused.code)
            else:
                return
        elif failed:
            log(logging.WARNING, "asking failed", approval=approval.asked.approval)
        self._lapse(approval)

    def _lapse(self, approval: ApprovalState) -> None:
        if approval.answered is None and not approval.lapsed and not self._consents.over(approval):
            self._journal.append(approval.path, ApprovalLapsed(approval.asked.approval))
            self._told(approval)

    def _ask(self, capability: Capability, call: str, known: Registered, arguments: dict[str, Any]) -> ApprovalState:
        """Put the question on record, unless it is."""
        state, path = self._journal.state, capability.member.path
        approval = state.approvals.get(state.asked_for.get((path, call), ""))
        if approval is not None:
            return approval
        assert self._approver is not None
        text = canonical_arguments(arguments)
        approval_id = f"a{len(state.approvals) + 1:04d}"
        names = known.tool.targets or known.tool.effect_key or ()
        target = known.difference or ", ".join(str(arguments[name]) for name in sorted(names) if name in arguments)
        expires = self._clock.wall_ms() + int(self._approver.expires_s * 1000)
        asked = ApprovalAsked(
            approval_id,
            capability.turn,
            call,
            known.tool.name,
            known.version,
            text,
            digest(text),
            target,
            self._consents.revision(capability),
            expires,
        )
        self._journal.append(path, asked)
        return state.approvals[approval_id]

    def question(self, name: str) -> Question:
        """Return what a person is shown of the approval *name*."""
        approval, opened = self._journal.state.approvals[name], self._journal.state.opened
        known = self._known(approval)
        description = "" if known is None else known.tool.description
        asked = approval.asked
        session = "" if opened is None else opened.session
        return Question(
            name, session, approval.path, asked.tool, description, asked.arguments, asked.target, asked.expires_ms
        )

    def pending(self) -> tuple[str, ...]:
        """Return the ids of the questions that nobody has answered and that can still be."""
        return tuple(
            name
            for name, approval in self._journal.state.approvals.items()
            if approval.answered is None and not self._consents.over(approval) and not self._consents.expired(approval)
        )

    def answer(self, answer: Answer) -> None:
        """Take a person's answer. Raises `AnswerRefused`, recording nothing."""
        approval = self._journal.state.approvals.get(answer.approval)
        self._check(answer, approval)
        assert approval is not None
        approved, edited, text = answer.verdict is Verdict.APPROVE, bool(answer.arguments), approval.asked.arguments
        if approved and edited:
            text = self._edited(answer, approval)
        record = ApprovalAnswered(
            answer.approval,
            approved,
            clip(answer.by, MAX_REASON),
            clip(answer.reason, MAX_REASON),
            text if approved else "",
            digest(text) if approved else "",
            edited=approved and edited,
        )
        rule = self._rule(answer, approval, text) if approved and answer.always else None
        if rule is not None:
            self._journal.append(approval.path, rule)
        self._record(approval, record)

    def _record(self, approval: ApprovalState, record: ApprovalAnswered) -> None:
        self._journal.append(approval.path, record)
        self._told(approval)

    def _told(self, approval: ApprovalState) -> None:
        """Let the call that waits go on, in place or by opening its parked turn again."""
        self._deadlines.remove(self._lapses.pop(approval.asked.approval, 0))
        waiting = self._waiting.get(approval.asked.approval)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)
        else:
            self._host.woken(approval.path)

    def _check(self, answer: Answer, approval: ApprovalState | None) -> None:
        opened = self._journal.state.opened
        known = "" if opened is None else opened.approver
        if not known or not hmac.compare_digest(known, key_digest(answer.key)):
            raise AnswerRefused(answer.approval, "wrong_key", "the approver's key does not fit this session")
        if approval is None:
            raise AnswerRefused(answer.approval, "unknown", "there is no such approval in this session")
        if approval.answered is not None:
            raise AnswerRefused(answer.approval, "answered", f"{approval.answered.by} has answered it already")
        if self._consents.over(approval):
            raise AnswerRefused(answer.approval, "closed", "its call has ended meanwhile")
        if self._consents.expired(approval):
            raise AnswerRefused(answer.approval, "expired", "its time has run out; the agent may ask again")

    def _edited(self, answer: Answer, approval: ApprovalState) -> str:
        known = self._known(approval)
        if known is None:
            raise AnswerRefused(answer.approval, "closed", "its tool is not there any more")
        arguments, fault = parse(answer.arguments, known.validator)
        if arguments is None:
            assert fault is not None
            text = f"the edited arguments are not valid: at {fault.path} expected {fault.expected}, got {fault.got}"
            raise AnswerRefused(answer.approval, "invalid_arguments", text)
        return canonical_arguments(arguments)

    def _known(self, approval: ApprovalState) -> Registered | None:
        spawned = self._journal.state.actors[approval.path].spawned
        resolved = self._registry.get(spawned.fingerprint)
        return None if resolved is None else resolved.tools.get(approval.asked.tool)

    def _rule(self, answer: Answer, approval: ApprovalState, text: str) -> RuleMade:
        arguments = msgspec.json.decode(text)
        unknown = sorted(set(answer.always) - set(arguments))
        if unknown:
            text = f"a rule can hold for the fields of the call only, not for {', '.join(unknown)}"
            raise AnswerRefused(answer.approval, "invalid_rule", text)
        fields = tuple((name, canonical(arguments[name])) for name in sorted(set(answer.always)))
        spawned = self._journal.state.actors[approval.path].spawned
        name = f"r{len(self._journal.state.rules) + 1:04d}"
        by = clip(answer.by, MAX_REASON)
        return RuleMade(name, approval.asked.tool, approval.asked.version, spawned.fingerprint, fields, by)


def _unheard(asking: asyncio.Future[Answer | None]) -> None:
    """Take note of how a withdrawn question ended; nobody listens to it any more."""
    if not asking.cancelled():
        asking.exception()
