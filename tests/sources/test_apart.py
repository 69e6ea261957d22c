"""Two actors of one session at one server: they share its connection, and nothing of what they may do."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest

from actors import AgentDefinition, Role, Skill, ToolSet
from actors.grants import Access
from actors.messages import Outcome
from actors.reshape import Reshape
from actors.sources import MCPSource, ToolRule
from orchestrator.journal.source import SourceStarted
from orchestrator.testing import ScriptedModel, call
from tests.consent.office import Person, approve, at_the_desk, office
from tests.core.stage import names, staged
from tests.sources.stage import LIMIT_S, Servers, entries, entry, finished, servers, told, user

if TYPE_CHECKING:
    from orchestrator.approver import Answer, Question

__all__ = ["servers"]

FIELDS = {"type": "object", "properties": {"to": {"type": "string"}, "n": {"type": "integer"}}}


def pair(servers: Servers, ours: dict[str, Any], theirs: dict[str, Any], **script: Any) -> AgentDefinition:
    """A boss and its child, each with its own declaration of the same server."""
    tools = (entry("send", inputSchema=FIELDS), "look")
    mine = servers.source("s", *tools, declared=ours, **script)
    other = servers.source("s", *tools, declared=theirs, **script)
    child = AgentDefinition("helper", Role.CHILD, tools=ToolSet(mcp=(other,)))
    return user(mine, children=(child,))


def script(child: Any, boss: Any) -> dict[str, Any]:
    """The child does *child*, then the boss *boss*."""
    down = call("delegate", child="helper", task="go")
    return {"helper": [child, "helped"], "boss": [down, boss, "end"]}


async def test_each_has_its_own_names_tools_rules_and_transform_over_one_connection(servers: Servers) -> None:
    rule = ToolRule("send", access="read", reshape=Reshape(fixed={"to": '"me"'}))
    definition = pair(servers, {"tools": ("send",), "rules": (rule,)}, {"prefix": "t."})
    model = ScriptedModel(**script(call("t.send", to="all", n=1), [call("s__send", n=2), call("s__look")]))
    async with asyncio.timeout(LIMIT_S), office(definition, model) as it:
        await it.session.run("go")
        seen = await finished(it.session)
        started = [e for e in await it.entries() if isinstance(e.record, SourceStarted)]
    boss, helper = (request for request in model.requests[:2])
    assert [name for name in names(boss) if name.startswith(("s__", "t."))] == ["s__send"]
    assert [name for name in names(helper) if name.startswith(("s__", "t."))] == ["t.send", "t.look"]
    assert servers.lines("s")[1:] == ['call send {"n": 1, "to": "all"}', 'call send {"n": 2, "to": "me"}']
    assert seen["s__look"].denial is not None
    assert seen["s__look"].denial.code == "unknown_tool"
    assert len(started) == 1


async def test_an_always_rule_and_a_yes_of_one_are_no_yes_of_the_other(servers: Servers) -> None:
    def always(question: Question) -> Answer:
        return approve(question.approval, always=("to",))

    asks = {"approval": "each_call", "access": Access.WRITE}
    definition = pair(servers, asks, asks)
    person = Person(always, always, always)
    send = call("s__send", to="all")
    model = ScriptedModel(
        helper=[send, send, "helped"], boss=[call("delegate", child="helper", task="go"), send, "end"]
    )
    async with asyncio.timeout(LIMIT_S), office(definition, model, approver=at_the_desk(person)) as it:
        await it.session.run("go")
    assert [question.actor for question in person.asked] == ["boss/helper-0002", "boss"]
    assert servers.called("s") == ["send", "send", "send"]


async def test_an_approval_that_one_needs_is_none_that_the_other_needs(servers: Servers) -> None:
    definition = pair(servers, {"approval": "each_call"}, {"access": Access.WRITE})
    person = Person(approve_it)
    model = ScriptedModel(**script(call("s__send"), call("s__send")))
    async with asyncio.timeout(LIMIT_S), office(definition, model, approver=at_the_desk(person)) as it:
        await it.session.run("go")
    assert [question.actor for question in person.asked] == ["boss"]


def approve_it(question: Question) -> Answer:
    return approve(question.approval)


@pytest.mark.parametrize("of_boss", [True, False])
async def test_the_data_of_a_server_is_read_by_who_asks_for_it_alone(servers: Servers, *, of_boss: bool) -> None:
    definition = pair(servers, {"data": of_boss}, {"data": not of_boss})
    model = ScriptedModel(**script(call("read_source", source="s"), call("read_source", source="s")))
    async with asyncio.timeout(LIMIT_S), office(definition, model) as it:
        await it.session.run("go")
        results = {
            e.actor: e.record.result
            for e in await it.entries()
            if getattr(getattr(e.record, "result", None), "name", "") == "read_source"
        }
    reader, other = ("boss", "boss/helper-0002") if of_boss else ("boss/helper-0002", "boss")
    assert results[reader].outcome is Outcome.OK
    assert results[other].denial is not None
    assert results[other].denial.code == "unknown_tool"


async def test_who_may_read_another_server_may_not_read_this_one(servers: Servers) -> None:
    mine, theirs = (servers.source("s", "look", declared={"data": flag}) for flag in (False, True))
    open_one = servers.source("o", "look", declared={"data": True})
    child = AgentDefinition("helper", Role.CHILD, tools=ToolSet(mcp=(theirs,)))
    definition = user(mine, open_one, children=(child,))
    runner, _ = staged(definition, [call("read_source", source="s"), call("read_source", source="o")], "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        texts = [
            e.record.result.text
            for e in await entries(session)
            if getattr(getattr(e.record, "result", None), "name", "") == "read_source"
        ]
    assert "You can read nothing of 's', only of: o." in texts


async def test_each_waits_as_long_as_its_own_declaration_says(servers: Servers) -> None:
    definition = pair(servers, {"call_s": 60.0}, {"call_s": 0.3}, acts={"look": "hang"})
    model = ScriptedModel(helper=[call("s__look"), "helped"], boss=[call("delegate", child="helper", task="go"), "end"])
    async with asyncio.timeout(LIMIT_S), office(definition, model) as it:
        await it.session.run("go")
        seen = await finished(it.session)
    assert "timed_out: the server s was silent for 0.3 s" in seen["s__look"].text


async def test_an_absent_source_excuses_the_names_of_its_own_prefix(servers: Servers) -> None:
    absent = servers.source("s", exit="no", declared={"required": False, "prefix": "gh."})
    skill = Skill("k", "d", "t", tools=("gh.look",))
    runner, _ = staged(user(absent, skills=(skill,)), call("get_api_spec", tool_name="gh.look"), "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        seen = await finished(session)
    assert "server_unavailable=[s] requested=[gh.look]" in seen["get_api_spec"].text


async def test_a_secret_that_a_server_prints_is_shown_nowhere(
    servers: Servers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("TOKEN_OF_S", "t0p-secret-31")
    leak = [{"env": "TOKEN"}, {"line": "Bearer t0p-secret-31 is my token"}, {"err": "cannot"}]
    source = servers.liar("s", "t", does={"tools/call t": [*leak, {"exit": 3}]})
    source = MCPSource(
        source.name, source.command, env=(*source.env, ("TOKEN", "Bearer ${TOKEN_OF_S}")), access=Access.READ
    )
    runner, _ = staged(user(source), call("s__t"), "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        said = await told(session)
        everything = repr(await entries(session)) + repr(source) + repr(session._supervisor.registry.sources)
    assert [kind for kind, _ in said][:2] == ["source_junk", "server_lost"]
    assert "Bearer [hidden] is my token" in said[0][1]
    assert "t0p-secret-31" not in everything
    assert "t0p-secret-31" not in caplog.text
