"""The front door: definitions and configurations are refused early, sessions close, handles resume where they fit."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest

from actors import Access, AgentDefinition, DefinitionError, Role, ToolSet
from actors.definition import MCPSource
from orchestrator import Agent, Principal, ResolutionFailed, RuntimeConfig, SessionClosed, SessionLimits
from orchestrator.errors import HandleRefused
from orchestrator.journal.records import SessionOpened, SessionParked, SessionResumed
from orchestrator.journal.store import StoreError
from orchestrator.registry import Registry
from orchestrator.runtime import Observability
from orchestrator.testing import ScriptedModel, call
from tests.core.stage import Ledger, agent, made, said, staged, written

if TYPE_CHECKING:
    from pathlib import Path


def test_a_definition_that_is_not_valid_is_refused_before_there_is_any_runtime() -> None:
    with pytest.raises(DefinitionError, match="definition '' is not valid"):
        AgentDefinition("", Role.BUILDER)


def there(place: Path) -> bool:
    return any(place.iterdir())


async def test_an_agent_writes_nothing_before_its_first_session(tmp_path: Path) -> None:
    runner, _ = staged(agent(), "ok", store=f"sqlite:///{tmp_path}/runs.db")
    assert not there(tmp_path)
    async with asyncio.timeout(5), runner:
        await runner.run("go")
    assert there(tmp_path)


async def test_a_definition_that_cannot_be_resolved_stops_the_start_before_anything_is_written(tmp_path: Path) -> None:
    broken = made("look", Ledger().tool("look").run, schema='{"type":"object","pattern":"("}')
    source = MCPSource("db", ("serve",), access=Access.READ)
    definition = AgentDefinition("boss", Role.BUILDER, tools=ToolSet(direct=(broken,), mcp=(source,)))
    runner, _ = staged(definition, store=f"sqlite:///{tmp_path}/runs.db")
    async with asyncio.timeout(5), runner:
        with pytest.raises(ResolutionFailed, match="tool 'look' of 'direct': its schema cannot be used"):
            await runner.run("go")
    assert not there(tmp_path)


@pytest.mark.requirement("I1", "I2")
def test_a_definition_is_resolved_once_for_its_fingerprint_however_often_it_is_met() -> None:
    ledger, registry = Ledger(), Registry()
    leaf = agent(ledger.tool("q"), name="leaf", role=Role.CHILD)
    boss = agent(children=(agent(name="mid", role=Role.CHILD, children=(leaf,)), leaf))
    first = registry.resolve(boss)
    assert registry.resolve(boss) is first
    assert registry.resolve(leaf) is registry.get(leaf.fingerprint)
    assert sorted(resolved.definition.name for resolved in registry) == ["boss", "leaf", "mid"]
    assert len(registry) == 3


@pytest.mark.requirement("I11")
async def test_a_single_run_leaves_no_session_open() -> None:
    before = asyncio.all_tasks()
    runner, model = staged(agent(), "ok")
    async with asyncio.timeout(5), runner:
        result = await runner.run("go")
    assert result.output == "ok"
    assert asyncio.all_tasks() == before
    model.check()


async def test_a_closed_agent_starts_nothing_and_closing_it_twice_is_fine() -> None:
    runner, _ = staged(agent(), "ok")
    async with asyncio.timeout(5):
        async with runner, runner.start() as session:
            await runner.close()
            with pytest.raises(SessionClosed):
                await session.run("go")
        await runner.close()
        with pytest.raises(SessionClosed):
            await runner.run("go")


async def test_a_session_goes_on_from_its_handle_with_all_it_knew() -> None:
    runner, model = staged(agent(), "one", "two")
    async with asyncio.timeout(5), runner:
        async with runner.start() as session:
            await session.run("first")
            handle = session.snapshot()
        async with runner.start(handle) as session:
            await session.run("second")
            opened = await written(session, SessionOpened)
            assert len(await written(session, SessionResumed)) == len(await written(session, SessionParked)) == 1
            assert session.snapshot() == handle
    assert said(model.requests[1]) == ["first", "second"]
    assert opened[0].session == handle.session


async def test_a_session_that_is_open_cannot_be_resumed_beside_itself_and_stays_open() -> None:
    runner, _ = staged(agent(), "ok")
    async with asyncio.timeout(5), runner, runner.start() as session:
        with pytest.raises(StoreError):
            async with runner.start(session.snapshot()):
                pytest.fail("two sessions of one id")
        assert (await session.run("go")).output == "ok"


async def test_closing_an_older_session_again_leaves_the_newer_one_of_its_id_open() -> None:
    runner, _ = staged(agent(), "one", "two")
    async with asyncio.timeout(5), runner:
        async with runner.start() as older:
            await older.run("first")
        async with runner.start(older.snapshot()) as newer:
            await older.close()
            with pytest.raises(StoreError):
                await enter(runner, newer.snapshot())
            assert (await newer.run("second")).output == "two"


async def test_a_handle_names_no_model_and_the_one_it_resumes_with_is_told_everything() -> None:
    first, _ = staged(agent(), "from the first")
    async with asyncio.timeout(5), first:
        async with first.start() as session:
            await session.run("one")
        other = ScriptedModel(boss=["from the other"])
        second = Agent(agent(), RuntimeConfig(other, store=first._store))
        async with second.start(session.snapshot()) as session:
            assert (await session.run("two")).output == "from the other"
    assert said(other.requests[0]) == ["one", "two"]


@pytest.mark.requirement("I1")
async def test_a_handle_resumes_only_with_the_definition_it_was_made_with_and_only_for_its_owner() -> None:
    first, _ = staged(agent(instructions="one"), "ok")
    async with asyncio.timeout(5), first:
        async with first.start() as session:
            handle = session.snapshot()
        store = first._store
        model = ScriptedModel(boss=["fine"])
        changed = Agent(agent(instructions="two"), RuntimeConfig(model, store=store))
        stranger = Agent(agent(instructions="one"), RuntimeConfig(model, Principal("mallory"), store=store))
        same = Agent(agent(instructions="one"), RuntimeConfig(model, store=store))
        for refused, why in ((changed, "resume it with the definition"), (stranger, "another principal")):
            with pytest.raises(HandleRefused, match=why):
                await enter(refused, handle)
        with pytest.raises(HandleRefused, match="version 2"):
            await enter(same, msgspec.structs.replace(handle, version=2))
        async with same.start(handle) as session:
            assert (await session.run("go")).output == "fine"


async def enter(runner: Agent, handle: object) -> None:
    async with runner.start(handle):  # type: ignore[arg-type]
        pytest.fail("the handle was taken")


@pytest.mark.requirement("I1")
async def test_each_session_has_actors_of_its_own_and_one_actor_for_each_incarnation() -> None:
    child = agent(name="c", role=Role.CHILD)
    runner, _ = staged(
        agent(children=(child,)),
        call("delegate", child="c", task="x"),
        call("delegate", child="c", task="x"),
        "ok",
        "other",
        others={"c": ["a", "b"]},
    )
    async with asyncio.timeout(5), runner, runner.start() as one, runner.start() as two:
        await one.run("go")
        await two.run("go")
        paths = list(one._supervisor.journal.state.actors)
        assert paths == ["boss", "boss/c-0002", "boss/c-0003"]
        assert list(two._supervisor.journal.state.actors) == ["boss"]
        assert one._root.actor is not two._root.actor
        assert one.snapshot().session != two.snapshot().session


async def test_a_session_of_which_the_start_fails_gives_its_lease_back() -> None:
    runner, _ = staged(agent(), "ok")
    async with asyncio.timeout(5), runner:
        async with runner.start() as session:
            handle = session.snapshot()
        other = Agent(agent(instructions="else"), RuntimeConfig(ScriptedModel(), store=runner._store))
        with pytest.raises(HandleRefused):
            await enter(other, handle)
        async with runner.start(handle) as session:
            assert (await session.run("go")).output == "ok"


@pytest.mark.parametrize("field", ["total", "mailbox", "model_requests"])
def test_a_limit_of_a_session_below_one_is_refused(field: str) -> None:
    with pytest.raises(ValueError, match=f"SessionLimits.{field} is 0"):
        SessionLimits(**{field: 0})  # type: ignore[arg-type]


def test_a_grace_time_of_nothing_is_refused() -> None:
    for value in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="grace_s"):
            SessionLimits(grace_s=value)


@pytest.mark.requirement("B78")
@pytest.mark.parametrize("title", ["a\0b", "a\u202eb", "\ufeffa", "e\u0301", "日🎉é", "\ud83d"])
async def test_a_session_with_an_odd_title_is_saved_and_loads_again(tmp_path: Path, title: str) -> None:
    about = Observability(title=title)
    runner, _ = staged(agent(), "ok", "ok", store=f"sqlite:///{tmp_path}/runs.db", observability=about)
    async with asyncio.timeout(5), runner:
        async with runner.start() as session:
            await session.run("go")
            handle = session.snapshot()
        async with runner.start(handle) as session:
            assert (await session.run("go")).output == "ok"


@pytest.mark.requirement("B78")
async def test_half_characters_from_a_person_a_model_or_a_tool_do_not_end_the_session() -> None:
    from actors.messages import ModelReply, ToolCall

    async def half(_: object, __: object) -> str:
        return "tool \ud83d"

    broken = ModelReply("text \ud83d", (ToolCall("c\ud83d", "half", "{}"), ToolCall("d", "ha\ud83d", '{"a":"\ud83d"}')))
    runner, model = staged(agent(made("half", half)), broken, "end \ude00", "fine")
    async with asyncio.timeout(5), runner:
        async with runner.start() as session:
            result = await session.run("person \ud83d")
            handle = session.snapshot()
        async with runner.start(handle) as session:
            assert (await session.run("go on")).output == "fine"
    assert result.output.encode()
    for request in model.requests:
        assert msgspec.json.encode(request.history)
