from __future__ import annotations

import asyncio

from tests.bench.deciding import deciding, gathering
from tests.bench.durable import append, floor_append


def test_the_figures_of_the_decision_can_be_measured() -> None:
    assert asyncio.run(deciding(10, 5)) > 0
    assert asyncio.run(gathering(10, 5)) > 0


def test_the_durable_figure_can_be_measured() -> None:
    assert asyncio.run(append(128)) > 0
    assert asyncio.run(floor_append(128)) > 0
