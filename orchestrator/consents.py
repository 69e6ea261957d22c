"""Whether a person has said yes to this very call: the receipt, or a standing rule, held against the call.

Any difference between what was approved and what would run is a mismatch: the arguments in canonical form (``10`` and
``10.0`` differ, key order does not), the tool and its version, and the revision: definition, policy, grants and
workflow state of the turn. A yes is used by the call it is bound to, once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from actors.schema import canonical, digest
from orchestrator.arguments import canonical_arguments
from orchestrator.facts import Consent

if TYPE_CHECKING:
    from orchestrator.capability import Capability
    from orchestrator.clock import Clock
    from orchestrator.journal.journal import Journal
    from orchestrator.journal.state import ApprovalState
    from orchestrator.registry import Registered

__all__ = ["Consents"]


class Consents:
    """The yeses of one session, as its journal has them."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock

    def consent(self, capability: Capability, call: str, known: Registered, arguments: dict[str, Any]) -> Consent:
        """Return what is known of a yes to this call with these arguments, now. A no to it outweighs any rule."""
        state = self._journal.state
        approval = state.approvals.get(state.asked_for.get((capability.member.path, call), ""))
        answered = None if approval is None else approval.answered
        if answered is not None and not answered.approved:
            return Consent.REJECTED
        if self._ruled(capability, known, arguments):
            return Consent.GIVEN
        if approval is None or answered is None:
            return Consent.EXPIRED if approval is not None and self.expired(approval) else Consent.NONE
        if approval.used:
            return Consent.USED
        return Consent.EXPIRED if self.expired(approval) else self._receipt(capability, approval, known, arguments)

    def _receipt(
        self, capability: Capability, approval: ApprovalState, known: Registered, arguments: dict[str, Any]
    ) -> Consent:
        """Hold the yes that was given against what would run."""
        asked, answered, tool = approval.asked, approval.answered, known.tool
        given = ("" if answered is None else answered.digest, asked.tool, asked.version, asked.revision)
        wanted = (digest(canonical_arguments(arguments)), tool.name, known.version, self.revision(capability))
        return Consent.GIVEN if given == wanted else Consent.MISMATCH

    def approved_arguments(self, path: str, call: str) -> str:
        """Return the edited arguments that were approved for a call, or an empty text."""
        state = self._journal.state
        approval = state.approvals.get(state.asked_for.get((path, call), ""))
        answered = None if approval is None else approval.answered
        return answered.arguments if answered is not None and answered.approved and answered.edited else ""

    def reason(self, path: str, call: str) -> str:
        """Return why a call was rejected, in the person's words."""
        state = self._journal.state
        approval = state.approvals.get(state.asked_for.get((path, call), ""))
        return "" if approval is None or approval.answered is None else approval.answered.reason

    def revision(self, capability: Capability) -> str:
        """Return the digest of everything besides the call that the yes depends on."""
        policy, narrowing = capability.policy, capability.narrowing
        terms = {
            "fingerprint": capability.member.resolved.fingerprint,
            "allowed": None if policy.allowed is None else sorted(policy.allowed),
            "denied": sorted(policy.denied),
            "grants": None if narrowing is None else attrs.asdict(narrowing),
            "state": (self._journal.state.workflow, self._journal.state.moves),
        }
        return digest(canonical(terms))[:16]

    def _ruled(self, capability: Capability, known: Registered, arguments: dict[str, Any]) -> bool:
        now = 0
        for rule in self._journal.state.rules:
            now = now or self._clock.wall_ms()
            if (
                (rule.tool, rule.version) == (known.tool.name, known.version)
                and rule.fingerprint == capability.member.resolved.definition.fingerprint
                and (not rule.expires_ms or now < rule.expires_ms)
                and all(name in arguments and canonical(arguments[name]) == value for name, value in rule.fields)
            ):
                return True
        return False

    def expired(self, approval: ApprovalState) -> bool:
        """Tell whether nobody can answer the question any more."""
        return approval.lapsed or self._clock.wall_ms() >= approval.asked.expires_ms

    def over(self, approval: ApprovalState) -> bool:
        """Tell whether the call that the question is about has ended, or its turn, so that no answer can matter."""
        actor = self._journal.state.actors[approval.path]
        return approval.used or actor.accepted(approval.asked.turn) is None
