"""A run taken up again: what finished is not done again, what is in flight goes on, what never began begins."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from actors.grants import Access
from actors.messages import CallFinished, Outcome
from actors.tools import tool
from orchestrator.errors import HandleRefused
from orchestrator.journal.fold import fold
from orchestrator.journal.records import ActorSpawned, CallIntended, LoanMade, TurnAccepted, decode
from orchestrator.journal.work import StepFinished, StepStarted
from orchestrator.models.function import call
from tests.supervision.scene import cut, discharges
from tests.workflows.playing import Piece, in_turn, of

if TYPE_CHECKING:
    from actors.ports import ModelRequest
    from orchestrator.journal.memory import MemoryStore
    from orchestrator.journal.records import Entry
    from orchestrator.workflows.engine import WorkflowResult

TEXT = """
name: piece
agents:
  p: {role: builder, instructions: "x", tools: [write]}
  w: {role: child, instructions: "x", tools: [write]}
  f: {role: fixer, instructions: "x", tools: [lent_write]}
  boss: {role: run, instructions: "x", tools: [], children: [w]}
steps:
  - {id: plan, agent: p, prompt: "plan", output: {type: array}}
  - {id: aside, agent: boss, background: true, prompt: "aside"}
  - {id: each, agent: w, for_each: plan, max_concurrent: 2, prompt: "{item}"}
  - {id: lent, agent: f, needs: [each], prompt: "lent", lend: {authorities: [workspace.write], roots: ["."]}}
  - {id: late, agent: f, needs: [lent], prompt: "late"}
  - {id: end, agent: p, needs: [late, aside], prompt: "end of {steps.each}"}
