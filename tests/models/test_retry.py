"""Asking again: what is, how often, how long is waited, and what is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.models.fault import RETRIED, FaultKind, ModelFault
from orchestrator.models.retry import RETRY_NOTE, RetryPolicy, asked_wait, retried
from tests.models.asking import Waits

if TYPE_CHECKING:
    from actors.messages import ModelReply, Note


def fault(kind: FaultKind, **more: float) -> ModelFault:
    """A fault of this kind."""
    return ModelFault(kind, "openai:m", "it went wrong", **more)  # type: ignore[arg-type]


async def tried(kind: FaultKind, policy: RetryPolicy | None = None, **more: float) -> tuple[int, Waits, list[Note]]:
    """How often a model that always fails so is asked, the waits between, and what is told."""
    waits, notes, asked = Waits(part=1.0), [], []

    async def ask(attempt: int) -> ModelReply:
        asked.append(attempt)
        raise fault(kind, **more)

    with pytest.raises(ModelFault) as caught:
        await retried(ask, notes.append, policy or RetryPolicy(), waits.waiting)
    assert caught.value.kind is kind
    assert asked == list(range(1, len(asked) + 1))
    return len(asked), waits, notes


async def test_throttling_is_asked_five_times_with_waits_that_double_from_ten_seconds_up_to_three_hundred() -> None:
    attempts, waits, notes = await tried(FaultKind.THROTTLED)
    assert (attempts, waits.slept) == (5, [10, 20, 40, 80])
    assert [note.kind for note in notes] == [RETRY_NOTE] * 4
    assert notes[0].text == "openai:m: it went wrong; asking again in 10.0 s, attempt 2"
    assert RetryPolicy().span(FaultKind.THROTTLED, 9) == 300


async def test_an_overloaded_server_is_asked_again_sooner() -> None:
    _, waits, _ = await tried(FaultKind.OVERLOADED)
    assert waits.slept == [1, 2, 4, 8]


@pytest.mark.parametrize("kind", sorted(set(FaultKind) - RETRIED))
async def test_what_stays_wrong_is_asked_once(kind: FaultKind) -> None:
    assert (await tried(kind))[0] == 1


@pytest.mark.parametrize("kind", [FaultKind.EMPTY, FaultKind.DAMAGED])
async def test_an_answer_with_no_reply_in_it_is_asked_for_three_times(kind: FaultKind) -> None:
    assert (await tried(kind))[0] == 3


async def test_waits_are_a_random_part_of_their_span() -> None:
    policy = RetryPolicy()
    for part in (0.0, 0.25, 1.0):
        assert policy.wait(fault(FaultKind.SERVER), 3, 0.0, part) == 4.0 * part


async def test_what_the_server_asks_for_is_waited_exactly_up_to_the_cap() -> None:
    assert (await tried(FaultKind.THROTTLED, after_s=7.0))[1].slept == [7.0] * 4
    assert (await tried(FaultKind.THROTTLED, RetryPolicy(after_cap_s=5), after_s=7.0))[0] == 1


async def test_no_attempt_begins_after_the_time_is_up() -> None:
    attempts, waits, _ = await tried(FaultKind.THROTTLED, RetryPolicy(total_s=35))
    assert (attempts, waits.slept) == (3, [10, 20])


async def test_the_last_error_says_how_often_was_asked() -> None:
    async def ask(_: int) -> ModelReply:
        raise fault(FaultKind.SERVER)

    with pytest.raises(ModelFault, match=r"openai:m: it went wrong \(asked 2 times\)"):
        await retried(ask, lambda _: None, RetryPolicy(attempts=2), Waits().waiting)


@pytest.mark.parametrize("figures", [{"attempts": 0}, {"total_s": -1}, {"first_s": float("nan")}])
def test_a_policy_without_sense_is_refused(figures: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="give"):
        RetryPolicy(**figures)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "headers, wait",
    [
        ({}, None),
        ({"retry-after": "5"}, 5.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "5"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "5"}, 5.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}, 30.0),
        ({"retry-after": "Fri, 15 Jan 2027 07:00:00 GMT"}, 0.0),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT", "date": "Fri, 15 Jan 2027 08:00:10 GMT"}, 20.0),
        ({"retry-after": "Fri, 99 Jan 2027 08:00:30 GMT"}, None),
    ],
)
def test_the_wait_asked_for_is_read_in_each_form_it_comes_in(headers: dict[str, str], wait: float | None) -> None:
    assert asked_wait(headers, 1_800_000_000.0) == wait
