"""A turn and a tool call do no more than was written down: function calls are counted, and may only become fewer."""

from __future__ import annotations

import pytest

from tests.bench.counts import COUNTED, counted
from tests.contracts.calls import ON_OLDEST, RECORD, recorded, render


@pytest.mark.parametrize("operation", COUNTED)
def test_an_operation_makes_the_recorded_number_of_function_calls_and_on_newer_pythons_no_more(operation: str) -> None:
    written, now = recorded()[operation], counted(operation)
    if ON_OLDEST:
        assert now == written, "if it fell: python -m tests.contracts.calls --write"
    else:
        assert now <= written


def test_counting_twice_gives_the_same_number() -> None:
    assert counted("turn") == counted("turn")


def test_every_counted_operation_is_recorded_and_no_other() -> None:
    assert list(recorded()) == list(COUNTED)


def test_the_recorded_file_is_what_the_command_would_write() -> None:
    assert RECORD.read_text(encoding="utf-8") == render(recorded())
