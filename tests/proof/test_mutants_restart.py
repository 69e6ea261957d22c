"""The edges of restarting that no other test names: the defaults, the words on record, the very end of the window."""

from __future__ import annotations

import pytest

from orchestrator.restart import Decision, Intensity, RestartKind, on_exit

KINDS = ("permanent", "transient", "temporary")
EDGE = Intensity(most=2, within_s=5.0)


def test_the_words_and_the_defaults_are_those_of_the_concepts() -> None:
    assert tuple(RestartKind) == KINDS
    assert tuple(Decision) == ("restart", "leave", "escalate")
    assert Intensity() == Intensity(3, 5.0)


@pytest.mark.parametrize("age, left", [(4.9, Decision.ESCALATE), (5.0, Decision.RESTART), (5.1, Decision.RESTART)])
def test_a_restart_counts_until_the_window_has_passed_and_no_longer(age: float, left: Decision) -> None:
    decision, times = on_exit(
        RestartKind.PERMANENT, crashed=True, restarts=(100.0 - age, 99.0), now=100.0, intensity=EDGE
    )
    assert decision is left
    assert (99.0 in times, 100.0 in times) == (True, left is Decision.RESTART)


@pytest.mark.parametrize(
    "kind, crashed, expected",
    [
        ("permanent", True, Decision.RESTART),
        ("permanent", False, Decision.RESTART),
        ("transient", True, Decision.RESTART),
        ("transient", False, Decision.LEAVE),
        ("temporary", True, Decision.ESCALATE),
        ("temporary", False, Decision.LEAVE),
    ],
)
def test_each_kind_of_actor_is_treated_by_the_way_it_ended(kind: str, crashed: bool, expected: Decision) -> None:  # noqa: FBT001  # a parameter of the table
    decision, times = on_exit(RestartKind(kind), crashed=crashed, restarts=(1.0,), now=2.0, intensity=EDGE)
    assert decision is expected
    assert times == ((1.0, 2.0) if expected is Decision.RESTART else (1.0,))


def test_no_restart_at_all_may_be_allowed_and_a_window_must_last() -> None:
    none = Intensity(most=0, within_s=0.5)
    assert on_exit(RestartKind.PERMANENT, crashed=True, restarts=(), now=1.0, intensity=none) == (Decision.ESCALATE, ())
    for most, within_s in ((-1, 1.0), (1, 0.0), (1, -1.0), (1, float("nan"))):
        with pytest.raises(ValueError, match="is not possible"):
            Intensity(most, within_s)
