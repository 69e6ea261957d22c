"""The one decision: ``decide(attempt, facts)``, pure. Fourteen gates in order; the first that refuses answers.

Rules:

- No I/O and no clock here: whoever asks gathers the facts first. Absent facts permit; a gate says in its text which.
- *offer* gates need no arguments and also decide the catalog and the manifest; *call* gates run only for a call.
- Focus (`Policy`) belongs to one actor for one turn. Authority is `Grants`.
- A denial names one rule, what was refused, and what would change it and who can. It never names another actor's
  tools, and never a way around a person's no.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from actors.grants import Access, covers, root_covers
from actors.text import MAX_SHOWN, clip, listed
from actors.tools import Approval
from orchestrator.denials import MAX_NAME, deny
from orchestrator.facts import PERMIT, Attempt, Capability, Consent, Facts, Identity, NeedsApproval, Source
from orchestrator.focus import OPEN

if TYPE_CHECKING:
    from actors.messages import Denial
    from orchestrator.facts import Verdict

__all__ = ["GATES", "OFFERED", "decide"]

MAX_FAULT = 600


def capability(attempt: Attempt, facts: Facts) -> Denial | None:
    """1: the right to call is known, of this incarnation, unexpired, not revoked."""
    if facts.capability is Capability.LIVE:
        return None
    message = (
        f"{clip(attempt.name, MAX_NAME)} was not run: the right of {facts.actor} to call is {facts.capability.value}."
    )
    return deny("capability_revoked", attempt.name, facts.actor, message)


def registered(attempt: Attempt, facts: Facts) -> Denial | None:
    """2: the name is registered in this actor's definition."""
    if facts.tool is not None:
        return None
    close = difflib.get_close_matches(attempt.name[:MAX_NAME], facts.names, n=3, cutoff=0.5)
    message = f"{facts.actor} has no tool {clip(attempt.name, MAX_NAME)!r}."
    remedy = f"Close names you have: {', '.join(close)}." if close else f"You have: {listed(facts.names)}."
    return deny("unknown_tool", attempt.name, facts.actor, message, remedy)


def source(attempt: Attempt, facts: Facts) -> Denial | None:
    """3: the tool's source is alive and its schema is the pinned one, or a person can be asked. Absent: alive."""
    if facts.source is Source.ALIVE or (facts.source is Source.CHANGED and facts.approver):
        return None
    why = f": {clip(facts.source_fault, MAX_FAULT)}" if facts.source_fault else ""
    if facts.source is Source.CHANGED:
        message = f"{attempt.name} is not what it was when this session started{why or '.'}"
        return deny("tool_changed", attempt.name, facts.actor, message)
    message = f"{attempt.name} cannot be reached{why}."
    return deny("source_unavailable", attempt.name, facts.actor, message)


def identity(attempt: Attempt, facts: Facts) -> Denial | None:
    """4: the principal still owns the session and has access. Absent: it does."""
    if facts.identity is Identity.OK:
        return None
    if facts.identity is Identity.CONFLICT:
        message = f"{attempt.name} was not run: the caller does not own this session."
        return deny("identity_conflict", attempt.name, facts.actor, message)
    message = f"{attempt.name} was not run: the account's access changed since the turn began."
    return deny("access_revoked", attempt.name, facts.actor, message)


def workflow_state(attempt: Attempt, facts: Facts) -> Denial | None:
    """5: the call belongs to the workflow's present state and revision. Absent: there are no states."""
    state = facts.state
    if state is None or (state.made_in == state.now and attempt.name in state.tools):
        return None
    if state.made_in != state.now:
        message = f"{attempt.name} was called in {state.made_in}; the workflow is in {state.now} now."
    else:
        message = f"{attempt.name} is not part of the present state ({state.now})."
    return deny("stale_state", attempt.name, facts.actor, message)


def turn_policy(attempt: Attempt, facts: Facts) -> Denial | None:
    """6: the turn's policy permits the name."""
    policy = facts.policy
    if policy is OPEN or policy.permits(attempt.name):
        return None
    rule = f"deny {attempt.name}" if attempt.name in policy.denied else "not among the tools allowed"
    message = f"{attempt.name} is not available to {facts.actor} in this turn (turn policy: {rule})."
    delegable = attempt.name in policy.delegable and facts.delegates
    remedy = "A child that may use it can be started with delegate." if delegable else ""
    return deny("denied_by_policy", attempt.name, facts.actor, message, remedy)


def authority(attempt: Attempt, facts: Facts) -> Denial | None:
    """7: the authorities the tool requires are held, the loans that gave them still live."""
    tool = facts.tool
    if tool is None or not tool.authorities:
        return None
    missing = sorted(name for name in tool.authorities if not covers(facts.grants.authorities, name))
    if not missing:
        return None
    if any(covers(facts.expired, name) for name in missing):
        needs = ", ".join(missing)
        message = f"{attempt.name} needs {needs}, on loan to {facts.actor} for an earlier turn; the loan has ended."
        return deny("grant_expired", attempt.name, facts.actor, message)
    message = f"{attempt.name} needs the authority {', '.join(missing)}, which {facts.actor} does not hold."
    return deny("authority_missing", attempt.name, facts.actor, message)


