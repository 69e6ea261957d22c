"""Time: limits run on the monotonic clock, order is by number, and the doubles for tests keep their word."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors import ActorStopped, StopReason
from actors.messages import EndTurn, Outcome, Usage
from actors.ref import ActorRef
from orchestrator import Agent, RuntimeConfig
from orchestrator.clock import Deadlines
from orchestrator.restart import Decision, Intensity, RestartKind, on_exit
from orchestrator.runtime import Observability
from orchestrator.testing import FunctionModel, ManualClock, ScriptedModel, UnexpectedCall, UnusedCalls, call
from tests.core.stage import Gate, agent, made, results, staged

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.requirement("B46")
async def test_a_tools_time_limit_fires_after_real_time_whatever_the_wall_clock_does() -> None:
    clock, gate = ManualClock(), Gate()
    tool = made("slow", gate.wait, timeout_s=30.0)
    runner, model = staged(agent(tool), call("slow"), "ok", observability=Observability(clock))
    async with asyncio.timeout(5), runner, runner.start() as session:
        run = asyncio.ensure_future(session.run("go"))
        await gate.entered.wait()
        for jump in (7200, -14400):
            clock.jump(jump)
            await asyncio.sleep(0)
            assert len(model.requests) == 1
        clock.advance(29.9)
        await asyncio.sleep(0)
        assert len(model.requests) == 1
        clock.advance(0.1)
        await run
    assert results(model.requests[1])[0].outcome is Outcome.ERROR


@pytest.mark.requirement("B46")
async def test_a_session_saved_tomorrow_loads_today_and_its_log_is_ordered_by_number() -> None:
    clock = ManualClock()
    runner, _ = staged(agent(), "one", "two", observability=Observability(clock))
    async with asyncio.timeout(5), runner:
        async with runner.start() as session:
            clock.jump(86_400)
            await session.run("go")
            handle = session.snapshot()
        clock.jump(-86_400)
        async with runner.start(handle) as session:
            result = await session.run("go")
            entries = await session._supervisor.journal.read(0)
    assert result.output == "two"
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    assert [entry.at_ms for entry in entries] != sorted(entry.at_ms for entry in entries)


def test_a_manual_clock_makes_what_is_due_in_order_of_time_and_then_of_asking() -> None:
    clock, made_calls = ManualClock(), []

    def note(n: int) -> Callable[[], None]:
        return lambda: made_calls.append(n)

    timers = [clock.call_at(1000 + n % 2, note(n)) for n in range(20)]
    timers[3].cancel()
    clock.advance(0.5)
    assert made_calls == [n for n in range(20) if n % 2 == 0]
    clock.advance(0.5)
    assert made_calls[10:] == [n for n in range(20) if n % 2 and n != 3]


def test_a_manual_clocks_wall_can_jump_without_making_anything_due() -> None:
    clock, fired = ManualClock(), []
    clock.call_at(clock.now() + 1, lambda: fired.append(1))
    wall = clock.wall_ms()
    clock.jump(3600)
    assert (fired, clock.wall_ms() - wall) == ([], 3_600_000)


@given(st.lists(st.tuples(st.sampled_from(["add", "remove", "advance"]), st.integers(0, 9)), max_size=200))
def test_each_deadline_fires_once_at_its_time_unless_it_was_removed(steps: list[tuple[str, int]]) -> None:
    clock = ManualClock()
    deadlines = Deadlines(clock)
    due: dict[int, float] = {}
    fired: list[int] = []
    keys: list[tuple[int, int]] = []
    for number, (what, n) in enumerate(steps):
        if what == "add":
            keys.append((number, deadlines.add(n, partial(fired.append, number))))
            due[number] = clock.now() + n
        elif what == "remove" and keys:
            known, key = keys[n % len(keys)]
            deadlines.remove(key)
            if known not in fired:
                due.pop(known, None)
        else:
            clock.advance(n)
            assert sorted(fired) == sorted(number for number, at in due.items() if at <= clock.now())
    deadlines.close()
    clock.advance(100)
    assert len(set(fired)) == len(fired)


async def test_a_scripted_model_fails_on_an_unexpected_and_on_an_unused_entry() -> None:
    model = ScriptedModel(boss=["one"], other=["never"])
    async with asyncio.timeout(5), Agent(agent(), RuntimeConfig(model)) as runner, runner.start() as session:
        assert (await session.run("go")).output == "one"
        with pytest.raises(UnusedCalls) as unused:
            model.check()
        assert unused.value.left == {"other": 1}
        result = await session.run("more")
        assert (result.stop_reason, result.diagnostics[0]) == (
            StopReason.FAILED,
            "the script has nothing left for 'boss'",
        )
        with pytest.raises(UnexpectedCall):
            model.check()


async def test_a_playbook_without_a_function_for_an_agent_says_which_it_has() -> None:
    config = RuntimeConfig(FunctionModel({"fixer": lambda _: "x"}))
    async with asyncio.timeout(5), Agent(agent(), config) as runner:
        result = await runner.run("go")
    assert result.stop_reason is StopReason.FAILED
    assert "'boss' (it has: fixer)" in result.diagnostics[0]


class Office:
    """A post that answers as told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []

    def tell(self, actor: str, text: str) -> str:
        self.told.append((actor, text))
        return "steered"

    async def ask(self, actor: str, text: str, asker: str | None) -> EndTurn:
        if text == "gone":
            raise ActorStopped(actor, "it is gone")
        return EndTurn(asker or "", StopReason.COMPLETED, text, Usage())

    async def stop(self, actor: str, reason: str) -> None:
        self.told.append((actor, reason))


async def test_a_ref_reaches_its_actor_by_id_and_an_ask_of_one_that_is_gone_is_answered() -> None:
    office = Office()
    ref = ActorRef("boss", office)
    assert ref.tell("a") == "steered"
    assert (await ref.ask("b", asker="c")).output == "b"
    await ref.stop()
    with pytest.raises(ActorStopped, match="boss stopped before it answered: it is gone"):
        await ref.ask("gone")
    assert office.told == [("boss", "a"), ("boss", "stopped by its holder")]
    assert ref == ActorRef("boss", Office())


@given(
    st.sampled_from(RestartKind),
    st.booleans(),
    st.lists(st.floats(0, 99)).map(sorted).map(tuple),
    st.floats(100, 200),
    st.builds(Intensity, st.integers(0, 5), st.floats(0.1, 50)),
)
def test_an_exit_is_answered_by_kind_reason_and_intensity(
    kind: RestartKind,
    crashed: bool,  # noqa: FBT001  # Hypothesis gives it
    restarts: tuple[float, ...],
    now: float,
    intensity: Intensity,
) -> None:
    decision, after = on_exit(kind, crashed=crashed, restarts=restarts, now=now, intensity=intensity)
    recent = [at for at in restarts if now - at < intensity.within_s]
    wanted = kind is RestartKind.PERMANENT or (kind is RestartKind.TRANSIENT and crashed)
    if wanted:
        assert decision is (Decision.ESCALATE if len(recent) >= intensity.most else Decision.RESTART)
    else:
        assert decision is (Decision.ESCALATE if crashed else Decision.LEAVE)
    assert (after[-1:] == (now,)) is (decision is Decision.RESTART)
    assert len([at for at in after if now - at < intensity.within_s]) <= max(intensity.most, len(restarts))


@pytest.mark.parametrize("figures", [(-1, 5.0), (3, 0.0), (3, -1.0), (3, float("nan"))])
def test_an_intensity_that_is_not_possible_is_refused(figures: tuple[int, float]) -> None:
    with pytest.raises(ValueError, match="not possible"):
        Intensity(*figures)
