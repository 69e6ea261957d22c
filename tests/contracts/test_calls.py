"""A turn and a tool call do no more than was written down: function calls are counted, and may only become fewer."""

from __future__ import annotations

import pytest

from tests.bench.counts import COUNTED, counted
from tests.contracts.calls import PYTHON, RECORD, recorded, render


@pytest.mark.parametrize("operation", COUNTED)
def test_an_operation_makes_exactly_the_recorded_number_of_function_calls(operation: str) -> None:
    record = recorded()
    written, now = record["calls"][operation], counted(operation)
    if record["python"] == PYTHON:
        assert now == written, "if it fell: python -m tests.contracts.calls --write"
    else:  # another version's event loop makes some calls more or fewer, so only what is clearly worse fails
        assert now <= written * 1.05


def test_counting_twice_gives_the_same_number() -> None:
    assert counted("turn") == counted("turn")


def test_every_counted_operation_is_recorded_and_no_other() -> None:
    assert list(recorded()["calls"]) == list(COUNTED)


def test_the_recorded_file_is_what_the_command_would_write() -> None:
    record = recorded()
    assert RECORD.read_text(encoding="utf-8") == render(record["python"], record["calls"])
