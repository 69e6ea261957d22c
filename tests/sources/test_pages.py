"""Listings of several pages, empty pages, and pages without end."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator import Policy, Turn
from orchestrator.testing import call
from tests.core.stage import names, staged
from tests.sources.stage import LIMIT_S, Servers, entry, finished, servers, told, user

__all__ = ["servers"]


@pytest.mark.requirement("B36")
async def test_tools_of_every_page_are_found_and_called_and_a_loop_costs_its_own_server_alone(servers: Servers) -> None:
    paged = servers.source("s", pages=[[entry("t0")], [entry("t1")], [entry("t2")]])
    empty = servers.source("empty", pages=[[], [entry("late")]])
    looping = servers.source("loop", "t", loop="same", declared={"required": False})
    all_of_it = ["s__t0", "s__t1", "s__t2", "empty__late"]
    script = [[call(name) for name in all_of_it], call("get_api_spec", tool_name=all_of_it), "end"]
    runner, model = staged(user(paged, empty, looping), *script)
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        assert (await session.run("go")).output == "end"
        seen, said = await finished(session), await told(session)
    assert [name for name in names(model.requests[0]) if "__" in name] == all_of_it
    assert sorted(servers.called("s") + servers.called("empty")) == ["late", "t0", "t1", "t2"]
    assert all(f'"name":"{name}"' in seen["get_api_spec"].text for name in all_of_it)
    assert [kind for kind, _ in said] == ["source_unavailable"]
    assert "its listing of tools goes round: the cursor 'same' came twice" in said[0][1]


@pytest.mark.requirement("B36")
async def test_a_policy_that_permits_a_tool_of_the_last_page_alone_offers_that_one(servers: Servers) -> None:
    paged = servers.source("s", pages=[[entry("t0")], [entry("t1")], [entry("t2")]])
    runner, model = staged(user(paged), [call("s__t2"), call("s__t0")], "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run(Turn("go", policy=Policy.allow("s__t2")))
    assert [name for name in names(model.requests[0]) if "__" in name] == ["s__t2"]
    assert servers.called("s") == ["t2"]


async def test_a_cursor_that_is_always_another_one_ends_as_well(servers: Servers) -> None:
    endless = servers.source("s", "t", endless=True, declared={"required": False, "start_s": 15.0})
    runner, _ = staged(user(endless), "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        said = await told(session)
    assert [kind for kind, _ in said] == ["source_unavailable"]
    assert "its listing of tools has more than 100 pages" in said[0][1]


async def test_a_page_that_never_comes_is_waited_for_as_long_as_its_source_says(servers: Servers) -> None:
    first = '{"jsonrpc":"2.0","id":$ID,"result":{"tools":[{"name":"t"}],"nextCursor":"$CLOCK"}}'
    silent = servers.liar(
        "s", does={"tools/list": [{"line": first, "once": True}]}, declared={"start_s": 0.8, "required": False}
    )
    runner, _ = staged(user(silent, servers.source("well", "t")), call("well__t"), "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        said = await told(session)
    assert [(kind, "0.8 s" in text) for kind, text in said] == [("source_unavailable", True)]
    assert servers.called("well") == ["t"]
