"""Servers that ask the person in the middle of a call: the same question, by the same right, as ``ask_person``."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from actors.messages import Outcome
from orchestrator import Policy, Turn
from orchestrator.journal.consent import ApprovalAsked
from orchestrator.questions import content_of, question
from orchestrator.testing import ScriptedModel, call
from tests.consent.office import KEY, Person, answered, approve, at_the_desk, never, no, office
from tests.sources.stage import LIMIT_S, Servers, finished, servers, told, user

__all__ = ["servers"]

FIELDS = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
QUESTION = {"message": "Whom shall I greet?", "requestedSchema": FIELDS}


def asking(servers: Servers, **more: Any) -> Any:
    return servers.source("s", "greet", "wait", acts={"greet": "ask", "wait": "wait"}, question=QUESTION, **more)


async def test_a_question_of_a_server_is_asked_of_the_person_and_its_answer_goes_back(servers: Servers) -> None:
    person = Person(lambda question: approve(question.approval, reason="Ada"))
    model = ScriptedModel(boss=[call("s__greet"), "done"])
    async with asyncio.timeout(LIMIT_S), office(user(asking(servers)), model, approver=at_the_desk(person)) as it:
        result = await it.session.run("go")
        (seen,) = await answered(it, "boss", "s__greet")
        asked = [e.record for e in await it.entries() if isinstance(e.record, ApprovalAsked)]
    assert result.output == "done"
    assert json.loads(seen.text) == {"action": "accept", "content": {"name": "Ada"}}
    (question,) = person.asked
    assert (question.actor, question.tool) == ("boss", "ask_person")
    assert "s asks: Whom shall I greet?" in json.loads(question.arguments)["question"]
    assert [each.tool for each in asked] == ["ask_person"]


@pytest.mark.parametrize(
    "says, action",
    [
        (no, "decline"),
        (lambda question: approve(question.approval, reason=""), "cancel"),
        (lambda _: None, "cancel"),
    ],
)
async def test_a_no_and_no_answer_and_one_that_does_not_fit_are_told_apart(
    servers: Servers, says: Any, action: str
) -> None:
    model = ScriptedModel(boss=[call("s__greet"), "done"])
    approver = at_the_desk(Person(says))
    async with asyncio.timeout(LIMIT_S), office(user(asking(servers)), model, approver=approver) as it:
        await it.session.run("go")
        (seen,) = await answered(it, "boss", "s__greet")
        assert it.supervisor.approvals.pending() == ()
    assert json.loads(seen.text) == {"action": action}


@pytest.mark.parametrize("turn", [Turn("go", policy=Policy.deny("ask_person"))])
async def test_who_may_not_ask_a_person_may_not_ask_through_a_server(servers: Servers, turn: Turn) -> None:
    person = Person()
    model = ScriptedModel(boss=[call("s__greet"), "done"])
    async with asyncio.timeout(LIMIT_S), office(user(asking(servers)), model, approver=at_the_desk(person)) as it:
        await it.session.run(turn)
        (seen,) = await answered(it, "boss", "s__greet")
    assert person.asked == []
    assert json.loads(seen.text) == {"action": "cancel"}


async def test_with_nobody_at_hand_the_server_is_told_so_and_nothing_waits(servers: Servers) -> None:
    model = ScriptedModel(boss=[call("s__greet"), "done"])
    async with asyncio.timeout(LIMIT_S), office(user(asking(servers)), model) as it:
        await it.session.run("go")
        (seen,) = await answered(it, "boss", "s__greet")
        assert it.supervisor.approvals.pending() == ()
    assert json.loads(seen.text) == {"action": "cancel"}


async def test_a_question_that_could_be_of_several_calls_is_declined_and_told(servers: Servers) -> None:
    person, gate = Person(), servers.folder / "gate"
    source = asking(servers, gate=str(gate))
    model = ScriptedModel(boss=[[call("s__wait"), call("s__greet")], "done"])
    async with asyncio.timeout(LIMIT_S), office(user(source), model, approver=at_the_desk(person)) as it:
        turn = asyncio.ensure_future(it.session.run("go"))
        while not (said := await told(it.session)):
            await asyncio.sleep(0.01)
        gate.touch()
        await turn
        seen = await finished(it.session)
    assert [kind for kind, _ in said] == ["question_declined"]
    assert "2 calls in flight" in said[0][1]
    assert json.loads(seen["s__greet"].text) == {"action": "cancel"}
    assert person.asked == []


async def test_the_time_in_which_a_person_thinks_is_no_silence_of_the_server(servers: Servers) -> None:
    async def slowly(question: Any) -> Any:
        await asyncio.sleep(0.6)
        return approve(question.approval, reason="Ada")

    source = servers.source("s", "greet", acts={"greet": "ask"}, question=QUESTION, declared={"call_s": 0.2})
    model = ScriptedModel(boss=[call("s__greet"), "done"])
    async with asyncio.timeout(LIMIT_S), office(user(source), model, approver=at_the_desk(Person(slowly))) as it:
        await it.session.run("go")
        (seen,) = await answered(it, "boss", "s__greet")
    assert seen.outcome is Outcome.OK
    assert "Ada" in seen.text


async def test_a_question_is_withdrawn_when_its_turn_is_stopped(servers: Servers) -> None:
    person = Person(never)
    model = ScriptedModel(boss=[call("s__greet"), "done"])
    async with asyncio.timeout(LIMIT_S), office(user(asking(servers)), model, approver=at_the_desk(person)) as it:
        turn = asyncio.ensure_future(it.session.run("go"))
        await person.came.wait()
        turn.cancel()
        await asyncio.wait({turn})
        while not person.withdrawn:
            await asyncio.sleep(0)
        assert it.supervisor.approvals.pending() == ()
    assert KEY not in repr(await it.entries())


async def test_a_question_that_its_server_takes_back_is_withdrawn_and_the_call_goes_on(servers: Servers) -> None:
    person, gate = Person(never), servers.folder / "gate"
    source = servers.source("s", "greet", acts={"greet": "retract"}, question=QUESTION, gate=str(gate))
    model = ScriptedModel(boss=[call("s__greet"), "done"])
    async with asyncio.timeout(LIMIT_S), office(user(source), model, approver=at_the_desk(person)) as it:
        turn = asyncio.ensure_future(it.session.run("go"))
        await person.came.wait()
        gate.touch()
        while not person.withdrawn:
            await asyncio.sleep(0.01)
        assert not turn.done()
        gate.unlink()
        assert (await turn).output == "done"
        (seen,) = await answered(it, "boss", "s__greet")
        assert it.supervisor.approvals.pending() == ()
    assert seen.text == "never mind"


TWO = {
    "type": "object",
    "properties": {"a": {"type": "integer", "default": 3}, "b": {"type": "string", "enum": ["x", "y"], "default": "x"}},
}


@pytest.mark.parametrize(
    "text, schema, content",
    [
        ("", None, {}),
        ("anything", {}, {}),
        ("", TWO, {"a": 3, "b": "x"}),
        ('{"a": 5}', TWO, {"a": 5, "b": "x"}),
        ('{"b": "z"}', TWO, None),
        ("words", TWO, {"a": 3, "b": "x"}),
        ("Ada", FIELDS, {"name": "Ada"}),
        ("17", FIELDS, {"name": "17"}),
        ('"17"', FIELDS, {"name": "17"}),
        ("", FIELDS, None),
        ("17", {"type": "object", "properties": {"n": {"type": "integer"}}}, {"n": 17}),
        ("many", {"type": "object", "properties": {"n": {"type": "integer"}}}, None),
        ("true", {"type": "object", "properties": {"n": {"type": "boolean"}}}, {"n": True}),
        ("x", {"type": "object", "properties": {"n": {"$ref": "https://x.example/y"}}}, None),
        ("x", {"properties": [1]}, None),
        ("x", {"properties": {"n": 5}}, None),
        ("x", {"type": "object", "properties": {"n": {"type": "string"}}, "required": 5}, None),
        ("{}", {"properties": {"n": {"default": 10**40}}}, {"n": 10**40}),
        ('{"n": 1}', {"properties": {"n": json.loads("[" * 500 + "]" * 500)}}, None),
    ],
)
def test_what_is_typed_becomes_the_content_that_was_asked_for(text: str, schema: Any, content: Any) -> None:
    assert content_of(text, schema) == content


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": [1]},
        {"properties": {"n": 5}},
        {"properties": {"n": {"enum": 5}}, "required": 7},
        {"properties": {"n": {"type": ["a", {}], "description": 9, "default": [[[]]]}}},
        {"properties": {f"n{number}": {"description": "x" * 10_000} for number in range(1000)}},
    ],
)
def test_a_question_of_any_form_is_shown_within_bounds(schema: Any) -> None:
    shown = question("s", "Who?", schema)
    assert shown.startswith("s asks: Who?")
    assert len(shown) <= 4000
