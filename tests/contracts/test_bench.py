from __future__ import annotations

import asyncio

from tests.bench.deciding import deciding, gathering
from tests.bench.durable import append, floor_append
from tests.bench.streaming import floor_stream, over_httpx2, sdk, served, wire


def test_the_figures_of_the_decision_can_be_measured() -> None:
    assert asyncio.run(deciding(10, 5)) > 0
    assert asyncio.run(gathering(10, 5)) > 0


def test_the_durable_figure_can_be_measured() -> None:
    assert asyncio.run(append(128)) > 0
    assert asyncio.run(floor_append(128)) > 0


def test_every_client_of_the_streamed_figure_comes_to_the_whole_reply() -> None:
    with served() as port:
        for client in (floor_stream, wire, over_httpx2, sdk):
            assert asyncio.run(client(f"http://127.0.0.1:{port}", 1)) > 0
