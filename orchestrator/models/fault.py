"""Why a model did not answer: one error, its kind, and what would help. Pure.

The kind decides whether asking again may help (`RETRIED`), and the remedy names what a person can do: an environment
name to set, a model's name to check, a conversation to shorten.
"""

from __future__ import annotations

import enum

from actors.ports import ModelError
from actors.text import clip

__all__ = ["RETRIED", "FaultKind", "ModelFault"]

MAX_TEXT = 600


class FaultKind(enum.StrEnum):
    """What went wrong.

    For good: the key, the right to use the model, the money, the name or address, the request itself, its length, its
    size, a refusal, a reply that is no model's. Perhaps only now: too many requests, an overloaded or failing server,
    no connection, silence, a stream that broke off, one that is damaged, one with nothing in it.
    """

    AUTHENTICATION = "authentication"
    FORBIDDEN = "forbidden"
    QUOTA = "quota"
    NOT_FOUND = "not_found"
    BAD_REQUEST = "bad_request"
    TOO_LONG = "too_long"
    TOO_LARGE = "too_large"
    REFUSED = "refused"
    FOREIGN = "foreign"
    THROTTLED = "throttled"
    OVERLOADED = "overloaded"
    SERVER = "server"
    CONNECTION = "connection"
    SILENT = "silent"
    CUT = "cut"
    DAMAGED = "damaged"
    EMPTY = "empty"


RETRIED = frozenset(list(FaultKind)[list(FaultKind).index(FaultKind.THROTTLED) :])
"""The kinds after which the same request may succeed."""


class ModelFault(ModelError):
    """The model *model* did not answer: a *kind*, what was said, and a *remedy*, which may be empty.

    ``status`` is the HTTP status, if one came; ``after_s`` the seconds that the server asked to wait, if it did.
    """

    def __init__(
        self,
        kind: FaultKind,
        model: str,
        text: str,
        *,
        remedy: str = "",
        status: int | None = None,
        after_s: float | None = None,
    ) -> None:
        self.kind = kind
        self.model = model
        self.text = clip(" ".join(text.split()), MAX_TEXT)
        self.remedy = remedy
        self.status = status
        self.after_s = after_s
        super().__init__(f"{model}: {self.text}" + (f"; {remedy}" if remedy else ""))
