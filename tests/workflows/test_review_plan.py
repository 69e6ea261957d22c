"""The review of a step in a workflow file: what it says, and every way to say it wrongly, with its place."""

from __future__ import annotations

import pytest

from orchestrator.workflows.fault import PlanError
from orchestrator.workflows.load import parse_plan
from orchestrator.workflows.plan import Lend, Review

AGENTS = """\
name: w
agents:
  a: {role: run, instructions: i}
  r: {role: reviewer, instructions: i}
  f: {role: fixer, instructions: i}
steps:
"""
STEP = "  - {{id: one, agent: a, prompt: p, review: {review}}}\n"
WHOLE = """\
  - id: plan
    agent: a
    prompt: p
    output: {type: array}
  - id: each
    agent: a
    for_each: plan
    prompt: "{item}"
    review:
      by: r
      fix_by: f
      max_rounds: 10
      lend: {authorities: [workspace.write], roots: [./src]}
      prompt: "Look at {item} of {steps.plan}."
"""


def told(steps: str) -> list[str]:
    with pytest.raises(PlanError) as refused:
        parse_plan(AGENTS + steps, "w.yaml")
    assert all(fault.remedy for fault in refused.value.faults)
    return [f"{fault.line}:{fault.column} {fault.message}. {fault.remedy}" for fault in refused.value.faults]


def test_a_review_says_who_how_often_and_what_is_lent() -> None:
    plan, each = parse_plan(AGENTS + WHOLE, "w.yaml").steps
    assert plan.review is None
    assert each.review == Review("r", "f", 10, Lend(("workspace.write",), ("src",)), "Look at {item} of {steps.plan}.")
    (one,) = parse_plan(AGENTS + STEP.format(review="{by: r, fix_by: f}"), "w.yaml").steps
    assert one.review == Review("r", "f", 3, None, "")
    (one,) = parse_plan(AGENTS + STEP.format(review="{by: r, fix_by: f, max_rounds: 1}"), "w.yaml").steps
    assert one.review is not None
    assert one.review.max_rounds == 1


@pytest.mark.parametrize(
    "review, faults",
    [
        (
            "{}",
            [
                "7:44 'review' of step 'one' lacks the key 'by'. Add 'by:' with text.",
                "7:44 'review' of step 'one' lacks the key 'fix_by'. Add 'fix_by:' with text.",
            ],
        ),
        ("r", ["7:44 'review' of step 'one' is text 'r'. Give a mapping of keys to values."]),
        ("", ["7:43 'review' of step 'one' has no value. Give a mapping, or remove the key."]),
        ("{by: x, fix_by: f}", ["7:49 there is no agent 'x'. Known are: r."]),
        ("{by: r, fix_by: ff}", ["7:60 there is no agent 'ff'. Did you mean 'f'?"]),
        (
            "{by: f, fix_by: r}",
            [
                "7:49 agent 'f' is a fixer, and only a reviewer can do this. Name one of r.",
                "7:60 agent 'r' is a reviewer, and only a fixer can do this. Name one of f.",
            ],
        ),
        ("{by: a, fix_by: f}", ["7:49 agent 'a' is a run, and only a reviewer can do this. Name one of r."]),
        (
            "{by: r, fix_by: f, max_rounds: 0}",
            ["7:75 'max_rounds' of 'review' of step 'one' is text '0'. Give a number from 1 to 10."],
        ),
        (
            "{by: r, fix_by: f, max_rounds: 11}",
            ["7:75 'max_rounds' of 'review' of step 'one' is text '11'. Give a number from 1 to 10."],
        ),
        (
            "{by: r, fix_by: f, max_rounds: two}",
            ["7:75 'max_rounds' of 'review' of step 'one' is text 'two'. Give a whole number in plain digits."],
        ),
        (
            "{by: r, fix_by: f, rounds: 2}",
            ["7:63 'review' of step 'one' has no key 'rounds'. Did you mean 'max_rounds'?"],
        ),
        (
            "{by: r, fix_by: f, lend: {authorities: [Write], roots: [../x]}}",
            [
                "7:84 'Write' is not an authority. Write it like workspace.write.",
                "7:100 root '../x' climbs out of the workspace. Write it like src/app, or '.' for the whole workspace.",
            ],
        ),
        (
            "{by: r, fix_by: f, lend: {}}",
            ["7:69 'lend' of 'review' of step 'one' lends nothing. Name 'authorities', or remove 'lend'."],
        ),
        (
            '{by: r, fix_by: f, prompt: "See {item} and {steps.two} and }"}',
            [
                "7:76 {item} speaks of an item, and the step has no 'for_each'. Add 'for_each', or remove it.",
                "7:87 {steps.two} speaks of an unknown step 'two'. Known are: one.",
                "7:103 a lone '}' stands in the prompt. Write }} for a literal brace.",
            ],
        ),
    ],
)
def test_each_way_to_say_it_wrongly_is_told_at_its_place(review: str, faults: list[str]) -> None:
    assert told(STEP.format(review=review)) == faults


def test_a_review_without_any_fitting_agent_says_what_to_add() -> None:
    text = "name: w\nagents: {a: {role: run, instructions: i}, b: {role: run, instructions: i}}\nsteps:\n"
    with pytest.raises(PlanError) as refused:
        parse_plan(text + "  - {id: one, agent: a, prompt: p, review: {by: b, fix_by: b}}\n", "w.yaml")
    assert [fault.remedy for fault in refused.value.faults] == [
        "Add an agent with 'role: reviewer'.",
        "Add an agent with 'role: fixer'.",
    ]
    with pytest.raises(PlanError) as refused:
        parse_plan(text + "  - {id: one, agent: a, prompt: p, review: {by: x, fix_by: y}}\n", "w.yaml")
    assert [f"{fault.message}. {fault.remedy}" for fault in refused.value.faults] == [
        "there is no agent 'x'. Add an agent with 'role: reviewer'.",
        "there is no agent 'y'. Add an agent with 'role: fixer'.",
    ]


def test_a_step_is_not_reviewed_by_the_agent_that_did_it_and_may_be_fixed_by_it() -> None:
    assert told("  - {id: one, agent: r, prompt: p, review: {by: r, fix_by: f}}\n") == [
        "7:49 agent 'r' would review its own work. Name another reviewer."
    ]
    (one,) = parse_plan(AGENTS + "  - {id: one, agent: f, prompt: p, review: {by: r, fix_by: f}}\n", "w.yaml").steps
    assert one.review == Review("r", "f")


def test_the_digest_covers_the_review_and_is_unchanged_for_a_plan_without_one() -> None:
    plain = """
name: piece
agents:
  a: {role: child, instructions: "x"}
steps:
  - {id: one, agent: a, prompt: "1", lend: {authorities: [workspace.write]}, output: {type: array}}
  - {id: two, agent: a, for_each: one, prompt: "{item}"}
"""
    known = "872967eb3cd95d115eea652129b3f1089238f4a9f94fefdab06dd2e8c1abe665"
    assert parse_plan(plain, "w.yaml").digest == known
    whole = parse_plan(AGENTS + WHOLE, "w.yaml").digest
    changes = [("max_rounds: 10", "max_rounds: 9"), ("workspace.write", "workspace.read"), ("Look", "look")]
    digests = {parse_plan(AGENTS + WHOLE.replace(*change), "w.yaml").digest for change in changes}
    assert len(digests | {whole}) == 4
