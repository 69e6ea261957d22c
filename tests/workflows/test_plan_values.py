"""A workflow file without a fault becomes frozen values, read as they were written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from orchestrator.workflows.load import load_plan, parse_plan
from orchestrator.workflows.plan import DEFAULT_MAX_CONCURRENT, AgentSpec, Lend, Plan, Step, ready

if TYPE_CHECKING:
    from pathlib import Path

WHOLE = """\
name: tidy
description: Tidy the tree.
agents:
  builder:
    role: builder
    instructions: "Plan."
    tools: [read_file, list_files]
    skills: [style]
    children: [checker]
    description: "plans"
  checker: {role: child, instructions: Check.}
steps:
  - id: plan
    agent: builder
    prompt: "Look at the tree, as in {{this}}."
    output:
      type: object
      properties: {files: {type: array, items: {type: object, properties: {path: {type: string}}}}}
  - id: each
    agent: checker
    needs: []
    for_each: plan.files
    background: true
    prompt: |
      Check {item.path} of {steps.plan.files}
    lend: {authorities: [workspace.write], roots: ["./src//app", "."]}
    max_concurrent: 8
  - {id: end, agent: builder, needs: [each], prompt: "Sum up {steps.each} and {steps.plan}"}
"""


def test_every_key_of_a_workflow_becomes_a_value() -> None:
    plan = parse_plan(WHOLE, "tidy.yaml")
    assert (plan.name, plan.description) == ("tidy", "Tidy the tree.")
    assert plan.agents == (
        AgentSpec("builder", "builder", "Plan.", ("read_file", "list_files"), ("style",), ("checker",), "plans"),
        AgentSpec("checker", "child", "Check."),
    )
    first, each, end = plan.steps
    assert json.loads(first.output)["properties"]["files"]["type"] == "array"
    assert first.output.startswith('{"properties":{"files":{"items":')
    assert each == Step(
        id="each",
        agent="checker",
        prompt="Check {item.path} of {steps.plan.files}\n",
        needs=("plan",),
        for_each="plan.files",
        background=True,
        lend=Lend(("workspace.write",), ("src/app", ".")),
        max_concurrent=8,
    )
    assert (end.needs, end.lend, end.output, end.max_concurrent) == (("each",), None, "", DEFAULT_MAX_CONCURRENT)
    assert hash(plan)


def test_the_digest_is_of_what_is_said_and_not_of_how_it_is_laid_out() -> None:
    plan = parse_plan(WHOLE, "tidy.yaml")
    assert len(plan.digest) == 64
    assert parse_plan(f"# a comment\n\n{WHOLE}", "other.yaml").digest == plan.digest
    assert parse_plan(WHOLE.replace("Plan.", "Plan!"), "tidy.yaml").digest != plan.digest


SMALL = (
    "name: {name}\nagents: {{a: {{role: run, instructions: {text}}}}}\n"
    "steps: [{{id: {id}, agent: a, prompt: {text}}}]\n"
)


@pytest.mark.parametrize(
    "text", ["no", "on", "1_000", "2026-01-01", "0x10", "~", "null", "1.50", "010", "=", "12:30:45"]
)
def test_text_stays_the_text_that_was_written(text: str) -> None:
    plan = parse_plan(SMALL.format(name=text, text=text, id="no"), "f.yaml")
    assert (plan.name, plan.steps[0].id) == (text, "no")
    assert (plan.agents[0].instructions, plan.steps[0].prompt) == (text, text)


def test_a_schema_is_read_as_json_and_nothing_else() -> None:
    schema = "{type: object, properties: {on: {enum: [on, yes, 1_000, 2026-01-01, true, null, 1.5, -2, 1e3, '3', ~]}}}"
    plan = parse_plan(SMALL.format(name="n", text="t", id=f"x, output: {schema}"), "f.yaml")
    listed = ["on", "yes", "1_000", "2026-01-01", True, None, 1.5, -2, 1000.0, "3", "~"]
    assert json.loads(plan.steps[0].output) == {"type": "object", "properties": {"on": {"enum": listed}}}


def test_an_agent_may_be_written_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "other.yaml").write_text("role: child\ninstructions: Check.\n", encoding="utf-8")
    workflow = tmp_path / "w.yaml"
    text = WHOLE.replace("{role: child, instructions: Check.}", "{file: agents/other.yaml}")
    workflow.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert load_plan(workflow) == parse_plan(WHOLE, "w.yaml")
    (tmp_path / "alias.yaml").symlink_to("w.yaml")
    assert load_plan(tmp_path / "alias.yaml") == parse_plan(WHOLE, "w.yaml")


def diamond() -> Plan:
    steps = "".join(
        f"  - {{id: {name}, agent: a, prompt: p, needs: [{needs}]}}\n"
        for name, needs in (("top", ""), ("left", "top"), ("right", "top"), ("end", "left, right"), ("alone", ""))
    )
    return parse_plan(f"name: d\nagents: {{a: {{role: run, instructions: i}}}}\nsteps:\n{steps}", "d.yaml")


@pytest.mark.parametrize(
    "done, running, names",
    [
        ((), (), "top alone"),
        ((), ("top",), "alone"),
        (("top",), ("alone",), "left right"),
        (("top", "left"), (), "right alone"),
        (("top", "left", "alone"), ("right",), ""),
        (("top", "left", "right", "alone"), (), "end"),
        (("top", "left", "right", "alone", "end"), (), ""),
    ],
)
def test_the_steps_whose_needs_are_done_are_ready_in_file_order(
    done: tuple[str, ...], running: tuple[str, ...], names: str
) -> None:
    assert " ".join(step.id for step in ready(diamond(), set(done), set(running))) == names
