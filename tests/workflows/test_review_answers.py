"""What a reviewer's and a fixer's answers are held to, and what is told of one that is not as asked."""

from __future__ import annotations

import msgspec
import pytest

from actors.text import clip
from orchestrator.journal.work import FixAnswer, ReviewFinding, Severity, Verdict
from orchestrator.validators import answer_faults
from orchestrator.workflows.answers import (
    FIXES,
    REVIEW,
    FixesAnswer,
    decoded,
    fixes_faults,
    read_fixes,
    read_review,
    review_faults,
)
from orchestrator.workflows.review import Item, ItemState
from orchestrator.workflows.telling import Case, bare, correction, fix_text, review_text, step_text
from tests.workflows.reviewing import finding, fixes, verdict

LIST = '{"type":"array"}'
NAME = {"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,64}$"}


def text(most: int, least: int = 0) -> dict[str, object]:
    return {"type": "string", "minLength": least, "maxLength": most}


def test_the_two_schemas_are_what_is_documented_word_for_word() -> None:
    found = {
        "type": "object",
        "additionalProperties": False,
        "required": ["id", "place", "severity", "message"],
        "properties": {
            "id": NAME,
            "place": text(300),
            "severity": {"enum": ["blocker", "major", "minor", "note"]},
            "message": text(1000, 1),
            "suggestion": text(4000),
        },
    }
    assert msgspec.json.decode(REVIEW) == {
        "type": "object",
        "additionalProperties": False,
        "required": ["verdict", "findings"],
        "properties": {
            "verdict": {"enum": ["accepted", "changes_wanted", "rejected"]},
            "summary": text(2000),
            "findings": {"type": "array", "maxItems": 50, "items": found},
        },
    }
    item = {
        "type": "object",
        "additionalProperties": False,
        "required": ["id", "state", "reason"],
        "properties": {"id": NAME, "state": {"enum": ["fixed", "declined"]}, "reason": text(1000, 1)},
    }
    assert msgspec.json.decode(FIXES) == {
        "type": "object",
        "additionalProperties": False,
        "required": ["items"],
        "properties": {"items": {"type": "array", "maxItems": 50, "items": item}, "output": True},
    }


def test_a_review_is_read_as_it_was_said() -> None:
    text = verdict("changes_wanted", finding("a", "blocker", suggestion="try b"), finding("n", "note"))
    assert review_faults(text) == ()
    said = read_review(text)
    assert said.verdict is Verdict.CHANGES_WANTED
    assert said.findings == (
        ReviewFinding("a", "a.py:1", Severity.BLOCKER, "a is wrong", "try b"),
        ReviewFinding("n", "n.py:1", Severity.NOTE, "n is wrong"),
    )
    assert review_faults(verdict("accepted", finding("n", "note"))) == ()
    assert review_faults(verdict("accepted")) == ()


@pytest.mark.parametrize(
    "text, said",
    [
        ("fine by me", "the answer is not the JSON that was asked for"),
        ("[]", "the output: [] is not of type"),
        (verdict("fine"), "verdict: "),
        ('{"verdict":"accepted"}', '"findings" is a required property'),
        (verdict("changes_wanted", finding("a b")), "findings.0.id: "),
        (verdict("changes_wanted", finding("a", "awful")), "findings.0.severity: "),
        (verdict("changes_wanted", finding("a", message="")), "findings.0.message: "),
        (verdict("changes_wanted", finding("a", line=3)), "findings.0: "),
        (verdict("changes_wanted", *(f"f{n}" for n in range(51))), "findings: "),
        (verdict("accepted", "a"), "the verdict is 'accepted', and these findings are more than a note: a"),
        (verdict("changes_wanted"), "the verdict is 'changes_wanted', and no finding is more than a note"),
        (verdict("rejected", finding("n", "note")), "the verdict is 'rejected', and no finding is more than a note"),
        (verdict("changes_wanted", "a", "b", "a"), "the id 'a' is given 2 times"),
    ],
)
def test_a_review_that_is_not_as_asked_is_told_what_is_wrong(text: str, said: str) -> None:
    faults = review_faults(text)
    assert said in "; ".join(faults)
    assert len(faults) == 1


def test_a_fixers_answer_is_held_to_exactly_the_items_that_it_was_given() -> None:
    assert fixes_faults(("a", "b"), "", fixes("a", declined=("b",))) == ()
    assert fixes_faults(("a", "b"), "", fixes("a")) == ("items: 'b' has no answer",)
    assert fixes_faults(("a",), "", fixes("a", "b")) == ("items: 'b' is not in the worklist",)
    assert fixes_faults(("a",), "", fixes("a", "a")) == ("the id 'a' is given 2 times",)
    assert "items.0.state" in fixes_faults(("a",), "", fixes("a").replace("fixed", "open"))[0]
    assert "items.0.reason" in fixes_faults(("a",), "", fixes("a").replace("done", ""))[0]
    assert len(fixes_faults(tuple(f"f{n}" for n in range(9)), "", fixes())) == 5


def test_a_fixers_revised_output_is_held_to_the_steps_schema_and_kept_as_it_was_written() -> None:
    assert fixes_faults(("a",), LIST, fixes("a", output=[1])) == fixes_faults(("a",), LIST, fixes("a")) == ()
    assert fixes_faults(("a",), LIST, fixes("a", output="x")) == ('output: the output: "x" is not of type "array"',)
    assert fixes_faults(("a",), "", fixes("a", output=[1])) == ("output: the step's output is text, and this is not",)
    answers = (FixAnswer("a", fixed=True, reason="done"),)
    assert read_fixes(fixes("a", output="new"), "") == FixesAnswer(answers, "new")
    assert read_fixes('{"items": [], "output": [1, {"b":2.50}]}', LIST) == FixesAnswer((), '[1, {"b":2.50}]')
    assert read_fixes(fixes("a"), LIST) == FixesAnswer(answers, None)
    assert read_fixes(fixes(declined=("a",)), "").answers == (FixAnswer("a", fixed=False, reason="no need"),)


