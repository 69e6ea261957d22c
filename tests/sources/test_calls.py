"""Tools of a server, from the listing to the answer of a call."""

from __future__ import annotations

import asyncio

import pytest

from actors.grants import Access
from actors.messages import Outcome
from actors.sources import ToolRule
from orchestrator import Policy, Turn
from orchestrator.journal.records import OfferMade
from orchestrator.testing import call
from tests.core.stage import Ledger, names, results, staged
from tests.sources.stage import LIMIT_S, Servers, entries, entry, finished, servers, told, user

__all__ = ["servers"]


async def test_a_tool_of_a_server_is_offered_called_and_answered_like_any_other(servers: Servers) -> None:
    ledger = Ledger()
    definition = user(servers.source("db", "look", "query__records"), direct=(ledger.tool("own"),))
    script = ([call("db__look", x=1), call("db__query__records"), call("own")], "done")
    runner, model = staged(definition, *script)
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        result = await session.run("go")
        offers = [e.record for e in await entries(session) if isinstance(e.record, OfferMade)]
    assert result.output == "done"
    assert names(model.requests[0])[:3] == ["own", "db__look", "db__query__records"]
    assert [item.text for item in results(model.requests[1])] == ['{"x": 1}', "{}", "own ran"]
    assert sorted(servers.called("db")) == ["look", "query__records"]
    assert offers[0].tools == tuple(names(model.requests[0]))
    assert offers[0].fingerprint != definition.fingerprint
