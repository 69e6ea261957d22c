"""What tools of servers are called, and that a name never depends on who came up first."""

from __future__ import annotations

import asyncio
import random

import pytest

from actors.naming import PROVIDER, EdgeNames
from actors.roles import ROLES
from actors.roles.role import Role
from actors.sources import MCPSource
from orchestrator import ResolutionFailed
from orchestrator.journal.source import Pin
from orchestrator.sources.taking import take
from orchestrator.testing import call
from tests.core.stage import Ledger, names, staged
from tests.sources.stage import LIMIT_S, Servers, entry, finished, servers, user

__all__ = ["servers"]

RUN = ROLES[Role.RUN]


def taken(source: MCPSource, *tools: str) -> dict[str, str]:
    """What each tool of a server is called in a definition."""
    pins = [Pin(name, "Does it.", '{"type":"object"}') for name in tools]
    return {each.pin.name: each.tool.name for each in take(source, pins, RUN).tools}


@pytest.mark.parametrize(
    "server, tool, name",
    [("github", "search", "github__search"), ("database", "query__records", "database__query__records")],
)
def test_a_tool_is_called_after_its_server_and_its_own_name_is_kept(server: str, tool: str, name: str) -> None:
    assert taken(MCPSource(server, ("x",)), tool) == {tool: name}


def test_a_source_may_ask_for_bare_names_or_for_a_prefix_of_its_own() -> None:
    assert taken(MCPSource("github", ("x",), prefix=""), "search") == {"search": "search"}
    assert taken(MCPSource("database", ("x",), prefix=""), "query__records") == {"query__records": "query__records"}
    assert taken(MCPSource("github", ("x",), prefix="gh."), "search") == {"search": "gh.search"}


def test_two_servers_whose_names_look_alike_stay_apart() -> None:
    first, second = MCPSource("google-sheets", ("x",)), MCPSource("google_sheets", ("x",))
    assert taken(first, "read") == {"read": "google-sheets__read"}
    assert taken(second, "read") == {"read": "google_sheets__read"}


@pytest.mark.requirement("B15")
def test_names_are_the_same_whatever_the_order_and_legal_at_a_provider_however_long() -> None:
    long, odd = "n" * 64, ["näme", "na me", "na/me", "na me "]
    sources = [MCPSource(name, ("x",)) for name in ("s1", "s2")]
    expected = [taken(source, long, *odd) for source in sources]
    whole = [name for each in expected for name in each.values()]
    assert len(set(whole)) == 2 * (1 + len(odd))
    provider = EdgeNames(whole, PROVIDER)
    assert len({provider.there(name) for name in whole}) == len(whole)
    for seed in range(20):
        tools = [long, *odd]
        random.Random(seed).shuffle(tools)
        assert [taken(source, *tools) for source in sources] == expected
        random.Random(seed).shuffle(whole)
        again = EdgeNames(whole, PROVIDER)
        assert all(again.there(name) == provider.there(name) for name in whole)
        assert all(again.back(again.there(name)) == name for name in whole)


@pytest.mark.requirement("I2", "B11")
async def test_bare_names_that_clash_stop_the_start_and_name_every_owner(servers: Servers) -> None:
    bare = {"prefix": ""}
    alpha, beta = (servers.source(name, "search", declared=bare) for name in ("alpha", "beta"))
    definition = user(alpha, beta, direct=(Ledger().tool("search"),))
    runner, _ = staged(definition, "never")
    async with asyncio.timeout(LIMIT_S), runner:
        with pytest.raises(ResolutionFailed) as caught:
            await runner.run("go")
    (fault,) = caught.value.faults
    assert "tool 'search' has 3 owners: 'direct', 'mcp:alpha', 'mcp:beta'" in fault
    assert "give a source a prefix of its own" in fault


async def test_tools_of_one_name_on_two_servers_and_in_python_are_three_tools(servers: Servers) -> None:
    ledger = Ledger()
    alpha, beta = (servers.source(name, "search") for name in ("alpha", "beta"))
    definition = user(alpha, beta, direct=(ledger.tool("search"),))
    script = [call("search"), call("alpha__search"), call("beta__search")]
    runner, model = staged(definition, script, "done")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
    assert names(model.requests[0])[:3] == ["search", "alpha__search", "beta__search"]
    assert (ledger.lines, servers.called("alpha"), servers.called("beta")) == (["search"], ["search"], ["search"])


async def test_a_reserved_name_is_refused_even_where_its_tool_is_not_there(servers: Servers) -> None:
    runner, _ = staged(user(servers.source("s", "delegate", declared={"prefix": ""})), "never")
    async with asyncio.timeout(LIMIT_S), runner:
        with pytest.raises(ResolutionFailed, match="'delegate' of 'mcp:s' has a name that is reserved"):
            await runner.run("go")


async def test_a_bare_name_that_only_one_server_has_is_enough_to_ask_for_its_schema(servers: Servers) -> None:
    alpha, beta = servers.source("alpha", "search", "only"), servers.source("beta", "search")
    script = (call("get_api_spec", tool_name="only"), call("get_api_spec", tool_name="search"), "done")
    runner, model = staged(user(alpha, beta), *script)
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        seen = await finished(session)
    assert '"name":"alpha__only"' in model.requests[1].history[-1].results[0].text
    assert "unknown=[search]" in seen["get_api_spec"].text
    assert "alpha__search, beta__search" in seen["get_api_spec"].text


async def test_a_skill_that_names_a_tool_its_server_does_not_have_stops_the_start(servers: Servers) -> None:
    from actors import Skill

    skill = Skill("s", "d", "t", tools=("db__look", "db__absent"))
    runner, _ = staged(user(servers.source("db", "look"), skills=(skill,)), "never")
    async with asyncio.timeout(LIMIT_S), runner:
        with pytest.raises(ResolutionFailed, match="skill 's' names the tool 'db__absent'") as caught:
            await runner.run("go")
    assert len(caught.value.faults) == 1


async def test_an_entry_without_a_name_costs_only_itself(servers: Servers) -> None:
    source = servers.source(
        "db", {"description": "x"}, {"name": 3}, "look", entry("look"), 7, entry("b", inputSchema=1)
    )
    runner, model = staged(user(source), "done")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
    assert [name for name in names(model.requests[0]) if "__" in name] == ["db__look"]
