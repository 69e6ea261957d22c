"""What a session's journal adds up to, as tables. Read them freely; only `orchestrator.journal.fold` changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.loop import IDLE, LoopState
from actors.messages import Usage
from orchestrator.focus import OPEN, Policy

if TYPE_CHECKING:
    from actors.grants import Grants
    from actors.messages import EndTurn
    from orchestrator.journal.consent import ApprovalAnswered, ApprovalAsked, RuleMade
    from orchestrator.journal.records import (
        ActorSpawned,
        CallIntended,
        LoanMade,
        OfferMade,
        OutcomeRecorded,
        SessionOpened,
        TurnAccepted,
        TurnEnded,
    )
    from orchestrator.journal.source import Pin, SourceRunning
    from orchestrator.journal.work import (
        FindingRecorded,
        FixesRecorded,
        FixRecorded,
        ReviewRecorded,
        Stage,
        StageStarted,
        StepFinished,
        StepStarted,
    )

__all__ = ["ActorState", "ApprovalState", "OwedOutcome", "SessionState", "Terms"]

Terms = tuple[Policy, "Grants | None"]
OPEN_TERMS: Terms = (OPEN, None)


class ActorState:
    """What the journal says of one actor.

    ``waiting`` are accepted turns in order, the one in flight first. ``task`` is the turn its parent delegated to it.
    ``terms`` are the policy and grants of the turn that started it, ``last_terms`` those of its last accepted turn.
    """

    __slots__ = (
        "crash_mark",
        "ended",
        "exited",
        "incarnation",
        "last_fact",
        "last_terms",
        "loop",
        "offered",
        "path",
        "spawned",
        "spent",
        "stuck",
        "task",
        "terms",
        "waiting",
    )

    def __init__(self, path: str, spawned: ActorSpawned) -> None:
        self.path = path
        self.spawned = spawned
        self.incarnation = 1
        self.exited = ""
        self.waiting: list[TurnAccepted] = []
        self.task = ""
        self.terms: Terms | None = None
        self.last_terms = OPEN_TERMS
        self.offered: OfferMade | None = None
        self.loop: LoopState = IDLE
        self.ended: EndTurn | None = None
        self.last_fact = 0
        self.crash_mark = 0
        self.stuck = False
        self.spent = Usage()

    def accepted(self, turn: str) -> TurnAccepted | None:
        """Return the accepted and not yet ended turn with this id."""
        for waiting in self.waiting:
            if waiting.turn == turn:
                return waiting
        return None


class OwedOutcome:
    """The outcome of one child turn. ``discharged`` is empty while the parent is owed it."""

    __slots__ = ("child", "discharged", "parent", "status", "text", "turn", "wakes")

    def __init__(self, parent: str, record: OutcomeRecorded) -> None:
        self.parent = parent
        self.child = record.child
        self.turn = record.turn
        self.status = record.status
        self.text = record.text
        self.wakes = record.wakes
        self.discharged = ""


class ApprovalState:
    """One question to a person. ``used`` once the call it is bound to has run, or was refused otherwise."""

    __slots__ = ("answered", "asked", "lapsed", "path", "used")

    def __init__(self, path: str, asked: ApprovalAsked) -> None:
        self.path = path
        self.asked = asked
        self.answered: ApprovalAnswered | None = None
        self.lapsed = False
        self.used = False


class SessionState:
    """The fold of a session's entries. Read it freely; only `apply` changes it.

    ``stages`` are a step's turns but for its first, by stage, round and whether it is a correction; ``rounds`` what its
    reviewer and its fixer said, in order; ``step_ends`` how each turn of a step that is not over ended.
    """

    def __init__(self) -> None:
        self.opened: SessionOpened | None = None
        self.parked = False
        self.seq = 0
        self.turns = 0
        self.spawned = 0
        self.actors: dict[str, ActorState] = {}
        self.children: dict[str, list[str]] = {}
        self.by_call: dict[str, str] = {}
        self.outcomes: dict[str, OwedOutcome] = {}
        self.owing: dict[str, dict[str, OwedOutcome]] = {}
        self.in_doubt: dict[tuple[str, str], CallIntended] = {}
        self.unresolved: dict[str, CallIntended] = {}
        self.loans: dict[str, LoanMade] = {}
        self.borrowed: dict[str, list[str]] = {}
        self.ended_loans: dict[str, list[LoanMade]] = {}
        self.findings: list[tuple[str, FindingRecorded]] = []
        self.fixes: list[tuple[str, FixRecorded]] = []
        self.outputs: dict[str, tuple[str, str]] = {}
        self.approvals: dict[str, ApprovalState] = {}
        self.asked_for: dict[tuple[str, str], str] = {}
        self.rules: list[RuleMade] = []
        self.workflow = ""
        self.moves = 0
        self.steps: dict[str, StepStarted] = {}
        self.finished_steps: dict[str, StepFinished] = {}
        self.step_ends: dict[str, TurnEnded] = {}
        self.pins: dict[str, tuple[Pin, ...]] = {}
        self.processes: dict[str, SourceRunning | None] = {}
        self.stages: dict[str, dict[tuple[Stage, int, bool], StageStarted]] = {}
        self.rounds: dict[str, list[ReviewRecorded | FixesRecorded]] = {}

    def use(self, path: str, call: str) -> None:
        """Use up the yes that a call may have: it has begun, or has its result."""
        approval = self.approvals.get(self.asked_for.get((path, call), ""))
        if approval is not None:
            approval.used = True

    def asks(self, path: str) -> bool:
        """Tell whether the actor *path*, or one below it, waits for a person's answer."""
        return any(
            f"{approval.path}/".startswith(f"{path}/") and approval.answered is None and not approval.used
            for approval in self.approvals.values()
        )

    def owed(self, parent: str) -> tuple[OwedOutcome, ...]:
        """Return the outcomes owed to *parent*, in the order in which they came."""
        owing = self.owing.get(parent)
        return tuple(owing.values()) if owing else ()

    def live_loans(self, borrower: str) -> tuple[LoanMade, ...]:
        """Return the loans that give *borrower* something now; a loan fails closed when its lender is gone."""
        ids = self.borrowed.get(borrower)
        if not ids:
            return ()
        loans = (self.loans[loan] for loan in ids if loan in self.loans)
        return tuple(loan for loan in loans if loan.lender in self.actors and not self.actors[loan.lender].exited)

    def lost_loans(self, borrower: str) -> tuple[LoanMade, ...]:
        """Return the loans that gave *borrower* something once and do not any more."""
        live = self.live_loans(borrower)
        ids = self.borrowed.get(borrower, ())
        gone = tuple(self.loans[loan] for loan in ids if loan in self.loans and self.loans[loan] not in live)
        return (*gone, *self.ended_loans.get(borrower, ()))
