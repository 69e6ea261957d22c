"""An explanation walks every gate in order, marks the refusal that the actor is told, and decides nothing itself."""

from __future__ import annotations

import msgspec
import pytest

from actors import Access
from actors.states import WorkflowState
from actors.tools import Approval
from orchestrator import Policy
from orchestrator.catalog.explain import explain, explanation_json, explanation_text
from orchestrator.catalog.viewpoint import Viewpoint
from orchestrator.facts import Attempt, code_of
from orchestrator.policy import decide
from tests.catalog.catalogs import agent, caller, tool

PUT = tool("put", authorities=("a.b",), needs=("z",), access=Access.WRITE, approval=Approval.EACH_CALL)
ONE = WorkflowState("one", ("look",))
VIEWS = {
    "authority_missing": Viewpoint(caller(agent(PUT))),
    "context_missing": Viewpoint(caller(agent(PUT), "a.b")),
    "access_exceeded": Viewpoint(caller(agent(PUT), "a.b", access=Access.READ)),
    "denied_by_policy": Viewpoint(caller(agent(PUT), policy=Policy.deny("put"))),
    "approval_unavailable": Viewpoint(caller(agent(PUT), "a.b", context=("z",))),
    "needs_approval": Viewpoint(caller(agent(PUT), "a.b", context=("z",), approver=True)),
    "unknown_tool": Viewpoint(caller(agent(tool("look")))),
}


@pytest.mark.parametrize("code", VIEWS)
def test_the_marked_gate_is_the_one_that_the_decision_answers_with(code: str) -> None:
    facts = VIEWS[code].facts("put")
    explanation = explain("put", facts)
    assert [answer.answer for answer in explanation.answers if answer.first] == [code]
    assert explanation.code == code == code_of(decide(Attempt("put", call=False), facts))
    assert [answer.gate for answer in explanation.answers] == list(range(1, 15))


def test_gates_behind_the_first_refusal_say_their_own_and_call_gates_say_that_they_are_asked_at_the_call() -> None:
    explanation = explain("put", VIEWS["authority_missing"].facts("put"))
    answers = {answer.gate: answer.answer for answer in explanation.answers}
    assert [answers[gate] for gate in (7, 9, 14)] == ["authority_missing", "context_missing", "approval_unavailable"]
    assert {gate for gate, answer in answers.items() if answer == "asked at each call"} == {10, 11, 13}
    assert explanation.missing == ("a.b", "z")


def test_a_tool_that_is_permitted_passes_every_gate_and_nothing_is_marked() -> None:
    explanation = explain("look", Viewpoint(caller(agent(tool("look")))).facts("look"))
    assert (explanation.permitted, explanation.code, [a for a in explanation.answers if a.first]) == (True, "", [])
    assert {answer.answer for answer in explanation.answers if answer.offer} == {"passes"}


def test_the_state_is_part_of_the_question() -> None:
    view = Viewpoint(caller(agent(PUT, tool("look"))), (ONE,))
    assert explain("put", view.facts("put", ONE)).code == "stale_state"
    assert explain("look", view.facts("look", ONE)).code == ""
    assert explanation_text(explain("put", view.facts("put", ONE))).startswith("put for chat in the state one: stale")


def test_the_text_marks_one_line_and_the_json_holds_every_gate() -> None:
    explanation = explain("put", VIEWS["access_exceeded"].facts("put"))
    marked = [line for line in explanation_text(explanation).splitlines() if line.startswith(">")]
    assert len(marked) == 1
    assert marked[0].startswith(">  8 deny")
    told = msgspec.json.decode(explanation_json(explanation))
    assert (told["permitted"], told["code"], told["missing"]) == (False, "access_exceeded", ["z"])
    assert [gate["gate"] for gate in told["gates"] if gate["first"]] == [8]