def access(attempt: Attempt, facts: Facts) -> Denial | None:
    """8: the tool's access is not above the highest access held."""
    tool = facts.tool
    if tool is None or tool.access.level <= facts.grants.access.level:
        return None
    message = f"{attempt.name} has access {tool.access.value!r}; {facts.actor} holds {facts.grants.access.value!r}."
    return deny("access_exceeded", attempt.name, facts.actor, message)


def reach(attempt: Attempt, facts: Facts) -> Denial | None:
    """9: every context field the tool declares it needs is present."""
    tool = facts.tool
    if tool is None or tool.needs <= facts.context:
        return None
    missing = ", ".join(sorted(tool.needs - facts.context))
    return deny("context_missing", attempt.name, facts.actor, f"{attempt.name} needs {missing}, which is not there.")


def arguments(attempt: Attempt, facts: Facts) -> Denial | None:
    """10: the arguments are JSON, an object, of bearable size, and satisfy the schema."""
    fault = facts.argument_fault
    if fault is None:
        return None
    message = f"{attempt.name} was not run: at {fault.path} expected {fault.expected}, got {fault.got}."
    return deny("invalid_arguments", attempt.name, facts.actor, message)


def targets(attempt: Attempt, facts: Facts) -> Denial | None:
    """11: the paths the call names lie inside the workspace, and those it writes inside a granted root."""
    if not facts.targets:
        return None
    for target in facts.targets:
        if not target.inside:
            path = clip(target.requested, MAX_SHOWN)
            message = f"{attempt.name} was not run: {path!r} is outside the workspace ({target.rule})."
            return deny("path_outside_workspace", attempt.name, facts.actor, message)
        writes = facts.tool is not None and facts.tool.access is not Access.READ
        if writes and not any(root_covers(root, target.resolved) for root in facts.grants.roots):
            path, roots = clip(target.resolved, MAX_SHOWN), ", ".join(sorted(facts.grants.roots)) or "none"
            message = f"{attempt.name} was not run: {path!r} is under no granted write root ({roots})."
            return deny("path_outside_workspace", attempt.name, facts.actor, message)
    return None


def budget(attempt: Attempt, facts: Facts) -> Denial | None:
    """12: the actor's own account can pay, and the limits of children are not reached. Absent: no limit."""
    spent = facts.spent
    if spent is None:
        return None
    if spent.budget:
        message = f"{attempt.name} was not run: the budget of {facts.actor} is used up ({spent.budget})."
        return deny("budget_exhausted", attempt.name, facts.actor, message)
    if spent.children and attempt.name == "delegate":
        return deny(spent.children, attempt.name, facts.actor, f"No child was started: {spent.detail}.")
    return None


def effect(attempt: Attempt, facts: Facts) -> Denial | None:
    """13: no earlier effect of the same key is without a known outcome."""
    if not facts.unresolved:
        return None
    message = f"{attempt.name} was not run: the same call was made before ({facts.unresolved}) and may have happened."
    return deny("unresolved_effect", attempt.name, facts.actor, message)


CONSENT = {
    Consent.MISMATCH: ("approval_mismatch", "what was approved is not this call"),
    Consent.EXPIRED: ("approval_expired", "by the wall clock nobody answered in time, or the yes has run out"),
    Consent.REJECTED: ("approval_rejected", "a person said no"),
    Consent.USED: ("approval_used", "the approval was used already"),
}


def approval(attempt: Attempt, facts: Facts) -> Denial | NeedsApproval | None:
    """14: no approval is needed, for the tool or a change of it, or a receipt matches. Absent: nobody was asked."""
    tool = facts.tool
    if tool is None or facts.consent is Consent.GIVEN:
        return None
    asks = tool.approval is not Approval.NEVER or facts.source is Source.CHANGED
    if not asks and facts.consent is not Consent.REJECTED:
        return None
    if facts.consent in CONSENT:
        code, why = CONSENT[facts.consent]
        return deny(code, attempt.name, facts.actor, f"{attempt.name} was not run: {why}.")
    if not facts.approver:
        message = f"{attempt.name} needs a person's approval, and nobody can be asked."
        return deny("approval_unavailable", attempt.name, facts.actor, message)
    return NeedsApproval(attempt.name, facts.actor)


OFFER_GATES = (capability, registered, source, identity, workflow_state, turn_policy, authority, access, reach, budget)
GATES = (*OFFER_GATES[:9], arguments, targets, budget, effect, approval)
OFFERED = (*OFFER_GATES, approval)


def decide(attempt: Attempt, facts: Facts) -> Verdict:
    """Return whether the call may run now, or the tool be offered.

    Asked for an offer, the call gates are left out; a tool that needs approval is then `NeedsApproval`, or refused when
    nobody can be asked.
    """
    for gate in GATES if attempt.call else OFFERED:
        verdict = gate(attempt, facts)
        if verdict is not None:
            return verdict
    return PERMIT
