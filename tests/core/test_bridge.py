"""The one path to any tool: decide first, intent before effect, one result a call, whatever the tool does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors import Access, Budget, Grants, Limits, Role, StopReason, ToolFault
from actors.messages import CallFinished, Outcome
from orchestrator import Policy, Principal, Turn
from orchestrator.journal.records import CallIntended, EffectSettled
from orchestrator.journal.work import OutputStored
from orchestrator.outputs import as_text, clean, preview
from orchestrator.runtime import OWNER, Observability
from orchestrator.testing import ManualClock, call
from tests.core.stage import Gate, Ledger, agent, calls, made, paired, raw, results, staged, written

if TYPE_CHECKING:
    from pathlib import Path


class Odd(BaseException):
    """What a tool may raise that is no Exception."""


async def raises(_: object, __: object) -> str:
    message = "broke"
    raise RuntimeError(message)


async def cancels_itself(_: object, __: object) -> str:
    raise asyncio.CancelledError


@pytest.mark.requirement("B30", "I15")
@pytest.mark.parametrize("access", [Access.READ, Access.WRITE], ids=["together", "in order"])
async def test_one_failing_call_takes_nothing_from_the_others(access: Access) -> None:
    ledger, gate = Ledger(), Gate()

    async def nothing(_: object, __: object) -> None:
        gate.leave.set()

    async def slow(_: object, __: object) -> str:
        if access is Access.READ:
            await gate.leave.wait()
        ledger.lines.append("slow ended")
        return "slow"

    tools = (
        ledger.tool("ok_fast"),
        made("raises", raises),
        made("ok_slow", slow, access),
        made("raises_cancelled", cancels_itself),
        made("returns_none", nothing),
    )
    batch = [call(tool.name, call_id=str(n)) for n, tool in enumerate(tools, 1)]
    runner, model = staged(agent(*tools), batch, "ok")
    async with asyncio.timeout(5), runner, runner.start() as session:
        result = await session.run("go")
    answered = results(model.requests[1])
    assert [item.call_id for item in answered] == ["1", "2", "3", "4", "5"]
    assert [item.outcome.value for item in answered] == ["ok", "error", "ok", "error", "ok"]
    assert answered[1].text == "RuntimeError: broke"
    assert answered[4].text == "Tool 'returns_none' executed successfully but returned no output."
    assert "slow ended" in ledger.lines
    assert result.stop_reason is StopReason.COMPLETED
    assert len(result.failures) == 2


@pytest.mark.requirement("B30")
@pytest.mark.parametrize("beside", [0, 2])
async def test_whatever_a_tool_raises_the_run_is_not_left_hanging(beside: int) -> None:
    ledger = Ledger()

    async def odd(_: object, __: object) -> str:
        raise Odd

    batch = [call("odd"), *(call("look", n=n) for n in range(beside))]
    runner, _ = staged(agent(made("odd", odd), ledger.tool("look")), batch, "ok", "ok")
    async with asyncio.timeout(10), runner, runner.start() as session:
        async with asyncio.timeout(2):
            result = await session.run("go")
    assert result.failures


@pytest.mark.requirement("B30")
async def test_a_tools_own_fault_is_told_as_it_reads_and_a_long_one_is_cut() -> None:
    async def fault(_: object, arguments: Any) -> str:
        raise ToolFault("No such row.", remedy="List the rows." if arguments else "x" * 5000)

    runner, model = staged(agent(made("fault", fault)), call("fault", a=1), call("fault"), "ok")
    async with asyncio.timeout(5), runner, runner.start() as session:
        await session.run("go")
    assert results(model.requests[1])[0].text == "No such row. List the rows."
    assert len(results(model.requests[2])[0].text) == 1000


async def test_calls_that_only_read_overlap_and_their_results_keep_call_order() -> None:
    gate, ledger = Gate(), Ledger()

    async def fast(_: object, __: object) -> str:
        await gate.entered.wait()
        ledger.lines.append("fast")
        gate.leave.set()
        return "fast"

    async def slow(_: object, __: object) -> str:
        await gate.wait()
        ledger.lines.append("slow")
        return "slow"

    runner, model = staged(agent(made("slow", slow), made("fast", fast)), [call("slow"), call("fast")], "ok")
    async with asyncio.timeout(5), runner, runner.start() as session:
        await session.run("go")
    assert ledger.lines == ["fast", "slow"]
    assert [item.name for item in results(model.requests[1])] == ["slow", "fast"]


async def test_calls_run_one_after_the_other_as_soon_as_one_writes_and_is_not_declared_parallel_safe() -> None:
    running: list[str] = []

    def watch(name: str, access: Access, *, safe: bool = False) -> Any:
        async def run(_: object, __: object) -> int:
            running.append(name)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            most = len(running)
            running.remove(name)
            return most

        return made(name, run, access, parallel_safe=safe)

    tools = (watch("read", Access.READ), watch("write", Access.WRITE), watch("safe", Access.WRITE, safe=True))
    runner, model = staged(
        agent(*tools),
        [call("read"), call("write"), call("read", n=1)],
        [call("read"), call("safe"), call("safe", n=1)],
        "ok",
    )
    async with asyncio.timeout(5), runner, runner.start() as session:
        await session.run("go")
    assert [item.text for item in results(model.requests[1])] == ["1", "1", "1"]
    assert max(int(item.text) for item in results(model.requests[2])) > 1


@pytest.mark.requirement("I7")
async def test_the_intent_of_a_write_is_durable_before_it_starts_and_a_read_or_a_denied_call_has_none() -> None:
    seen: list[int] = []

    async def write(_: object, __: object) -> str:
        journal = session._supervisor.journal
        seen.append(sum(isinstance(entry.record, CallIntended) for entry in await journal.read(0)))
        assert journal._log.durable >= journal.seq
        return "wrote"

    ledger = Ledger()
    definition = agent(made("write", write, Access.WRITE), ledger.tool("look"), ledger.tool("no", Access.WRITE))
    runner, _ = staged(definition, [call("look"), call("no"), call("write", a=1)], "ok")
    async with asyncio.timeout(5), runner, runner.start() as session:
        await session.run(Turn("go", Policy.deny("no")))
        intents = await written(session, CallIntended)
        ends = await written(session, CallFinished)
    assert (seen, [intent.tool for intent in intents]) == ([1], ["write"])
    assert (intents[0].arguments, intents[0].effect_key) == ('{"a":1}', 'write:{"a":1}')
    assert [end.result.name for end in ends] == ["look", "no", "write"]
    assert ledger.lines == ["look"]


async def test_a_right_revoked_while_the_intent_is_written_does_not_count() -> None:
    ledger = Ledger()
    runner, model = staged(agent(ledger.tool("put", Access.WRITE)), call("put"), "ok")
    async with asyncio.timeout(5), runner, runner.start() as session:
        journal = session._supervisor.journal

        async def revoked_meanwhile() -> None:
            if any(isinstance(entry, CallIntended) for entry in journal.state.in_doubt.values()):
                session._root.base = Grants()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(journal), "sync", lambda _: revoked_meanwhile())
            await session.run("go")
    assert ledger.lines == []
    denial = results(model.requests[1])[0].denial
    assert denial is not None
    assert denial.code == "access_exceeded"


async def test_a_tool_that_takes_too_long_is_an_error_and_one_with_an_effect_may_have_happened() -> None:
    clock, gates = ManualClock(), [Gate(), Gate()]
    tools = (made("look", gates[0].wait, timeout_s=30.0), made("put", gates[1].wait, Access.WRITE, timeout_s=30.0))
    runner, model = staged(
        agent(*tools),
        call("look"),
        call("put"),
        call("put"),
        call("put", n=2),
        "ok",
        observability=Observability(clock),
    )
    async with asyncio.timeout(5), runner, runner.start() as session:
        run = asyncio.ensure_future(session.run("go"))
        for gate in gates:
            await gate.entered.wait()
            clock.advance(30)
        gates[1].leave.set()
        await run
    looked, put, again, other = (results(request)[0] for request in model.requests[1:])
    assert (looked.outcome, "30 s" in looked.text) == (Outcome.ERROR, True)
    assert (put.outcome, "may have happened" in put.text) == (Outcome.UNKNOWN, True)
    assert again.denial is not None
    assert again.denial.code == "unresolved_effect"
    assert other.outcome is Outcome.OK


async def test_a_model_that_cancels_itself_after_a_tool_swallowed_its_time_limit_fails_the_turn_and_hangs_nobody() -> (
    None
):
    clock, gate = ManualClock(), Gate()

    async def sneaky(_: object, __: object) -> str:
        try:
            await gate.wait()
        except asyncio.CancelledError:
            return "late"
        return "in time"

    tool = made("sneaky", sneaky, timeout_s=1.0)
    runner, _ = staged(agent(tool), call("sneaky"), asyncio.CancelledError(), observability=Observability(clock))
    async with asyncio.timeout(5), runner, runner.start() as session:
        run = asyncio.ensure_future(session.run("go"))
        await gate.entered.wait()
        clock.advance(1)
        async with asyncio.timeout(2):
            result = await run
    assert result.stop_reason is StopReason.FAILED


async def test_an_earlier_unresolved_call_is_settled_by_the_tools_own_check() -> None:
    gate, clock, found = Gate(), ManualClock(), ["unknown", "happened"]

    async def reconcile(_: object, __: object) -> Any:
        from actors.tools import Reconciled

        return Reconciled(found.pop(0))

    tool = made("put", gate.wait, Access.WRITE, timeout_s=1.0, reconcile=reconcile)
    runner, model = staged(agent(tool), call("put"), call("put"), call("put"), "ok", observability=Observability(clock))
    async with asyncio.timeout(5), runner, runner.start() as session:
        run = asyncio.ensure_future(session.run("go"))
        await gate.entered.wait()
        clock.advance(1)
        await run
        settled = await written(session, EffectSettled)
    _, still, done = (results(request)[0] for request in model.requests[1:])
    assert still.denial is not None
    assert (still.denial.code, done.outcome) == ("unresolved_effect", Outcome.OK)
    assert [(record.happened, record.by) for record in settled] == [(True, "the tool's own check")]


@pytest.mark.requirement("I7")
async def test_a_budget_of_calls_is_kept_to_the_last_one_in_a_batch_too() -> None:
    ledger = Ledger()
    grants = Grants(OWNER.authorities, OWNER.access, OWNER.roots, Budget(calls=2))
    batch = [call("look", n=n) for n in range(4)]
    runner, model = staged(agent(ledger.tool("look")), batch, "ok", principal=Principal(grants=grants))
    async with asyncio.timeout(5), runner, runner.start() as session:
        await session.run("go")
    assert len(ledger.lines) == 2
    assert [item.denial.code if item.denial else "" for item in results(model.requests[1])] == [
        "",
        "",
        *["budget_exhausted"] * 2,
    ]


@pytest.mark.requirement("I7")
@pytest.mark.parametrize("arguments", ['{"path":"../out"}', '{"path":"/etc/passwd"}', '{"paths":["in","../out"]}'])
async def test_a_path_outside_the_workspace_is_refused_before_the_tool_hears_of_it(
    tmp_path: Path, arguments: str
) -> None:
    ledger, workspace = Ledger(), tmp_path / "w"
    workspace.mkdir()
    schema = (
        '{"type":"object","properties":{"path":{"type":"string"},"paths":{"type":"array","items":{"type":"string"}}}}'
    )
    put = ledger.tool("put", Access.WRITE, schema=schema, targets=("path", "paths"))
    runner, model = staged(agent(put), raw("put", arguments), call("put", path="in"), "ok", workspace=workspace)
    async with asyncio.timeout(5), runner, runner.start() as session:
        await session.run("go")
    denial = results(model.requests[1])[0].denial
    assert denial is not None
    assert denial.code == "path_outside_workspace"
    assert ledger.lines == ["put path=in"]


async def test_a_long_output_is_stored_shown_in_part_and_read_back_by_its_owner_only() -> None:
    text = "".join(f"line {n}\n" for n in range(2000))
    reader = agent(name="reader", role=Role.CHILD)
    big = made("big", _returns(text), output_limit_bytes=2000)
    handle: list[str] = []
    script: list[Any] = [call("big")]
    runner, model = staged(
        agent(big, children=(reader,)), *script, "ok", others={"reader": [call("read_output", handle="out-9")]}
    )
    async with asyncio.timeout(5), runner, runner.start() as session:
        await session.run("go")
        handle = [record.handle for record in await written(session, OutputStored)]
        shown = results(model.requests[1])[0].text
        model._scripts["boss"].extend(
            [
                call("read_output", handle=handle[0], offset=10, limit=20),
                call("search_output", handle=handle[0], text="line 1999"),
                call("delegate", child="reader", task="read it"),
                "done",
            ]
        )
        model._scripts["reader"].clear()
        model._scripts["reader"].extend([call("read_output", handle=handle[0]), "end"])
        await session.run("go")
    assert len(shown.encode()) <= 2000
    assert handle[0] in shown
    own = [
        results(request)[0].text for request in model.requests if request.agent == "boss" and len(request.history) > 5
    ]
    assert own[0] == f"characters 10 to 30 of {len(text)}:\n{text[10:30]}"
    assert own[1] == "1 lines contain it.\n2000: line 1999"
    theirs = next(
        results(request)[0] for request in model.requests if request.agent == "reader" and len(request.history) > 1
    )
    assert (theirs.error, "line" in theirs.text) == (True, False)


def _returns(value: Any) -> Any:
    async def run(_: object, __: object) -> Any:
        return value

    return run


@pytest.mark.requirement("B78")
@given(st.text(max_size=400), st.integers(1, 900))
def test_a_preview_keeps_within_its_limit_and_cuts_no_character(text: str, limit: int) -> None:
    shown = preview(text, limit, "out-12")
    assert len(shown.encode()) <= max(limit, 300)
    head, _, rest = shown.partition("\n… shortened")
    assert text.startswith(head)
    assert text.endswith(rest.partition("…\n")[2])


@pytest.mark.requirement("B78")
@pytest.mark.parametrize("cut", range(1, len("日🎉é".encode()) + 1))
def test_a_cut_at_any_byte_leaves_whole_characters(cut: int) -> None:
    shown = preview("日🎉é" * 200, 300 + 2 * cut, "out-1")
    assert set(shown.partition("\n…")[0]) <= set("日🎉é")
    assert "\ufffd" not in shown


@pytest.mark.requirement("B78")
@given(st.text(st.characters(), max_size=20))
def test_any_answer_becomes_text_that_can_be_encoded(text: str) -> None:
    for value in (text, {"a": text}, [text]):
        assert as_text("t", value).encode()
    assert clean(clean(text)) == clean(text)
    if max(text, default="") < "\ud800":
        assert clean(text) == text


def test_an_empty_answer_is_said_to_be_empty() -> None:
    for value in ("", None):
        assert as_text("t", value) == "Tool 't' executed successfully but returned no output."


@pytest.mark.requirement("B58")
async def test_repeating_a_denied_call_is_pointed_out_and_then_ends_the_turn() -> None:
    ledger = Ledger()
    script = [call("put", b=1, a=2) if n % 2 else call("put", a=2, b=1) for n in range(10)]
    runner, model = staged(agent(ledger.tool("put", Access.WRITE)), *script)
    async with asyncio.timeout(5), runner, runner.start() as session:
        result = await session.run(Turn("go", Policy.deny("put"), limits=Limits(steps=None)))
    assert result.stop_reason is StopReason.REPEATED_CALLS
    assert (len(model.requests), ledger.lines) == (6, [])
    assert paired(model.requests[-1].history)


async def test_a_call_of_an_unknown_tool_is_answered_with_what_there_is_and_the_turn_goes_on() -> None:
    ledger = Ledger()
    runner, model = staged(agent(ledger.tool("a"), ledger.tool("b")), calls(raw("ghost", "{")), "ok")
    async with asyncio.timeout(5), runner, runner.start() as session:
        result = await session.run("go")
    (answered,) = results(model.requests[1])
    assert (answered.outcome, result.output) == (Outcome.DENIED, "ok")
    assert "a, b" in answered.text
