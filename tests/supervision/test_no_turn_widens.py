"""No turn is wider than the one that caused it, however it came about."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.grants import Access, Grants, at_most, attenuate
from actors.messages import TurnOrigin
from actors.tools import tool
from orchestrator.journal.fold import fold
from orchestrator.journal.records import TurnAccepted
from orchestrator.models.function import FunctionModel, call
from orchestrator.runtime import OWNER
from orchestrator.turn import Turn
from tests.supervision.scene import agent, heard, scene, script
from tests.supervision.test_stopping import Blocked, background

if TYPE_CHECKING:
    from actors.ports import ModelRequest
    from orchestrator.journal.records import Entry

READ_ONLY = Grants(OWNER.authorities, Access.READ, OWNER.roots)
NARROW = [None, OWNER, READ_ONLY, Grants(("children.start", "workspace.read"), Access.WRITE, ("src",))]


def writer(done: list[str]) -> Any:
    @tool(access=Access.WRITE)
    async def write(text: str) -> str:
        """Write."""
        done.append(text)
        return text

    return write


@pytest.mark.requirement("I6")
async def test_a_message_to_an_idle_child_opens_no_turn_wider_than_the_turn_that_sent_it() -> None:
    done: list[str] = []
    leaf = Blocked()
    middle = agent("middle", writer(done), children=[agent("leaf")])
    boss = agent("boss", children=[middle], wake=False)

    def middle_play(request: ModelRequest) -> Any:
        if len(request.history) == 1:
            return background("leaf")
        return call("write", text="too far") if heard(request)[-1] == "write!" and len(request.history) == 5 else "ok"

    message = call("message_child", child="middle-0002", text="write!")
    model = FunctionModel(
        {"boss": script(background("middle"), "started", message), "middle": middle_play, "leaf": leaf}
    )
    async with asyncio.timeout(5), scene(boss, model) as it:
        await it.session.run("go")
        await leaf.entered.wait()
        await it.until(lambda: not it.supervisor.journal.state.actors["boss/middle-0002"].waiting)
        await it.session.run(Turn("only look", grants=READ_ONLY))
        await it.until(lambda: not it.supervisor.journal.state.actors["boss/middle-0002"].waiting)
        assert "write!" in heard_by(it, "boss/middle-0002")
        assert done == []


def heard_by(it: Any, path: str) -> list[str]:
    """What was said to a live actor."""
    return [getattr(item, "text", "") for item in it.supervisor.members[path].actor.state.history]


@pytest.mark.requirement("I6")
async def test_a_turn_born_of_a_notice_keeps_the_narrowing_of_the_turn_that_started_the_child() -> None:
    done: list[str] = []
    worker = Blocked()
    boss = agent("boss", writer(done), children=[agent("worker")])

    def boss_play(request: ModelRequest) -> Any:
        notice = heard(request)[-1].startswith("Notice")
        return (
            call("write", text="late")
            if notice and len(request.history) == 5
            else script(background("worker"))(request)
        )

    async with asyncio.timeout(5), scene(boss, FunctionModel({"boss": boss_play, "worker": worker})) as it:
        await it.session.run(Turn("only look", grants=READ_ONLY))
        worker.go_on.set()
        await it.quiet()
        assert len(heard_by(it, "boss")) > 5
        assert done == []


trees = st.recursive(
    st.just(()),
    lambda inner: st.lists(st.tuples(st.booleans(), inner), min_size=1, max_size=2).map(tuple),
    max_leaves=5,
)


def chain(depth: int) -> Any:
    """A definition that may start itself, one level less deep."""
    name = "boss" if depth == 3 else f"level{depth}"
    return agent(name, children=[chain(depth - 1)] if depth else [])


@pytest.mark.requirement("I6")
@given(tree=trees, terms=st.lists(st.sampled_from(NARROW), min_size=1, max_size=2))
@settings(max_examples=25)
async def test_in_random_trees_no_turn_is_wider_than_its_cause(tree: Any, terms: list[Grants | None]) -> None:
    def shape(path: str, found: dict[str, Any], node: Any) -> None:
        found[path] = node
        for place, (_, inner) in enumerate(node):
            shape(f"{path}{place}", found, inner)

    shapes: dict[str, Any] = {}
    shape("r", shapes, tree)

    def play(request: ModelRequest) -> Any:
        texts = heard(request)
        key = texts[0] if texts[0] in shapes else "r"
        level = request.agent.removeprefix("level") if request.agent != "boss" else "3"
        if len(request.history) != 1 or level == "0":
            return "ok"
        below = f"level{int(level) - 1}"
        calls = [
            call("delegate", child=below, task=f"{key}{place}", background=hidden)
            for place, (hidden, _) in enumerate(shapes.get(key, ()))
        ]
        return calls or "ok"

    async with asyncio.timeout(10), scene(chain(3), FunctionModel({}, default=play)) as it:
        for number, grants in enumerate(terms):
            await it.session.run(Turn("r" if number == 0 else "next", grants=grants))
            await it.quiet()
        check_widths(await it.entries())


def check_widths(entries: tuple[Entry, ...]) -> None:
    """Hold each turn's authority to that of the turn that started its actor, and of those whose notices it takes."""
    state, held = fold(entries), {}
    for entry in entries:
        record = entry.record
        if not isinstance(record, TurnAccepted):
            continue
        spawned = state.actors[entry.actor].spawned
        held[record.turn] = spawned.grants if record.grants is None else attenuate(spawned.grants, record.grants)
        causes = [spawned.cause] if spawned.parent else []
        if record.origin is TurnOrigin.NOTICE:
            causes += [state.actors[state.outcomes[turn].child].spawned.cause for turn in record.notices]
        assert all(at_most(held[record.turn], held[cause]) for cause in causes)