"""


class Desk:
    """The workflow with a pen that keeps a ledger; *asked* is every prompt that came to a model anew."""

    def __init__(self) -> None:
        self.ledger: list[str] = []
        self.asked: Counter[str] = Counter()

        @tool(access=Access.WRITE)
        async def write(line: str) -> str:
            """Write a line."""
            self.ledger.append(line)
            return f"wrote {line}"

        @tool(access=Access.WRITE, authorities={"workspace.write"})
        async def lent_write(line: str) -> str:
            """Write a line, on loan."""
            self.ledger.append(line)
            return f"wrote {line}"

        plays = {"p": self.work, "w": self.work, "f": self.fix, "boss": self.delegate}
        self.piece = Piece(TEXT, (write, lent_write), **plays)

    def work(self, request: ModelRequest) -> Any:
        text, results, answers = in_turn(request)
        if not answers:
            self.asked[text] += 1
            return call("write", line=text)
        return '["a","b","c"]' if text == "plan" else f"{text}: {results[0].outcome.value}"

    def fix(self, request: ModelRequest) -> Any:
        text, results, answers = in_turn(request)
        if not answers:
            self.asked[text] += 1
            return call("lent_write", line=text)
        return results[0].denial.code if results[0].denial else results[0].outcome.value

    def delegate(self, request: ModelRequest) -> Any:
        text, results, answers = in_turn(request)
        if not answers:
            self.asked[text] += 1
            return [call("delegate", child="w", task=f"{text} {n}", background=True) for n in (1, 2)]
        if answers == 1:
            names = [result.text.partition(" ")[0] for result in results]
            return [call("collect_child", child=name) for name in names]
        return ", ".join(result.text for result in results[2:])


async def whole() -> tuple[Desk, WorkflowResult]:
    desk = Desk()
    return desk, await desk.piece.play()


async def taken_up(store: MemoryStore, handle: Any, **config: Any) -> tuple[Desk, WorkflowResult]:
    """The run of *handle* resumed by another process, so to say: nothing is shared but the store."""
    desk = Desk()
    desk.piece.store, desk.piece.handle = store, handle
    async with desk.piece.open(handle, **config) as run:
        result = await run.run()
    return desk, result


def wrong(
    entries: tuple[Entry, ...], before: tuple[Entry, ...], ledger: list[str], result: WorkflowResult
) -> list[str]:
    """What must not be so after a resume."""
    intended = [str(e.record.arguments) for e in before if isinstance(e.record, CallIntended)]
    happened = Counter(intended) + Counter(f'{{"line":"{line}"}}' for line in ledger)
    found = [f"{line} happened {times} times" for line, times in happened.items() if times > 1]
    done = {e.record.key for e in before if isinstance(e.record, StepFinished)}
    again = [e.record.key for e in entries[len(before) :] if isinstance(e.record, StepStarted) and e.record.turn]
    found += [f"{key} had finished and began again" for key in again if key in done]
    accepted = Counter(e.record.turn for e in entries if isinstance(e.record, TurnAccepted))
    found += [f"{turn} was accepted {times} times" for turn, times in accepted.items() if times > 1]
    found += [f"the outcome of {turn} was discharged {n} times" for turn, n in discharges(entries).items() if n != 1]
    asides = [e for e in entries if isinstance(e.record, ActorSpawned) and e.actor.startswith("piece/boss-")]
    found += [f"{len(asides)} actors for the step aside"] if len(asides) != 3 else []
    finished = Counter(e.record.key for e in entries if isinstance(e.record, StepFinished))
    found += [f"{key} finished {times} times" for key, times in finished.items() if times > 1]
    found += [] if result.ok else [f"{o.key} failed: {o.detail}" for o in result.outcomes if not o.ok]
    alive = [actor.path for actor in fold(entries).actors.values() if not actor.exited and actor.path.count("/") > 1]
    found += [f"left alive: {', '.join(alive)}"] if alive else []
    if of(result, "late").output != "grant_expired":
        found.append(f"late wrote: {of(result, 'late').output}")
    return found


@pytest.mark.requirement("I9", "I10", "I6", "B48", "B50")
async def test_a_run_cut_off_after_any_record_comes_to_the_same_end_with_nothing_done_twice() -> None:
    async with asyncio.timeout(30):
        desk, _ = await whole()
        handle, store = desk.piece.handle, desk.piece.store
        records = [decode(data) for data in store.shelves[handle.session].records]
        assert len(records) > 80
        found = {}
        for length in range(1, len(records) + 1):
            left = cut(store, handle.session, length)
            try:
                async with asyncio.timeout(2):
                    again, result = await taken_up(left, handle)
                faults = wrong(await again.piece.entries(), tuple(records[:length]), again.ledger, result)
            except Exception as error:  # noqa: BLE001  # the table shows every length that fails, and how
                faults = [repr(error)]
            if faults:
                found[length, type(records[length - 1].record).__name__] = faults
        assert found == {}


async def test_a_run_that_is_closed_in_the_middle_goes_on_from_its_handle_items_included() -> None:
    async with asyncio.timeout(5):
        desk = Desk()
        reached = asyncio.Event()
        work = desk.piece.plays["w"]

        async def hang(request: ModelRequest) -> Any:
            text, _, answers = in_turn(request)
            if text == "b" and answers:
                reached.set()
                await asyncio.Event().wait()
            return work(request)

        desk.piece.plays["w"] = hang
        async with desk.piece.open() as run:
            handle = run.session.snapshot()
            task = asyncio.create_task(run.run())
            await reached.wait()
            async for _ in run.session.events(0):
                if {"each[2]", "aside"} <= run.state.finished_steps.keys():
                    break
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        again, result = await taken_up(desk.piece.store, handle)
    assert result.ok
    assert result.output("each") == ["a: ok", "b: ok", "c: ok"]
    assert Counter(desk.ledger + again.ledger) == Counter(
        ["plan", "a", "b", "c", "aside 1", "aside 2", "lent", "end of " + str(result.output("each")).replace("'", '"')]
    )
    assert set(again.asked) == {"lent", "late", 'end of ["a: ok", "b: ok", "c: ok"]'}


async def test_a_session_closed_under_a_run_ends_the_run_as_cancelled_and_loses_nothing() -> None:
    async with asyncio.timeout(5):
        desk = Desk()
        work = desk.piece.plays["w"]

        async def close(request: ModelRequest) -> Any:
            if in_turn(request)[0] == "a":
                closing.append(asyncio.create_task(run.session.close()))
                await asyncio.Event().wait()
            return work(request)

        closing: list[asyncio.Task[None]] = []
        desk.piece.plays["w"] = close
        async with desk.piece.open() as run:
            handle = run.session.snapshot()
            with pytest.raises(asyncio.CancelledError):
                await run.run()
        again, result = await taken_up(desk.piece.store, handle)
    assert result.ok
    assert max(Counter(desk.ledger + again.ledger).values()) == 1


async def test_a_finished_run_taken_up_again_tells_the_same_and_asks_nobody() -> None:
    async with asyncio.timeout(5):
        desk, first = await whole()
        length = len(await desk.piece.entries())
        again, second = await taken_up(desk.piece.store, desk.piece.handle)
    assert second == first
    assert again.asked == Counter()
    assert not [e for e in (await again.piece.entries())[length:] if isinstance(e.record, StepStarted | TurnAccepted)]


@pytest.mark.parametrize(
    "old, new",
    [
        ('"aside"}', '"another"}'),
        ("max_concurrent: 2", "max_concurrent: 3"),
        ('instructions: "x"', 'instructions: "y"'),
    ],
)
async def test_a_changed_workflow_is_refused_and_the_session_stays_as_it_was(old: str, new: str) -> None:
    async with asyncio.timeout(5):
        desk, _ = await whole()
        before = len(await desk.piece.entries())
        changed = Piece(TEXT.replace(old, new, 1), desk.piece.pool.values(), **desk.piece.plays)
        changed.store = desk.piece.store
        with pytest.raises(HandleRefused, match="was made with"):
            async with changed.open(desk.piece.handle):
                pass
        assert len(await desk.piece.entries()) == before
        assert (await taken_up(desk.piece.store, desk.piece.handle))[1].ok


async def test_comments_and_layout_of_the_file_do_not_make_it_another_workflow() -> None:
    async with asyncio.timeout(5):
        desk, first = await whole()
        moved = Piece(
            "# a comment\n" + TEXT.replace('"aside"', "'aside'"), desk.piece.pool.values(), **desk.piece.plays
        )
        moved.store = desk.piece.store
        async with moved.open(desk.piece.handle) as run:
            assert await run.run() == first


@pytest.mark.requirement("I6")
async def test_a_loan_whose_turn_was_never_accepted_gives_nothing_after_a_resume() -> None:
    async with asyncio.timeout(5):
        desk, _ = await whole()
        records = await desk.piece.entries()
        at = next(n for n, e in enumerate(records, start=1) if isinstance(e.record, LoanMade))
        left = cut(desk.piece.store, desk.piece.handle.session, at)
        again = Desk()
        again.piece.store = left
        async with again.piece.open(desk.piece.handle) as run:
            assert len(run.state.loans) == 1
            assert (await run.run()).ok
            assert run.state.loans == {}
    assert again.ledger[0] == "lent"


async def test_a_call_that_may_have_happened_is_told_so_in_the_step_that_made_it() -> None:
    async with asyncio.timeout(5):
        desk, _ = await whole()
        records = await desk.piece.entries()
        at = next(
            n
            for n, e in enumerate(records, start=1)
            if isinstance(e.record, CallIntended) and "lent" in e.record.arguments
        )
        again, result = await taken_up(cut(desk.piece.store, desk.piece.handle.session, at), desk.piece.handle)
        calls = [e.record.result for e in await again.piece.entries() if isinstance(e.record, CallFinished)]
    assert of(result, "lent").output == "unknown"
    assert "lent" not in again.ledger
    assert [c.name for c in calls if c.outcome is Outcome.UNKNOWN] == ["lent_write"]
