"""Many actors in one session: supervision, one bridge to every tool, one decision, one journal."""

from __future__ import annotations

from orchestrator.agent import Agent
from orchestrator.errors import (
    HandleRefused,
    OrchestratorError,
    ResolutionFailed,
    SessionBusy,
    SessionClosed,
    SessionIdle,
    TurnRefused,
)
from orchestrator.events import Delta, Gap
from orchestrator.focus import Policy
from orchestrator.runtime import Principal, Restart, RuntimeConfig, SessionLimits
from orchestrator.session import Session, SessionHandle
from orchestrator.turn import DeliveryResult, Result, Stop, Turn

__all__ = [
    "Agent",
    "DeliveryResult",
    "Delta",
    "Gap",
    "HandleRefused",
    "OrchestratorError",
    "Policy",
    "Principal",
    "ResolutionFailed",
    "Restart",
    "Result",
    "RuntimeConfig",
    "Session",
    "SessionBusy",
    "SessionClosed",
    "SessionHandle",
    "SessionIdle",
    "SessionLimits",
    "Stop",
    "Turn",
    "TurnRefused",
]
