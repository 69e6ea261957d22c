"""Many actors in one session: supervision, one bridge to every tool, one decision, one journal."""

from __future__ import annotations

from orchestrator.agent import Agent
from orchestrator.approver import Answer, Approver
from orchestrator.errors import (
    OrchestratorError,
    ResolutionFailed,
    SessionBusy,
    SessionClosed,
    SessionIdle,
    TurnRefused,
)
from orchestrator.events import Delta, Gap
from orchestrator.focus import Policy
from orchestrator.runtime import Principal, RuntimeConfig, SessionLimits
from orchestrator.session import Session, SessionHandle
from orchestrator.turn import DeliveryResult, Result, Stop, Transition, Turn

__all__ = [
    "Agent",
    "Answer",
    "Approver",
    "DeliveryResult",
    "Delta",
    "Gap",
    "OrchestratorError",
    "Policy",
    "Principal",
    "ResolutionFailed",
    "Result",
    "RuntimeConfig",
    "Session",
    "SessionBusy",
    "SessionClosed",
    "SessionHandle",
    "SessionIdle",
    "SessionLimits",
    "Stop",
    "Transition",
    "Turn",
    "TurnRefused",
]
