"""The errors of sessions, admission and files.

OrchestratorError
├── SessionBusy        another caller's run is in flight
├── SessionClosed      the session does not take anything any more
├── SessionIdle        there is no turn in flight to wait for
├── TurnRefused        a turn that cannot be accepted: its policy or grants are not possible here
├── WouldDeadlock      a cycle of actors that would wait for each other
├── LoanRefused        a loan wider than its lender or its borrower's role allows
├── ResolutionFailed   a definition whose sources or schemas cannot be taken into a session
├── UnknownModel       a model name that leads to no model
├── KeyMissing         a model whose key is not in the environment
├── UnknownProduct     a product that is not shipped
└── HandleRefused      a session handle that does not fit this agent or this store
"""

from __future__ import annotations

__all__ = [
    "AnswerRefused",
    "HandleRefused",
    "KeyMissing",
    "LoanRefused",
    "OrchestratorError",
    "ResolutionFailed",
    "SessionBusy",
    "SessionClosed",
    "SessionIdle",
    "TransitionRefused",
    "TurnRefused",
    "UnknownModel",
    "UnknownProduct",
    "WouldDeadlock",
]


class OrchestratorError(Exception):
    """Base of every error this package raises on purpose; stores have a tree of their own."""


class AnswerRefused(OrchestratorError):
    """The answer to *approval* does not count and nothing was recorded; *code* is the kind, *reason* says why.

    Codes: ``unknown``, ``wrong_key``, ``answered``, ``closed``, ``expired``, ``invalid_arguments``, ``invalid_rule``.
    """

    def __init__(self, approval: str, code: str, reason: str) -> None:
        self.approval = approval
        self.code = code
        self.reason = reason
        super().__init__(f"the answer to {approval} does not count: {reason}")


class SessionBusy(OrchestratorError):
    """Another caller's ``run`` is in flight in *session*; nothing was taken. Send, or wait for it."""

    def __init__(self, session: str) -> None:
        self.session = session
        super().__init__(
            f"session {session} is busy: a run is in flight; send a message to steer it, or wait for its end"
        )


class SessionClosed(OrchestratorError):
    """The session is closed; start it again from its handle."""

    def __init__(self, session: str) -> None:
        self.session = session
        super().__init__(f"session {session} is closed; start it again from its handle")


class SessionIdle(OrchestratorError):
    """There is no turn in flight to wait for."""

    def __init__(self, session: str) -> None:
        self.session = session
        super().__init__(f"session {session} has no turn in flight to wait for; give run() a turn")


class TurnRefused(OrchestratorError):
    """The turn was not accepted; *turn* is its id, *reason* what is wrong with it."""

    def __init__(self, turn: str, reason: str) -> None:
        self.turn = turn
        self.reason = reason
        super().__init__(f"turn {turn} was refused: {reason}")


class TransitionRefused(OrchestratorError):
    """There is no workflow state *to* to move to; *known* are those there are."""

    def __init__(self, to: str, known: tuple[str, ...]) -> None:
        self.to = to
        self.known = known
        super().__init__(f"there is no workflow state {to!r}; there are: {', '.join(known) or 'none'}")


class WouldDeadlock(OrchestratorError):
    """Waiting would close the *cycle* of actors that wait for each other."""

    def __init__(self, cycle: tuple[str, ...]) -> None:
        self.cycle = cycle
        super().__init__(f"would_deadlock: {' waits for '.join(cycle)}; answer instead of asking back")


class LoanRefused(OrchestratorError):
    """*lender* cannot lend that to *borrower*; *faults* say in what it is too much."""

    def __init__(self, lender: str, borrower: str, faults: tuple[str, ...]) -> None:
        self.lender = lender
        self.borrower = borrower
        self.faults = faults
        super().__init__(f"{lender} cannot lend this to {borrower}: {'; '.join(faults)}")


class ResolutionFailed(OrchestratorError):
    """A definition cannot be taken into a session; *faults* lists every reason."""

    def __init__(self, definition: str, faults: tuple[str, ...]) -> None:
        self.definition = definition
        self.faults = faults
        super().__init__(
            f"definition {definition!r} cannot be resolved:" + "".join(f"\n  - {fault}" for fault in faults)
        )


class UnknownModel(OrchestratorError):
    """The model *name* leads nowhere, for *reason*; *known* are the forms that there are."""

    def __init__(self, name: str, reason: str, known: tuple[str, ...]) -> None:
        self.name = name
        self.reason = reason
        self.known = known
        super().__init__(f"model {name!r}: {reason}; write one of: {', '.join(known)}")


class KeyMissing(OrchestratorError):
    """The model *name* needs a key, and the environment has none under *variable*."""

    def __init__(self, name: str, variable: str) -> None:
        self.name = name
        self.variable = variable
        super().__init__(
            f"model {name!r} needs a key and {variable} is not set; set {variable}, or name a local server, such as "
            "ollama:MODEL ('orchestrator doctor' finds them)"
        )


class UnknownProduct(OrchestratorError):
    """There is no product *name*; *known* are those there are."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        self.name = name
        self.known = known
        super().__init__(f"there is no product {name!r}; shipped are: {', '.join(known)}")


class HandleRefused(OrchestratorError):
    """A handle that cannot be resumed here, and why."""
