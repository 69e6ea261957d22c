"""Every fault of a product file is told at once, each with its line, its column and its remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.products.manifest import ManifestError, load_manifest, parse_manifest
from orchestrator.workflows.fault import PlanError

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """\
name: shop
agents:
  clerk: {role: builder, instructions: Help., tools: [look, push]}
tools:
  - {name: look, description: See. Not for more., access: read}
  - {name: push, description: Push. Not for more., effect: reversible_write, needs: [workspace]}
"""


def told(text: str) -> list[str]:
    """Each fault of *text* as ``line:column message``, none without a remedy."""
    with pytest.raises(ManifestError) as refused:
        parse_manifest(text, "p.yaml")
    assert all(fault.place == "p.yaml" and fault.remedy for fault in refused.value.faults)
    return [f"{fault.line}:{fault.column} {fault.message}" for fault in refused.value.faults]


def remedies(text: str) -> list[str]:
    """The remedy of each fault of *text*."""
    with pytest.raises(ManifestError) as refused:
        parse_manifest(text, "p.yaml")
    return [fault.remedy for fault in refused.value.faults]


def test_all_faults_are_told_at_once_in_the_order_of_the_file() -> None:
    text = """\
nmae: shop
agents:
  clerk: {role: bilder, instructions: Help., tools: [look]}
tools:
  - {name: look, descripton: See., access: raed, authorities: [Look]}
  - {name: look, description: Again., access: read, effect: read_only}
  - {name: push, description: Push., effect: write, needs: [Work Space], approval: always, run: os:remove}
  - {name: send, access: read, use_not_for: fun, definition_bytes: many, annotations: {readonlyHint: true}}
states:
  - {name: one, tools: [look, lok], moves: {push: two, look: tow}}
  - {name: one, tools: []}
callers:
  chat: {agent: clark, authorities: [a], access: all, context: [A], approver: yes, situations: {x: {}}}
selections:
  best: [look, pusch]
"""
    assert told(text) == [
        "1:1 the product has no key 'nmae'",
        "1:1 the product lacks the key 'name'",
        "3:17 there is no role 'bilder'",
        "5:5 tool 'look' lacks the key 'description'",
        "5:18 tool 'look' has no key 'descripton'",
        "5:44 there is no access 'raed'",
        "5:64 'Look' is not an authority",
        "6:12 the tool 'look' was declared on line 5",
        "6:61 tool 'look' has 'access' and 'effect'",
        "7:46 there is no effect 'write'",
        "7:61 'Work Space' is not a context field",
        "7:84 there is no approval 'always'",
        "7:97 the product file stands in no package",
        "8:5 tool 'send' has 'use_not_for' without 'description'",
        "8:5 tool 'send' lacks the key 'description'",
        "8:68 'definition_bytes' of tool 'send' is text 'many'",
        "8:88 'annotations' of tool 'send' has no key 'readonlyHint'",
        "10:31 there is no tool 'lok'",
        "10:45 'push' moves state 'one' on and is not among its tools",
        "10:51 there is no state 'two'",
        "10:62 there is no state 'tow'",
        "11:12 the state 'one' was given on line 10",
        "13:17 there is no agent 'clark'",
        "13:38 'a' is not an authority",
        "13:50 there is no access 'all'",
        "13:65 'A' is not a context field",
        "13:79 'approver' of caller 'chat' is text 'yes'",
        "13:100 situation 'x' of caller 'chat' adds nothing",
        "15:16 there is no tool 'pusch'",
    ]
    found = remedies(text)
    for close in ("name", "builder", "description", "read", "look", "clerk", "readOnlyHint", "push"):
        assert f"Did you mean {close!r}?" in found


@pytest.mark.parametrize(
    "written, instead, fault",
    [
        ("tools: [look, push]}", "tools: [look, pusch]}", "there is no tool 'pusch'"),
        ("role: builder", "role: reviewer", "has access 'write', above what a reviewer may do"),
        ("role: builder", "role: builder, skills: [a]", "names skills, and none are known here"),
        ("name: look", "name: read_output", "there is no tool 'look'"),
        ("name: look", "name: 'lo ok'", "'lo ok' is not a name"),
        ("description: See. Not for more.", "description: ''", "'description' of tool 'look' is empty"),
        ("access: read}", "access: read, input_schema: {type: objekt}}", "not a valid JSON Schema"),
        ("access: read}", "access: read, input_schema: {$ref: 'x.json'}}", "valid JSON Schema|refers outside itself"),
        ("access: read}", "access: read, authorities: [workspace.*]}", "'workspace.*' is not an authority"),
        ("access: read}", "}", "lacks the key 'access'"),
        ("access: read}", "access: read, definition_bytes: 0}", "'definition_bytes' of tool 'look'"),
        ("access: read}", "access: read, annotations: {readOnlyHint: 'true'}}", "'readOnlyHint'"),
        ("name: shop\n", "name: shop\nstates: []\n", "'states' is empty"),
        ("name: shop\n", "name: shop\nstates: [{name: one}]\n", "lacks the key 'tools'"),
        ("name: shop\n", "name: shop\nstates: [one]\n", "state 1 is text"),
        ("name: shop\n", "name: shop\ncallers: {}\n", "'callers' is empty"),
        ("name: shop\n", "name: shop\ncallers: {chat: clerk}\n", "caller 'chat' is text"),
        ("name: shop\n", "name: shop\ncallers: {chat: {}}\n", "lacks the key 'agent'"),
        ("name: shop\n", "name: shop\nselections: {best: look}\n", "'best' of 'selections' is text"),
        ("name: shop\n", "name: shop\nname: two\n", "the key 'name' was given on line 1"),
        ("  - {name: push", "  - push\n  - {name: push", "tool 2 is text 'push'|tool 2 is text"),
        ("[look, push]}", "[look, push]}\n  idle: {file: a.yaml}", "file"),
    ],
)
def test_each_of_these_slips_is_a_fault_of_its_own(written: str, instead: str, fault: str) -> None:
    assert parse_manifest(GOOD, "p.yaml").name == "shop"
    assert written in GOOD
    with pytest.raises(ManifestError, match=fault):
        parse_manifest(GOOD.replace(written, instead, 1), "p.yaml")


@pytest.mark.parametrize("text", ["", "- a\n", "just text\n", "a: [\n", "a: 1\n---\nb: 2\n"])
def test_what_is_no_mapping_is_one_fault(text: str) -> None:
    assert len(told(text)) == 1


def test_a_file_that_is_not_there_is_a_fault_too_and_the_text_counts_them(tmp_path: Path) -> None:
    with pytest.raises(PlanError) as refused:
        load_manifest(tmp_path / "product.yaml")
    assert "1 fault in the product\n" in str(refused.value)
    assert "cannot be read" in str(refused.value)


def test_a_fault_in_one_tool_does_not_make_agents_states_and_selections_faulty() -> None:
    text = GOOD.replace("access: read}", "access: raed}") + "states:\n  - {name: one, tools: [look]}\n"
    assert told(text) == ["5:59 there is no access 'raed'"]
