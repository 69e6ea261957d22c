"""Every frozen value that enters a mailbox or crosses a port: calls, results, denials, facts and effects.

Facts are past tense: they happened, they are journalled, and the pure loop folds them. Effects are imperative: what the
loop asks its driver to do. A fact that does not concern the turn in flight changes nothing.
"""

from __future__ import annotations

import enum

import msgspec

__all__ = [
    "AskModel",
    "CallFinished",
    "Denial",
    "Effect",
    "EndTurn",
    "Fact",
    "Item",
    "Limits",
    "ModelFailed",
    "ModelReplied",
    "ModelReply",
    "Note",
    "Outcome",
    "ReplyStop",
    "Results",
    "Retry",
    "RunCalls",
    "Said",
    "Steered",
    "StopReason",
    "ToolCall",
    "ToolResult",
    "TurnOpened",
    "TurnOrigin",
    "TurnStopped",
    "Usage",
]


class ReplyStop(enum.StrEnum):
    """Why the model stopped: it was done, it wants tools, its output limit cut it, or it refused."""

    END = "end"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    REFUSED = "refused"


class StopReason(enum.StrEnum):
    """How a turn ended."""

    COMPLETED = "completed"
    MAX_STEPS = "max_steps"
    MAX_TOKENS = "max_tokens"
    MAX_MONEY = "max_money"
    TIMED_OUT = "timed_out"
    REPEATED_CALLS = "repeated_calls"
    CANCELLED = "cancelled"
    FAILED = "failed"
    SUSPENDED = "suspended"


class TurnOrigin(enum.StrEnum):
    """What made the turn: a caller's run, a message, a parent's delegation, a workflow step, a child's notice."""

    RUN = "run"
    SEND = "send"
    DELEGATE = "delegate"
    STEP = "step"
    NOTICE = "notice"


class Outcome(enum.StrEnum):
    """What became of a call. ``unknown``: it may have happened, nobody saw the end of it."""

    OK = "ok"
    ERROR = "error"
    DENIED = "denied"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


class Retry(enum.StrEnum):
    """Whether a refused call is worth another try: with other arguments, later, or never in this turn."""

    OTHER_ARGUMENTS = "other_arguments"
    LATER = "later"
    NEVER = "never"


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was spent: tokens (``input_tokens`` includes the cached ones), model requests, tool calls, money.

    ``money`` is ``None`` when the price is not known; it is never guessed to be 0.
    """

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    requests: int = 0
    calls: int = 0
    money: float | None = None

    @property
    def tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        money = self.money if other.money is None else (self.money or 0.0) + other.money
        return Usage(
            self.input_tokens + other.input_tokens,
            self.cached_tokens + other.cached_tokens,
            self.output_tokens + other.output_tokens,
            self.requests + other.requests,
            self.calls + other.calls,
            money,
        )


class Limits(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Limits of one turn. ``None`` means no limit; ``seconds`` is real time; ``repeats`` counts equal calls.

    Raises ValueError for a figure below 1 (``seconds`` and ``money``: not above 0).
    """

    steps: int | None = 100
    calls: int | None = 1000
    tokens: int | None = None
    money: float | None = None
    seconds: float | None = 1800.0
    repeats: int = 5

    def __post_init__(self) -> None:
        for name in ("steps", "calls", "tokens", "repeats"):
            value = getattr(self, name)
            if value is not None and value < 1:
                msg = f"Limits.{name} is {value}; give at least 1" + (
                    "" if name == "repeats" else ", or None for no limit"
                )
                raise ValueError(msg)
        for name in ("money", "seconds"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                msg = f"Limits.{name} is {value}; give a number above 0, or None for no limit"
                raise ValueError(msg)


class ToolCall(msgspec.Struct, frozen=True):
    """One call of a model: its id, the tool's name, the arguments exactly as received."""

    id: str
    name: str
    arguments: str = "{}"


class ModelReply(msgspec.Struct, frozen=True, omit_defaults=True, tag="reply"):
    """One reply of a model: text, calls, why it stopped, what it cost."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    stop: ReplyStop = ReplyStop.END
    usage: Usage = Usage()
    reasoning: str = ""


class Denial(msgspec.Struct, frozen=True):
    """A refusal the model can adapt to: what was refused, by which gate, and what would change it."""

    code: str
    tool: str
    actor: str
    gate: int
    message: str
    remedy: str
    retryable: Retry

    @property
    def text(self) -> str:
        """What the model reads."""
        return f"{self.message} {self.remedy}".strip()


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """The one answer to one call."""

    call_id: str
    name: str
    text: str
    outcome: Outcome = Outcome.OK
    denial: Denial | None = None

    @property
    def error(self) -> bool:
        """Whether the call did not simply succeed."""
        return self.outcome is not Outcome.OK


class Said(msgspec.Struct, frozen=True, tag="said"):
    """A text that entered the history as the user's side: an input, a steering message, a notice, a correction."""

    text: str


class Results(msgspec.Struct, frozen=True, tag="results"):
    """The results of one reply's calls, in call order, each call answered once."""

    results: tuple[ToolResult, ...]


Item = Said | ModelReply | Results


class TurnOpened(msgspec.Struct, frozen=True, tag="turn_opened"):
    """A turn began with *text*."""

    turn: str
    text: str
    origin: TurnOrigin = TurnOrigin.RUN
    limits: Limits = Limits()


class ModelReplied(msgspec.Struct, frozen=True, omit_defaults=True, tag="model_replied"):
    """The model answered. *fault*: why its text is not the JSON asked for; *answer*: the JSON inside its fence."""

    turn: str
    reply: ModelReply
    fault: str = ""
    answer: str = ""


class ModelFailed(msgspec.Struct, frozen=True, tag="model_failed"):
    """The model could not be asked; *error* says why."""

    turn: str
    error: str


class CallFinished(msgspec.Struct, frozen=True, omit_defaults=True, tag="call_finished"):
    """A call has its result; *discharged* are the child turns whose outcomes it delivers."""

    turn: str
    result: ToolResult
    discharged: tuple[str, ...] = ()


class Steered(msgspec.Struct, frozen=True, omit_defaults=True, tag="steered"):
    """A message for the turn in flight; *notices* are the child turns whose outcomes it delivers."""

    turn: str
    text: str
    notices: tuple[str, ...] = ()


class TurnStopped(msgspec.Struct, frozen=True, tag="turn_stopped"):
    """The turn was stopped from outside; *reason* is how it ends."""

    turn: str
    reason: StopReason
    detail: str = ""


Fact = TurnOpened | ModelReplied | ModelFailed | CallFinished | Steered | TurnStopped


class AskModel(msgspec.Struct, frozen=True):
    """Ask the model with the present history; ``final``: without tools, for the last time in this turn."""

    final: bool = False


class RunCalls(msgspec.Struct, frozen=True):
    """Run these calls and report each result as `CallFinished`."""

    calls: tuple[ToolCall, ...]


class Note(msgspec.Struct, frozen=True):
    """Tell subscribers something they could not see otherwise."""

    kind: str
    text: str


class EndTurn(msgspec.Struct, frozen=True):
    """The turn is over: *output* is the final text, *detail* what went wrong, if anything did."""

    turn: str
    reason: StopReason
    output: str
    usage: Usage
    detail: str = ""


Effect = AskModel | RunCalls | Note | EndTurn
