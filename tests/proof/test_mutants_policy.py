"""The decision where its properties could miss a fault: the codes, what a message says, the joining of policies."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from actors.grants import Access, Grants
from actors.messages import Retry
from actors.tools import Tool
from orchestrator.denials import CODES, MAX_NAME, deny
from orchestrator.facts import PERMIT, Attempt, Consent, Facts, NeedsApproval, Source, State, Target
from orchestrator.focus import Policy, join
from orchestrator.policy import decide

NEVER, LATER, OTHER = Retry.NEVER, Retry.LATER, Retry.OTHER_ARGUMENTS
CONCEPTS = {
    "capability_revoked": (1, NEVER),
    "unknown_tool": (2, OTHER),
    "source_unavailable": (3, LATER),
    "tool_changed": (3, NEVER),
    "identity_conflict": (4, NEVER),
    "access_revoked": (4, NEVER),
    "stale_state": (5, OTHER),
    "denied_by_policy": (6, NEVER),
    "authority_missing": (7, NEVER),
    "grant_expired": (7, NEVER),
    "access_exceeded": (8, NEVER),
    "context_missing": (9, NEVER),
    "invalid_arguments": (10, OTHER),
    "path_outside_workspace": (11, OTHER),
    "budget_exhausted": (12, NEVER),
    "too_deep": (12, NEVER),
    "too_many_children": (12, LATER),
    "unresolved_effect": (13, LATER),
    "approval_required": (14, LATER),
    "approval_mismatch": (14, LATER),
    "approval_expired": (14, LATER),
    "approval_used": (14, LATER),
    "approval_rejected": (14, NEVER),
    "approval_unavailable": (14, NEVER),
}
SCHEMA = '{"properties":{"path":{}},"type":"object"}'
PUT = Tool("put", "Writes.", SCHEMA, access=Access.WRITE, targets=("path",))
SIGN = Tool("sign", "Signs.", approval="each_call")


def told(facts: Facts) -> str:
    """What the model reads of a refused call."""
    assert facts.tool is not None
    verdict = decide(Attempt(facts.tool.name), facts)
    return getattr(verdict, "text", "")


def test_the_codes_stand_at_their_gates_and_say_whether_another_try_is_worth_it() -> None:
    assert {code: (gate, retry) for code, (gate, _, retry) in CODES.items()} == CONCEPTS


def test_a_denial_quotes_no_more_of_a_name_than_a_name_may_have() -> None:
    assert MAX_NAME == 128
    assert len(deny("unknown_tool", "x" * 500, "boss", "No.").tool) == 128


def test_a_person_who_said_no_is_named_as_the_rule() -> None:
    facts = Facts("boss", SIGN, ("sign",), Grants(), consent=Consent.REJECTED, approver=True)
    verdict = decide(Attempt("sign"), facts)
    assert getattr(verdict, "code", "") == "approval_rejected"
    assert "a person said no" in told(facts)


@pytest.mark.parametrize(
    "made_in, now, tools, words",
    [
        ("draft#0", "final#1", {"put"}, "was called in draft#0; the workflow is in final#1 now"),
        ("draft#0", "draft#2", {"put"}, "was called in draft#0; the workflow is in draft#2 now"),
        ("final#1", "final#1", {"look"}, "is not part of the present state (final#1)"),
    ],
)
def test_a_stale_call_is_told_where_it_was_made_or_what_is_missing(
    made_in: str, now: str, tools: set[str], words: str
) -> None:
    state = State(made_in, now, frozenset(tools))
    assert words in told(Facts("boss", PUT, ("put",), Grants(access=Access.WRITE), state=state))


@pytest.mark.parametrize("roots, words", [((), "(none)"), (("src", "docs"), "(docs, src)")])
def test_a_refused_path_is_told_the_roots_there_are(roots: tuple[str, ...], words: str) -> None:
    grants = Grants((), Access.WRITE, roots)
    assert told(Facts("boss", PUT, ("put",), grants, targets=(Target("a", "a", inside=True),))).count(words) == 1


@pytest.mark.parametrize(
    "names, error, words",
    [
        ("put", TypeError, "the string 'put'"),
        (("put", ""), ValueError, "a blank tool"),
        (("put", "  "), ValueError, "a blank tool"),
        (("put", " look"), ValueError, "the tool ' look' with surrounding whitespace"),
    ],
)
def test_a_policy_names_tools_exactly(names: tuple[str, ...], error: type[Exception], words: str) -> None:
    for field in ("allowed", "denied", "delegable"):
        with pytest.raises(error, match=words):
            Policy(**{field: names})


def test_a_policy_permits_by_yes_or_no_and_tells_every_name_it_speaks_of() -> None:
    policy = Policy(("look", "put"), ("put", "mail"), ("mail",))
    assert [policy.permits(name) for name in ("look", "put", "mail", "bill", "get_api_spec")] == [
        True,
        False,
        False,
        False,
        True,
    ]
    assert policy.names() == {"look", "put", "mail"}
    assert Policy.deny("put").names() == {"put"}


def test_joined_policies_allow_what_both_allow_and_deny_what_either_denies() -> None:
    left, right = Policy(("a", "b"), ("x",), ("x", "y")), Policy(("b", "c"), ("y",), ("y", "z"))
    assert join(left, right) == join(right, left) == Policy(("b",), ("x", "y"), ("y",))
    assert join(left, Policy.deny("q")) == join(Policy.deny("q"), left) == Policy(("a", "b"), ("x", "q"))
    assert join(left, left) == left


@pytest.mark.parametrize(
    "source, fault, text",
    [
        (Source.UNAVAILABLE, "", "put cannot be reached. Go on without it, or try again later."),
        (Source.UNAVAILABLE, "the server is gone", "put cannot be reached: the server is gone. Go on without it"),
        (Source.CHANGED, "", "put is not what it was when this session started. A person must approve"),
        (Source.CHANGED, "-a +b", "put is not what it was when this session started: -a +b A person must approve"),
    ],
)
def test_a_tool_whose_source_is_gone_or_other_than_it_was_is_told_what_is_wrong(
    source: Source, fault: str, text: str
) -> None:
    facts = Facts("boss", PUT, ("put",), Grants((), Access.WRITE), source=source, source_fault=fault)
    assert told(facts).startswith(text)


def test_what_is_wrong_with_a_source_is_told_within_bounds() -> None:
    facts = Facts("boss", PUT, ("put",), Grants(), source=Source.UNAVAILABLE, source_fault="x" * 5000)
    assert len(told(facts)) < 600 + 120
    assert told(facts).count("x") == 599


@pytest.mark.parametrize("call", [True, False])
def test_a_changed_tool_asks_a_person_for_each_call_whatever_it_declared(call: bool) -> None:  # noqa: FBT001
    facts = Facts("boss", PUT, ("put",), Grants((), Access.WRITE), source=Source.CHANGED, approver=True)
    assert decide(Attempt("put", call=call), facts) == NeedsApproval("put", "boss")
    given = replace(facts, consent=Consent.GIVEN)
    assert decide(Attempt("put", call=call), given) is PERMIT
    rejected = decide(Attempt("put", call=call), replace(facts, consent=Consent.REJECTED))
    assert getattr(rejected, "code", "") == "approval_rejected"
    alone = decide(Attempt("put", call=call), replace(given, approver=False))
    assert getattr(alone, "code", "") == "tool_changed"
    gone = decide(Attempt("put", call=call), replace(given, source=Source.UNAVAILABLE))
    assert getattr(gone, "code", "") == "source_unavailable"