def test_what_a_reviewer_and_a_fixer_are_told_is_bounded_and_ends_in_its_data() -> None:
    case = Case("each[3]", "a" * 1_000_000, "{not a place} " + "p" * 1_000_000)
    long = ReviewFinding("a", "x" * 300, Severity.MAJOR, "m" * 1000, "s" * 4000)
    items = [Item(long, ItemState.OPEN, ""), *(Item(long, ItemState.FIXED, "r" * 1000) for _ in range(450))]
    told = review_text(case, 2, 3, "o" * 1_000_000, items)
    assert told.startswith("Review of step 'each[3]', round 2 of 3.\n{not a place} ppp")
    assert len(told) < 600_000
    data = msgspec.json.decode(told.rpartition("\n")[2])
    assert (data["step"], data["round"], data["of"]) == ("each[3]", 2, 3)
    assert [(f["state"], len(f["message"]), "suggestion" in f) for f in data["findings"][:2]] == [
        ("open", 1000, True),
        ("fixed", 200, False),
    ]
    assert (len(data["asked"]), len(data["answer"])) == (20_000, 100_000)
    assert told.partition("\nJudge")[0] == f"Review of step 'each[3]', round 2 of 3.\n{clip(case.prompt, 20_000)}"
    assert {k: v for k, v in data["findings"][1].items() if k not in ("place", "message", "reason")} == {
        "id": "a",
        "severity": "major",
        "state": "fixed",
    }
    assert data["findings"][1]["place"] == "x" * 300
    assert len(data["findings"][1]["reason"]) == 200
    fixing = fix_text(case, 2, 3, "o", items[:1])
    assert msgspec.json.decode(fixing.rpartition("\n")[2])["worklist"][0]["suggestion"] == "s" * 4000
    bare = review_text(Case("k", "asked"), 1, 1, "answer", [])
    assert bare.startswith("Review of step 'k', round 1 of 1.\nJudge the answer")
    assert REVIEW in bare.split("\n")
    assert FIXES in fixing.split("\n")
    assert hash(case) == hash(Case(case.key, case.asked, case.prompt))


def test_a_correction_names_what_is_wrong_and_shows_a_schema_that_is_short_enough() -> None:
    told = correction(("n: 1 is not text", "m: missing"), LIST)
    assert told.startswith("Your answer could not be taken: n: 1 is not text; m: missing.\n")
    assert told.endswith(LIST)
    assert correction(("x",), "[" * 8000).endswith("[" * 8000)
    assert correction(("x",), "[" * 8001).endswith("to be done in this turn.")


def test_a_steps_schema_stands_behind_its_prompt_and_can_be_taken_off_again() -> None:
    line = "Answer with JSON that satisfies this schema, and nothing else:"
    assert step_text("p", LIST) == f"p\n\n{line}\n{LIST}"
    assert step_text("p", "") == "p"
    assert step_text("p", "[" * 8000).endswith("[" * 8000)
    assert step_text("p", "[" * 8001) == f"p\n\n{line}\n(too long to be shown: 8001 characters)"
    for prompt in ("p", "p\n\nq: {}", f"p\n\n{line}\nx", ""):
        assert bare(step_text(prompt, LIST)) == prompt
    assert bare("p\n\nq") == "p\n\nq"


def test_reviewer_and_fixer_are_shown_what_the_answer_itself_is_held_to() -> None:
    case = Case("k", "asked", schema=LIST)
    for told in (review_text(case, 1, 1, "[]", []), fix_text(case, 1, 1, "[]", [])):
        assert '"output_schema"' in told.rpartition("\n")[0]
        assert msgspec.json.decode(told.rpartition("\n")[2])["output_schema"] == {"type": "array"}
    for schema in ("", '"' + "x" * 8000):
        assert "output_schema" not in review_text(Case("k", "asked", schema=schema), 1, 1, "[]", []).rpartition("\n")[2]


def test_a_fault_that_repeats_a_long_answer_is_cut() -> None:
    (fault,) = answer_faults('{"type":"integer"}', f'"{"x" * 9000}"')
    assert len(fault) == 300
    assert fault.endswith('x" is not of type "integer"')
    (fault,) = answer_faults(LIST, "x" * 300)
    assert fault.endswith(f"): {'x' * 300}")
    (fault,) = answer_faults(LIST, "x" * 301)
    assert fault.endswith(f"): {'x' * 300}…")
    assert answer_faults("", "anything") == ()
    assert len(answer_faults('{"items":{"type":"string"}}', "[1,2,3,4,5,6,7]")) == 5
    assert hash(read_review(verdict("accepted"))) == hash(read_review(verdict("accepted")))
    assert hash(read_fixes(fixes("a"), "")) == hash(read_fixes(fixes("a"), ""))


def test_an_output_is_read_as_json_where_it_is_json_and_is_the_text_it_is_where_it_is_not() -> None:
    assert decoded('{"a": [1]}') == {"a": [1]}
    assert decoded("two words") == "two words"
    assert decoded("[" * 100_000) == "[" * 100_000
