"""What tools of a server may do: said by the definition, by a trusted server, never by a server that is not."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from actors import AgentDefinition, DefinitionError, Role, ToolSet
from actors.grants import Access
from actors.reshape import Reshape
from actors.roles import ROLES
from actors.sources import MCPSource, ToolRule
from actors.tools import Approval
from orchestrator import ResolutionFailed
from orchestrator.journal.source import Pin
from orchestrator.sources.pins import hinted
from orchestrator.sources.taking import take
from orchestrator.testing import call
from tests.core.stage import names, staged
from tests.sources.stage import LIMIT_S, Servers, entry, finished, servers, told, user

__all__ = ["servers"]

READS = (("readOnlyHint", True),)
MENDS = (("destructiveHint", False), ("openWorldHint", False))


def pin(name: str, *hints: tuple[str, bool]) -> Pin:
    return Pin(name, "Does it.", '{"type":"object"}', "", hints)


@pytest.mark.parametrize(
    "hints, access",
    [
        ((), Access.EXTERNAL),
        (READS, Access.READ),
        ((("readOnlyHint", False),), Access.EXTERNAL),
        (MENDS, Access.WRITE),
        ((("destructiveHint", False),), Access.EXTERNAL),
        ((("openWorldHint", False),), Access.EXTERNAL),
        ((("destructiveHint", True), ("openWorldHint", False)), Access.EXTERNAL),
    ],
)
def test_a_hint_counts_for_what_it_says_and_silence_is_the_worst(
    hints: tuple[tuple[str, bool], ...], access: Access
) -> None:
    assert hinted(pin("t", *hints)) is access


def test_only_a_trusted_server_is_believed() -> None:
    pins = (pin("look", *READS), pin("mend", *MENDS), pin("send"))

    def rights(source: MCPSource) -> dict[str, Access]:
        return {each.pin.name: each.tool.access for each in take(source, pins, ROLES[Role.RUN]).tools}

    assert rights(MCPSource("s", ("x",))) == dict.fromkeys(("look", "mend", "send"), Access.EXTERNAL)
    assert rights(MCPSource("s", ("x",), trusted=True)) == {
        "look": Access.READ,
        "mend": Access.WRITE,
        "send": Access.EXTERNAL,
    }
    ruled = MCPSource("s", ("x",), trusted=True, rules=(ToolRule("look", access="external"),))
    assert rights(ruled)["look"] is Access.EXTERNAL


def test_a_role_leaves_out_what_it_may_not_hold_and_refuses_what_was_asked_for_by_name() -> None:
    pins = (pin("look", *READS), pin("send"))
    reviewer = ROLES[Role.REVIEWER]
    all_of_it = take(MCPSource("s", ("x",), trusted=True), pins, reviewer)
    assert [each.pin.name for each in all_of_it.tools] == ["look"]
    assert all_of_it.left_out == (
        "tool 'send' has access 'external', above what a reviewer may do ('read'); give it to another role",
    )
    asked = take(MCPSource("s", ("x",), tools=("look", "send"), trusted=True), pins, reviewer)
    assert asked.faults == all_of_it.left_out
    assert asked.left_out == ()


def test_a_tool_that_was_asked_for_and_is_not_there_is_a_fault_that_names_what_is() -> None:
    source = MCPSource("s", ("x",), tools=("look", "absent"), rules=(ToolRule("look"),))
    assert take(source, (pin("look"), pin("send")), ROLES[Role.RUN]).faults == (
        "it has no tool 'absent'; it has: look, send",
    )


@pytest.mark.parametrize(
    "source, fault",
    [
        (MCPSource("s", ("x",)), "MCP source 's' reaches outside without approval"),
        (MCPSource("s", ("x",), access="read", rules=(ToolRule("t", access="external"),)), "tool 't' reaches outside"),
        (MCPSource("s", ("x",), access="read", authorities={"nonsense"}), "'nonsense' is not of the form"),
        (MCPSource("s", ("x",), access="read", start_s=0), "its start_s is 0; give seconds above 0"),
        (MCPSource("s", ("x",), access="read", call_s=float("inf")), "its call_s is inf"),
        (MCPSource("s", ("x",), "http://y", access="read"), "needs a command or a url, one of the two"),
        (MCPSource("s", url="ftp://y", access="read"), "does not begin with http:// or https://"),
        (MCPSource("s", ("x",), access="read", prefix="a b"), "its prefix 'a b' holds what no tool name may"),
        (MCPSource("s", (" ",), access="read"), "its command is blank"),
        (MCPSource("s", ("x",), access="read", rules=(ToolRule("t"), ToolRule("t"))), "its tool 't' has two rules"),
        (MCPSource("s", ("x",), access="read", tools=("t", "t")), "it names the tool 't' twice"),
        (MCPSource("s", ("x",), access="read", tools=("a",), rules=(ToolRule("b"),)), "it has a rule for 'b'"),
    ],
)
def test_a_source_that_cannot_be_is_refused_before_anything_is_opened(source: MCPSource, fault: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        AgentDefinition("boss", Role.BUILDER, tools=ToolSet(mcp=(source,)))
    assert [fault in each for each in caught.value.faults] == [True]


def test_a_builder_may_have_a_source_that_asks_or_that_it_trusts() -> None:
    asking = MCPSource("s", ("x",), approval=Approval.EACH_CALL)
    trusting = MCPSource("t", ("x",), trusted=True)
    named = MCPSource("u", ("x",), tools=("a",), rules=(ToolRule("a", approval="each_call"),))
    AgentDefinition("boss", Role.BUILDER, tools=ToolSet(mcp=(asking, trusting, named)))
    assert take(trusting, (pin("send"),), ROLES[Role.BUILDER]).left_out != ()


async def test_what_a_role_may_not_hold_is_told_at_the_start(servers: Servers) -> None:
    source = servers.source(
        "s", entry("look", annotations={"readOnlyHint": True}), "send", declared={"trusted": True, "access": "external"}
    )
    runner, model = staged(user(source, role=Role.REVIEWER), "done")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        said = await told(session)
    assert [name for name in names(model.requests[0]) if "__" in name] == ["s__look"]
    assert [kind for kind, _ in said] == ["tool_left_out"]
    assert said[0][1].startswith("s: tool 'send' has access 'external'")


FIELDS = {"type": "object", "properties": {"repo": {"type": "string"}, "n": {"type": "integer"}}, "required": ["repo"]}


async def test_a_transform_fills_in_what_the_model_cannot_see_or_change(servers: Servers) -> None:
    reshape = Reshape(fixed={"repo": '"/srv/one"'}, renamed={"number": "n"})
    source = servers.source(
        "git", entry("log", inputSchema=FIELDS), declared={"rules": (ToolRule("log", reshape=reshape),)}
    )
    script = (call("git__log", number=3), call("git__log", repo="/etc", number=1), "done")
    runner, model = staged(user(source), *script)
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        seen = await finished(session)
    (offered,) = [tool for tool in model.requests[0].tools if tool.name == "git__log"]
    assert msgspec.json.decode(offered.input_schema) == {
        "type": "object",
        "properties": {"number": {"type": "integer"}},
        "additionalProperties": False,
    }
    assert servers.lines("git")[1:] == ['call log {"n": 3, "repo": "/srv/one"}']
    assert seen["git__log"].denial is not None
    assert seen["git__log"].denial.code == "invalid_arguments"


@pytest.mark.parametrize(
    "reshape, fault",
    [
        (Reshape(fixed={"absent": "1"}), "names the argument 'absent', which the tool does not have"),
        (Reshape(fixed={"n": "1"}, renamed={"m": "n"}), "names the argument 'n' twice"),
        (Reshape(renamed={"repo": "n"}), "calls two arguments 'repo'"),
        (Reshape(fixed={"n": "one"}), "the value of 'n' is not JSON"),
    ],
)
async def test_a_transform_that_does_not_fit_stops_the_start(servers: Servers, reshape: Reshape, fault: str) -> None:
    source = servers.source(
        "git", entry("log", inputSchema=FIELDS), declared={"rules": (ToolRule("log", reshape=reshape),)}
    )
    runner, _ = staged(user(source), "never")
    async with asyncio.timeout(LIMIT_S), runner:
        with pytest.raises(ResolutionFailed, match="MCP source 'git'") as caught:
            await runner.run("go")
    assert any(fault in each for each in caught.value.faults)
