"""Resources and prompts of a server: data, read through one tool, only where the definition asks for it."""

from __future__ import annotations

import asyncio

from actors.messages import Outcome
from orchestrator.testing import call
from tests.core.stage import names, staged
from tests.sources.stage import LIMIT_S, Servers, finished, servers, user

__all__ = ["servers"]


async def test_a_definition_that_does_not_ask_has_no_tool_for_it(servers: Servers) -> None:
    runner, model = staged(user(servers.source("s", "t")), "done")
    async with asyncio.timeout(LIMIT_S), runner:
        await runner.run("go")
    assert "read_source" not in names(model.requests[0])


async def test_resources_and_prompts_are_listed_and_read(servers: Servers) -> None:
    source = servers.source("s", "t", declared={"data": True})
    calls = [
        call("read_source", source="s"),
        call("read_source", source="s", uri="note://1"),
        call("read_source", source="s", prompt="greet", arguments={"who": "Ada"}),
    ]
    runner, model = staged(user(source), calls, "done")
    async with asyncio.timeout(LIMIT_S), runner:
        await runner.run("go")
    listing, note, prompt = (result.text for result in model.requests[1].history[-1].results)
    assert listing == "resource note://1: a note\nprompt greet(who)"
    assert note == "the text of note://1"
    assert prompt == "user: Greet Ada."


async def test_a_source_that_was_not_asked_for_cannot_be_read(servers: Servers) -> None:
    open_one, other = servers.source("s", "t", declared={"data": True}), servers.source("o", "t")
    runner, _ = staged(user(open_one, other), call("read_source", source="o"), "done")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        result = (await finished(session))["read_source"]
    assert result.outcome is Outcome.ERROR
    assert result.text == "You can read nothing of 'o', only of: s."


async def test_what_the_server_refuses_is_an_error_of_the_call(servers: Servers) -> None:
    source = servers.source("s", "t", declared={"data": True})
    runner, _ = staged(user(source), call("read_source", source="s", prompt="greet"), "done")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        result = await session.run("go")
        seen = (await finished(session))["read_source"]
    assert result.output == "done"
    assert seen.outcome is not Outcome.OK
