"""The records of a journal: one tagged union, one total order a session.

A record is past tense and says all that a later fold needs. Loop facts of `actors.messages` are records as they are.
An `Entry` is a record with its place: ``seq`` counts from 1 without gaps and is the only order; ``at_ms`` is the wall
clock, for people to read.
"""

from __future__ import annotations

import enum

import msgspec

from actors.grants import Access, Grants
from actors.messages import (
    CallFinished,
    Limits,
    ModelFailed,
    ModelReplied,
    Steered,
    StopReason,
    TurnOpened,
    TurnOrigin,
    TurnStopped,
    Usage,
)
from orchestrator.focus import Policy
from orchestrator.journal.consent import ApprovalAnswered, ApprovalAsked, ApprovalLapsed, RuleMade, StateMoved
from orchestrator.journal.source import SourceRecord
from orchestrator.journal.work import WorkRecord

__all__ = [
    "ActorExited",
    "ActorRestarted",
    "ActorSpawned",
    "CallIntended",
    "ChildStatus",
    "Drop",
    "EffectSettled",
    "Entry",
    "LoanEnded",
    "LoanMade",
    "Noted",
    "OfferMade",
    "OutcomeDropped",
    "OutcomeRecorded",
    "Record",
    "SessionOpened",
    "SessionParked",
    "SessionResumed",
    "TurnAccepted",
    "TurnEnded",
    "TurnParked",
    "TurnRejected",
    "decode",
    "encode",
]


class ChildStatus(enum.StrEnum):
    """How a child turn stands or ended."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    BUDGET_EXHAUSTED = "budget_exhausted"


class Drop(enum.StrEnum):
    """Why an outcome is delivered to nobody: an explicit stop is silent, or the parent is gone."""

    SUPPRESSED = "suppressed"
    DEAD_LETTER = "dead_letter"


class SessionOpened(msgspec.Struct, frozen=True, tag="session_opened"):
    """The session began, for *principal* of *tenant*; *labels* say how to make it again.

    *approver* is the digest of the key that answers to approvals need; empty when nobody can be asked.
    """

    session: str
    agent: str
    fingerprint: str
    principal: str
    tenant: str
    labels: tuple[tuple[str, str], ...] = ()
    approver: str = ""


class SessionResumed(msgspec.Struct, frozen=True, tag="session_resumed"):
    """A process took the session up again under the lease *fence*."""

    fence: int


class SessionParked(msgspec.Struct, frozen=True, tag="session_parked"):
    """The session was closed cleanly; *turns* are open and go on when it is resumed."""

    turns: tuple[str, ...] = ()


class ActorSpawned(msgspec.Struct, frozen=True, omit_defaults=True, tag="actor_spawned"):
    """An actor exists: its definition, its parent (empty for the root), its authority at spawn.

    *number* is its place in the session's count of actors; *cause* the turn that started it; *call* the call or the
    workflow step that did, by which a resumed parent finds it again.
    """

    agent: str
    fingerprint: str
    parent: str
    grants: Grants
    number: int
    background: bool = False
    cause: str = ""
    call: str = ""


class ActorRestarted(msgspec.Struct, frozen=True, tag="actor_restarted"):
    """The actor has a new incarnation; its old capabilities are dead."""

    incarnation: int
    reason: str


class ActorExited(msgspec.Struct, frozen=True, tag="actor_exited"):
    """The actor takes nothing any more."""

    reason: str


class TurnAccepted(msgspec.Struct, frozen=True, omit_defaults=True, tag="turn_accepted"):
    """A turn was accepted and will have exactly one `TurnEnded`.

    *notices* are child turns whose outcomes it delivers.
    """

    turn: str
    text: str
    origin: TurnOrigin
    policy: Policy = Policy()
    grants: Grants | None = None
    limits: Limits = Limits()
    notices: tuple[str, ...] = ()


class TurnParked(msgspec.Struct, frozen=True, tag="turn_parked"):
    """A turn waits for a person and holds nothing meanwhile; it is not ended."""

    turn: str


class TurnRejected(msgspec.Struct, frozen=True, tag="turn_rejected"):
    """A turn was not accepted; this is its one terminal record."""

    turn: str
    reason: str


class OfferMade(msgspec.Struct, frozen=True, tag="offer_made"):
    """The tools really offered to the model from here on in this turn, in the workflow state *made_in*."""

    turn: str
    fingerprint: str
    tools: tuple[str, ...]
    made_in: str = ""


class CallIntended(msgspec.Struct, frozen=True, tag="call_intended"):
    """A call with an effect is about to start; durable before it does."""

    turn: str
    call: str
    tool: str
    version: str
    access: Access
    effect_key: str
    arguments: str


class EffectSettled(msgspec.Struct, frozen=True, tag="effect_settled"):
    """An effect of unknown outcome is known now: *happened* or not, as *by* says."""

    effect_key: str
    happened: bool
    by: str


class TurnEnded(msgspec.Struct, frozen=True, omit_defaults=True, tag="turn_ended"):
    """The one end of an accepted turn."""

    turn: str
    reason: StopReason
    output: str
    usage: Usage = Usage()
    detail: str = ""


class OutcomeRecorded(msgspec.Struct, frozen=True, tag="outcome_recorded"):
    """A child turn ended: the one outcome its parent is owed. The entry's actor is the parent.

    *wakes* is false for a turn that itself came of a notice, so that nothing loops.
    """

    child: str
    turn: str
    status: ChildStatus
    text: str
    wakes: bool = True


class OutcomeDropped(msgspec.Struct, frozen=True, tag="outcome_dropped"):
    """The outcome of a child turn will be delivered to nobody."""

    turn: str
    why: Drop


class LoanMade(msgspec.Struct, frozen=True, tag="loan_made"):
    """*lender* lends *grants* to the entry's actor until *turn* ends."""

    loan: str
    lender: str
    grants: Grants
    until: str


class LoanEnded(msgspec.Struct, frozen=True, tag="loan_ended"):
    """The loan gives nothing any more."""

    loan: str
    reason: str


class Noted(msgspec.Struct, frozen=True, tag="noted"):
    """Something that people watching should see; it changes no state."""

    turn: str
    kind: str
    text: str


Record = (
    TurnOpened
    | ModelReplied
    | ModelFailed
    | CallFinished
    | Steered
    | TurnStopped
    | SessionOpened
    | SessionResumed
    | SessionParked
    | ActorSpawned
    | ActorRestarted
    | ActorExited
    | TurnAccepted
    | TurnRejected
    | OfferMade
    | CallIntended
    | EffectSettled
    | TurnEnded
    | OutcomeRecorded
    | OutcomeDropped
    | LoanMade
    | LoanEnded
    | WorkRecord
    | Noted
    | ApprovalAsked
    | ApprovalAnswered
    | ApprovalLapsed
    | RuleMade
    | StateMoved
    | TurnParked
    | SourceRecord
)


class Entry(msgspec.Struct, frozen=True):
    """A record in its place; *actor* is the path of the actor it is about, empty for the session."""

    seq: int
    at_ms: int
    actor: str
    record: Record


ENCODER = msgspec.json.Encoder(order="deterministic")
DECODER = msgspec.json.Decoder(Entry)
encode = ENCODER.encode
"""Return an entry as JSON."""


def decode(data: bytes) -> Entry:
    """Return the entry that *data* encodes. Raises msgspec.DecodeError (or its ValidationError) where it is none."""
    return DECODER.decode(data)
