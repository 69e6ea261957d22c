"""Asking a model again: the one place where that happens.

Rules:

- Only faults that may pass (`RETRIED`) are asked again, at most ``attempts`` times in all, never beyond ``total_s``.
- What the server asks to wait is waited, up to ``after_cap_s``; above that the fault is final. Else the wait is a
  random part of a span that doubles each time (full jitter), longer where the server said that it is asked too often.
- Each new attempt is told in one note before its wait. On cancel nothing more is asked, in a wait too.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import attrs

from actors.messages import Note
from orchestrator.models.fault import RETRIED, FaultKind, ModelFault

if TYPE_CHECKING:
    from collections.abc import Mapping

    from actors.messages import ModelReply

__all__ = ["RETRY_NOTE", "RetryPolicy", "Waiting", "asked_wait", "retried"]

RETRY_NOTE = "model_retry"
FEW = {FaultKind.EMPTY: 3, FaultKind.DAMAGED: 3}
LONG = frozenset({FaultKind.THROTTLED})


@attrs.frozen
class RetryPolicy:
    """How often and how long; seconds. ``attempts`` counts the first one, so 1 never asks again.

    The span of the first wait is ``first_s``, or ``throttled_s`` where the server said that it is asked too often;
    it doubles up to ``cap_s``. ``after_cap_s`` is the longest wait that a server may ask for, ``total_s`` the time
    after which no further attempt begins. Raises ValueError for figures that make no sense.
    """

    attempts: int = 5
    first_s: float = 1.0
    throttled_s: float = 10.0
    cap_s: float = 300.0
    after_cap_s: float = 120.0
    total_s: float = 600.0

    def __attrs_post_init__(self) -> None:
        if self.attempts < 1:
            msg = f"RetryPolicy.attempts is {self.attempts}; give at least 1"
            raise ValueError(msg)
        for name in ("first_s", "throttled_s", "cap_s", "after_cap_s", "total_s"):
            value = getattr(self, name)
            if not value >= 0:
                msg = f"RetryPolicy.{name} is {value}; give seconds, at least 0"
                raise ValueError(msg)

    def span(self, kind: FaultKind, attempt: int) -> float:
        """Return the longest wait after the failed *attempt* (from 1) when the server named none."""
        first = self.throttled_s if kind in LONG else self.first_s
        return min(self.cap_s, first * 2.0 ** min(attempt - 1, 60))

    def wait(self, fault: ModelFault, attempt: int, spent_s: float, part: float) -> float | None:
        """Return the seconds to wait after *fault* ended *attempt*, or ``None`` to give up.

        *spent_s* is the time since the first attempt began, *part* a number from 0 to 1: the jitter.
        """
        if fault.kind not in RETRIED or attempt >= min(self.attempts, FEW.get(fault.kind, self.attempts)):
            return None
        if fault.after_s is not None:
            wait = fault.after_s
            if wait > self.after_cap_s:
                return None
        else:
            wait = self.span(fault.kind, attempt) * part
        return wait if spent_s + wait <= self.total_s else None


@attrs.frozen
class Waiting:
    """Where waits, chance and time come from; tests give their own. Seconds; ``wall`` counts from 1970."""

    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    part: Callable[[], float] = random.random
    now: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time


async def retried(
    ask: Callable[[int], Awaitable[ModelReply]],
    tell: Callable[[Note], None],
    policy: RetryPolicy,
    waiting: Waiting,
) -> ModelReply:
    """Return what *ask* answers; it is given the number of the attempt, from 1.

    Each new attempt is told by *tell* before its wait. Raises the last `ModelFault`, with how often was asked.
    """
    began, attempt = waiting.now(), 1
    while True:
        try:
            return await ask(attempt)
        except ModelFault as fault:
            wait = policy.wait(fault, attempt, waiting.now() - began, waiting.part())
            if wait is None:
                raise given_up(fault, attempt, policy) from fault
            attempt += 1
            tell(Note(RETRY_NOTE, f"{fault.model}: {fault.text}; asking again in {wait:.1f} s, attempt {attempt}"))
        await waiting.sleep(wait)


def given_up(fault: ModelFault, attempt: int, policy: RetryPolicy) -> ModelFault:
    """Return *fault* with what was tried: how often it was asked, or how long the server wanted to be left alone."""
    if fault.kind not in RETRIED:
        return fault
    text = f"{fault.text} (asked {attempt} times)" if attempt > 1 else fault.text
    remedy = fault.remedy
    if fault.after_s is not None and fault.after_s > policy.after_cap_s:
        remedy = f"the server asks to wait {fault.after_s:.0f} s, and {policy.after_cap_s:.0f} s is the most we do"
    return ModelFault(fault.kind, fault.model, text, remedy=remedy, status=fault.status, after_s=fault.after_s)


def asked_wait(headers: Mapping[str, str], wall: float) -> float | None:
    """Return the seconds that a server asks to wait in *headers* (keys in lower case), or ``None``.

    ``retry-after-ms``, or ``retry-after`` in seconds or as a date, which is compared with the server's own ``date``
    where there is one, else with *wall*, seconds since 1970. What cannot be read is not there; the past is 0.
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        seconds = _number(headers.get(name, ""))
        if seconds is not None:
            return seconds / unit
    due = _date(headers.get("retry-after", ""))
    if due is None:
        return None
    now = _date(headers.get("date", ""))
    return max(0.0, due - (wall if now is None else now))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None
