"""Every denial code: the gate that gives it, its usual remedy, and whether another try is worth it."""

from __future__ import annotations

from actors.messages import Denial, Retry
from actors.text import clip

__all__ = ["CODES", "MAX_NAME", "deny"]

MAX_NAME = 128

CODES: dict[str, tuple[int, str, Retry]] = {
    "capability_revoked": (1, "Nothing in this turn; a new turn has a new capability.", Retry.NEVER),
    "unknown_tool": (2, "Use one of the tools you have.", Retry.OTHER_ARGUMENTS),
    "source_unavailable": (3, "Go on without it, or try again later.", Retry.LATER),
    "tool_changed": (3, "A person must approve the changed tool.", Retry.NEVER),
    "identity_conflict": (4, "The account owner must start a session of their own.", Retry.NEVER),
    "access_revoked": (4, "The account owner can restore the access; then start a new turn.", Retry.NEVER),
    "stale_state": (5, "Ask for the present state and call what it offers.", Retry.OTHER_ARGUMENTS),
    "denied_by_policy": (6, "Ask the user if it is needed.", Retry.NEVER),
    "authority_missing": (7, "The account owner or a product setting can grant it, never an actor.", Retry.NEVER),
    "grant_expired": (7, "The loan has ended; who lent it can lend it again for a new turn.", Retry.NEVER),
    "access_exceeded": (8, "The account owner or a product setting can raise it, never an actor.", Retry.NEVER),
    "context_missing": (9, "The host must provide it before a new turn.", Retry.NEVER),
    "invalid_arguments": (10, "Correct the arguments and call again.", Retry.OTHER_ARGUMENTS),
    "path_outside_workspace": (11, "Name a path beneath a granted root.", Retry.OTHER_ARGUMENTS),
    "budget_exhausted": (12, "Answer with what you have; the account owner can raise the budget.", Retry.NEVER),
    "too_deep": (12, "Do the task yourself, or return it to your caller.", Retry.NEVER),
    "too_many_children": (12, "Wait for a child to end, or stop one, then try again.", Retry.LATER),
    "unresolved_effect": (13, "A person, or the tool's own check, must settle the earlier call first.", Retry.LATER),
    "approval_required": (14, "Wait for the answer.", Retry.LATER),
    "approval_mismatch": (14, "The changed call needs an approval of its own.", Retry.LATER),
    "approval_expired": (14, "Ask again.", Retry.LATER),
    "approval_used": (14, "A second call needs an approval of its own.", Retry.LATER),
    "approval_rejected": (14, "A person said no; do not ask again for the same, do something else.", Retry.NEVER),
    "approval_unavailable": (14, "No person can be asked here; go on without it.", Retry.NEVER),
}


def deny(code: str, tool: str, actor: str, message: str, remedy: str = "") -> Denial:
    """Make the denial *code*; the remedy is the code's own unless one is given."""
    gate, usual, retryable = CODES[code]
    return Denial(code, clip(tool, MAX_NAME), actor, gate, message, remedy or usual, retryable)
