"""Every fault of a workflow file is told at once, each with its line, its column and its remedy."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.workflows.fault import Fault, PlanError
from orchestrator.workflows.load import load_plan, parse_plan

if TYPE_CHECKING:
    from pathlib import Path

AGENTS = "name: w\nagents:\n  a: {role: run, instructions: i}\n"
PLAN = (
    "  - {id: plan, agent: a, prompt: p, output: {type: object, properties: "
    "{files: {type: array, items: {type: object, properties: {path: {}}}}, n: {type: integer}}}}\n"
)


def faults_of(text: str) -> tuple[Fault, ...]:
    with pytest.raises(PlanError) as refused:
        parse_plan(text, "w.yaml")
    for fault in refused.value.faults:
        assert fault.place == "w.yaml"
        assert fault.remedy
        assert str(fault) in str(refused.value)
    return refused.value.faults


def told(text: str) -> list[str]:
    return [f"{fault.line}:{fault.column} {fault.message}" for fault in faults_of(text)]


def test_all_faults_are_told_at_once_in_the_order_of_the_file() -> None:
    text = """\
nmae: w
agents:
  a: {role: runner, instructions: "", tools: read_file}
  b: {role: child, instructions: i, children: [c, b]}
  a: {role: run, instructions: i}
steps:
  - id: one
    agent: aa
    prompt: "See {steps.two} and {item} and {x} and }"
    needs: [one, tow]
    background: yes
  - id: two
    agent: b
    needs: [three]
    prompt: p
    output: {type: objekt}
  - id: three
    agent: b
    prompt: p
    for_each: two
    max_concurrent: 1_000
  - id: two
    agent: b
    prompt: ""
    lend: {authorities: [Write], roots: [../x], rots: []}
    surprise: 1
  - just text
"""
    assert told(text) == [
        "1:1 the workflow has no key 'nmae'",
        "1:1 the workflow lacks the key 'name'",
        "3:13 there is no role 'runner'",
        "3:35 'instructions' of agent 'a' is empty",
        "3:46 'tools' of agent 'a' is text 'read_file'",
        "4:3 agents are each other's children: b -> b",
        "4:48 agent 'b' has an unknown child 'c'",
        "5:3 the key 'a' was given on line 3",
        "8:12 there is no agent 'aa'",
        "9:18 {steps.two} speaks of step 'two', which need not be done by then",
        "9:34 {item} speaks of an item, and the step has no 'for_each'",
        "9:45 '{x}' is no place that can be filled in",
        "9:53 a lone '}' stands in the prompt",
        "10:13 step 'one' needs itself",
        "10:18 there is no step 'tow' to need",
        "11:17 'background' of step 'one' is text 'yes'",
        "12:9 steps wait for each other: two -> three -> two (-> means needs)",
        (
            "16:20 this is not a valid JSON Schema: "
            "\"objekt\" is not valid under any of the schemas listed in the 'anyOf' keyword"
        ),
        "20:15 the 'output' schema of step 'two' does not say that 'two' is an array",
        "21:21 'max_concurrent' of step 'three' is text '1_000'",
        "22:9 the step id 'two' was given on line 12",
        "24:13 'prompt' of step 'two' is empty",
        "25:26 'Write' is not an authority",
        "25:42 root '../x' climbs out of the workspace",
        "25:49 'lend' of step 'two' has no key 'rots'",
        "26:5 step 'two' has no key 'surprise'",
        "27:5 step 5 is text",
    ]


def test_the_error_counts_its_faults_and_puts_each_on_a_line() -> None:
    with pytest.raises(PlanError) as refused:
        parse_plan("name: w\n", "w.yaml")
    assert str(refused.value) == (
        "2 faults:\n"
        "w.yaml:1:1: the workflow lacks the key 'agents'. Add 'agents:' with a mapping.\n"
        "w.yaml:1:1: the workflow lacks the key 'steps'. Add 'steps:' with a list."
    )


@pytest.mark.parametrize(
    "wrong, remedy",
    [
        ("nmae: w", "Did you mean 'name'?"),
        ("zzz: w", "Known are: agents, description, name, steps."),
    ],
)
def test_an_unknown_key_is_answered_with_the_nearest_one(wrong: str, remedy: str) -> None:
    faults = faults_of(f"{wrong}\n{AGENTS}steps: []\n")
    assert faults[0].remedy == remedy


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", "1:1 the file is empty"),
        ("# only a comment\n", "1:1 the file is empty"),
        ("name: w\nagents:\n\ta: 1\n", "3:1 a tab stands where YAML wants spaces"),
        ("name: one: two\n", "1:10 this is not YAML: mapping values are not allowed here"),
        (
            "name: [1, 2\n",
            "2:1 this is not YAML: expected ',' or ']', but got '<stream end>' while parsing a flow sequence",
        ),
        ("name: w\n---\nname: v\n", "2:1 a second document begins here"),
        ("name: &x w\n", "1:7 anchors and aliases are not accepted"),
        ("name: *x\n", "1:7 anchors and aliases are not accepted"),
        ("- 1\n", "1:1 the file is a list"),
        ("words\n", "1:1 the file is text"),
        ("name: w\x00\n", "1:8 the character U+0000 may not stand in YAML"),
        ('a: b\nname: "\\UFFFFFFFF"\n', "2:1 behind this stands something that YAML cannot hold"),
        ("name: " + "[" * 40 + "]" * 40 + "\n", "1:38 the nesting is deeper than 32"),
        ("x" * (1024 * 1024 + 1), "1:1 the file is longer than 1048576 characters"),
    ],
)
def test_text_that_is_not_one_plain_yaml_mapping_is_told_where_it_stops_being_one(text: str, expected: str) -> None:
    assert told(text) == [expected]


def test_aliases_cannot_make_a_small_file_large() -> None:
    bomb = "a: &a [x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    assert told(bomb) == ["1:4 anchors and aliases are not accepted"]


@pytest.mark.parametrize(
    "name, expected",
    [
        ("!!int w", "1:7 the tag 'tag:yaml.org,2002:int' is not accepted"),
        ("!!python/object:os.system w", "1:7 the tag 'tag:yaml.org,2002:python/object:os.system' is not accepted"),
        ('"\\ud800"', "1:7 the text holds half of a character pair"),
        ("", "1:6 'name' of the workflow has no value"),
        ("' '", "1:7 'name' of the workflow is empty"),
        ("[w]", "1:7 'name' of the workflow is a list"),
        ("{w: w}", "1:7 'name' of the workflow is a mapping"),
    ],
)
def test_a_name_that_is_no_plain_text_is_a_fault(name: str, expected: str) -> None:
    rest = AGENTS.removeprefix("name: w\n") + "steps: [{id: s, agent: a, prompt: p}]\n"
    assert told(f"name: {name}\n{rest}") == [expected]


@pytest.mark.parametrize(
    "keys, expected",
    [
        ("id: »1a", "'1a' is not a step id"),
        ("id: »a.b", "'a.b' is not a step id"),
        ("id: »[s]", "'id' of step 1 is a list"),
        ("id: s, needs: »s2", "'needs' of step 's' is text 's2'"),
        ("id: s, needs: [»[a]]", "'needs[]' of step 's' is a list"),
        ("id: s, needs: [s2, »s2]", "'s2' is twice in 'needs' of step 's'"),
        ("id: s, needs: [s2, »'']", "'needs[]' of step 's' is text ''"),
        ("id: s, background: »'true'", "'background' of step 's' is text 'true'"),
        ("id: s, background: »[]", "'background' of step 's' is a list"),
        ("id: s, max_concurrent: »3", "'max_concurrent' says nothing without 'for_each'"),
        ("id: s, output: »string", "'output' of step 's' is text 'string'"),
        ("id: s, output: {minimum: »1_0}", 'this is not a valid JSON Schema: "1_0" is not of type "number"'),
        ("id: s, output: {default: »1e999}", "the number 1e999… is too large"),
        (f"id: s, output: {{default: »{'9' * 65}}}", f"the number {'9' * 20}… is too large"),
        ("id: s, output: {default:» }", "this key of the schema has no value"),
        ("id: s, lend: »{}", "'lend' of step 's' lends nothing"),
        ("id: s, lend: »[]", "'lend' of step 's' is a list"),
        ("id: s, for_each: »s", "step 's' goes over its own output"),
        ("id: s, for_each: »nope.files", "there is no step 'nope' to go over"),
        ("id: s, for_each: »'s2..x'", "'s2..x' is not a path to an output"),
        ("id: s, for_each: »s2", "step 's2' has no 'output' schema, so 's2' is not known to be an array"),
        ("id: s, for_each: »plan", "the 'output' schema of step 'plan' does not say that 'plan' is an array"),
        ("id: s, for_each: »plan.n", "the 'output' schema of step 'plan' does not say that 'plan.n' is an array"),
        (
            "id: s, for_each: »plan.nope",
            "the 'output' schema of step 'plan' does not say that 'plan.nope' is an array",
        ),
        ("id: s, for_each: plan.files, max_concurrent: »0", "'max_concurrent' of step 's' is text '0'"),
        ("id: s, for_each: plan.files, max_concurrent: »1001", "'max_concurrent' of step 's' is text '1001'"),
        ("id: s, for_each: plan.files, max_concurrent: »'3'", "'max_concurrent' of step 's' is text '3'"),
    ],
)
def test_a_step_with_one_fault_gets_that_fault_at_its_place_and_no_other(keys: str, expected: str) -> None:
    steps = f"  - {{{keys}, agent: a, prompt: p}}\n"
    column = steps.index("»") + 1
    text = f"{AGENTS}steps:\n{steps.replace('»', '')}{PLAN}  - {{id: s2, agent: a, prompt: p}}\n"
    assert told(text) == [f"5:{column} {expected}"]


@pytest.mark.parametrize(
    "prompt, expected",
    [
        ("{steps.plan.nope}", "{steps.plan.nope} is not in the 'output' schema of step 'plan'"),
        ("{steps.plan.n.x}", "{steps.plan.n.x} is not in the 'output' schema of step 'plan'"),
        ("{steps.text.x}", "{steps.text.x} speaks of a part of an output that is plain text"),
        ("{steps.txet}", "{steps.txet} speaks of an unknown step 'txet'"),
        ("{steps.later}", "{steps.later} speaks of step 'later', which need not be done by then"),
        ("{steps.s}", "{steps.s} speaks of step 's', which need not be done by then"),
        ("{steps}", "'{steps}' is no place that can be filled in"),
        ("{item.}", "'{item.}' is no place that can be filled in"),
        ("{item.nope}", "{item.nope} is not in the items of 'plan.files'"),
        ("{item.path.0}", None),
        ("{item.path} {item} {steps.plan} {steps.plan.files.0.path} {steps.text} {{x}}", None),
    ],
)
def test_a_prompt_may_only_speak_of_what_will_be_there(prompt: str, expected: str | None) -> None:
    text = (
        f"{AGENTS}steps:\n{PLAN}"
        "  - {id: text, agent: a, prompt: p}\n"
        f"  - {{id: s, agent: a, needs: [text], for_each: plan.files, prompt: 'x {prompt}'}}\n"
        "  - {id: later, agent: a, prompt: p, needs: [s]}\n"
    )
    if expected is None:
        assert len(parse_plan(text, "w.yaml").steps) == 4
    else:
        column = text.splitlines()[6].index(prompt) + 1
        assert told(text) == [f"7:{column} {expected}"]


def test_a_fault_in_a_prompt_of_several_lines_is_placed_in_its_line() -> None:
    text = f"{AGENTS}steps:\n  - id: s\n    agent: a\n    prompt: |\n      first\n      and {{itme}}\n"
    assert told(text) == ["9:11 '{itme}' is no place that can be filled in"]


def test_a_fault_in_a_prompt_whose_braces_are_escaped_is_placed_where_the_prompt_begins() -> None:
    text = f'{AGENTS}steps: [{{id: s, agent: a, prompt: "\\x7bitme}}"}}]\n'
    assert told(text) == ["4:35 '{itme}' is no place that can be filled in"]


def test_the_output_of_a_for_each_step_is_a_list() -> None:
    steps = f"steps:\n{PLAN}  - {{id: each, agent: a, for_each: plan.files, prompt: p}}\n"
    over = "  - {id: over, agent: a, for_each: each, prompt: '{item} {steps.each.0}'}\n"
    assert parse_plan(AGENTS + steps + over, "w.yaml").steps[2].needs == ("each",)
    assert told(AGENTS + steps + over.replace("{item}", "{item.x}")) == ["7:51 {item.x} is not in the items of 'each'"]


@pytest.mark.parametrize(
    "schema",
    [
        "{$ref: '#/$defs/l', $defs: {l: {type: array}}}",
        "{$ref: '#/$defs/a~1b', $defs: {a/b: {$ref: '#/$defs/l'}, l: {type: [array]}}}",
    ],
)
def test_an_array_behind_local_references_is_an_array(schema: str) -> None:
    text = f"{AGENTS}steps:\n  - {{id: p, agent: a, prompt: p, output: {schema}}}\n"
    assert parse_plan(f"{text}  - {{id: s, agent: a, prompt: p, for_each: p}}\n", "w.yaml").steps[1].for_each == "p"


@pytest.mark.requirement("B18")
@pytest.mark.parametrize(
    "schema", ["{$ref: '#'}", "{$ref: '#/$defs/a', $defs: {a: {$ref: '#/$defs/b'}, b: {$ref: '#/$defs/a'}}}"]
)
def test_a_schema_that_refers_to_itself_is_read_to_an_end(schema: str) -> None:
    text = f"{AGENTS}steps:\n  - {{id: p, agent: a, prompt: p, output: {schema}}}\n"
    over = f"{text}  - {{id: s, agent: a, prompt: '{{steps.p.x.y}}', for_each: p}}\n"
    assert [fault.partition(" ")[2] for fault in told(over)] == [
        "the 'output' schema of step 'p' does not say that 'p' is an array"
    ]


@pytest.mark.requirement("B18")
@pytest.mark.parametrize("reference", ["file:///etc/passwd", "http://localhost:1/x", "#/nowhere"])
def test_a_schema_that_is_not_all_here_is_a_fault_and_nothing_is_fetched(reference: str) -> None:
    text = f"{AGENTS}steps:\n  - {{id: p, agent: a, prompt: p, output: {{$ref: '{reference}'}}}}\n"
    assert [fault.partition(":")[2] for fault in told(text)] == [told(text)[0].partition(":")[2]]
    assert "this is not a valid JSON Schema" in told(text)[0]


def test_cycles_are_named_in_full() -> None:
    steps = "".join(
        f"  - {{id: {name}, agent: a, prompt: p, needs: [{need}]}}\n"
        for name, need in (("a", "b"), ("b", "c"), ("c", "a"), ("x", "y"), ("y", "x"), ("free", "a"))
    )
    told_cycles = [fault.partition(": ")[2] for fault in told(f"{AGENTS}steps:\n{steps}")]
    assert sorted(told_cycles) == ["a -> b -> c -> a (-> means needs)", "x -> y -> x (-> means needs)"]


def test_too_many_steps_are_refused() -> None:
    steps = "".join(f"  - {{id: s{number}, agent: a, prompt: p}}\n" for number in range(1001))
    assert told(f"{AGENTS}steps:\n{steps}") == ["5:3 'steps' has 1001 steps"]
    assert told(f"{AGENTS}steps: []\n") == ["4:8 'steps' has 0 steps"]
    assert told("name: w\nagents: {}\nsteps: [{id: s, agent: a, prompt: p}]\n")[0] == "2:9 'agents' has 0 agents"


@given(st.text(alphabet="ab:-[]{}#&*!|>'\"%@`,? \n\t\\u0x", max_size=60))
def test_no_text_whatsoever_ends_in_anything_but_a_plan_or_its_faults(text: str) -> None:
    with pytest.raises(PlanError):
        parse_plan(text, "w.yaml")


def loaded(path: Path) -> list[str]:
    with pytest.raises(PlanError) as refused:
        load_plan(path)
    return [str(fault) for fault in refused.value.faults]


def test_a_workflow_file_that_cannot_be_read_is_one_fault(tmp_path: Path) -> None:
    remedy = "Name a YAML file of at most 1 MiB."
    missing, folder, pipe, large, latin = (tmp_path / name for name in ("missing", "folder", "pipe", "large", "latin"))
    folder.mkdir()
    os.mkfifo(pipe)
    large.write_bytes(b"#" * (1024 * 1024 + 1))
    latin.write_bytes(b"name: w\nx: caf\xe9\n")
    assert loaded(missing) == [f"{missing}:1:1: {missing} cannot be read: no such file. {remedy}"]
    assert loaded(folder) == [f"{folder}:1:1: {folder} cannot be read: it is a directory, not a regular file. {remedy}"]
    assert loaded(pipe) == [f"{pipe}:1:1: {pipe} cannot be read: it is a fifo, not a regular file. {remedy}"]
    assert "the file holds 1048577 bytes" in loaded(large)[0]
    assert loaded(latin) == [f"{latin}:2:7: the file is not UTF-8 text. Save it as UTF-8."]
    assert "root cannot be opened" in loaded(tmp_path / "nowhere" / "w.yaml")[0]


def test_faults_of_agent_files_are_told_with_those_of_the_workflow(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "out.yaml").write_text("role: run\ninstructions: i\n", encoding="utf-8")
    (tmp_path / "w" / "bad.yaml").write_text("role: run\nfile: x.yaml\n", encoding="utf-8")
    (tmp_path / "w" / "broken.yaml").write_text("role: [\n", encoding="utf-8")
    (tmp_path / "w" / "list.yaml").write_text("- role\n", encoding="utf-8")
    (tmp_path / "w" / "latin.yaml").write_bytes(b"\xe9")
    workflow = tmp_path / "w" / "w.yaml"
    workflow.write_text(
        "name: w\n"
        "agents:\n"
        "  a: {file: ../out.yaml}\n"
        f"  b: {{file: {tmp_path}/w/bad.yaml}}\n"
        "  c: {file: bad.yaml, role: run}\n"
        "  d: {file: broken.yaml}\n"
        "  e: {file: list.yaml}\n"
        "  f: {file: latin.yaml}\n"
        "  g: {file: missing.yaml}\n"
        "  h: text\n"
        "steps: [{id: s, agent: a, prompt: p, needs: [t]}]\n",
        encoding="utf-8",
    )
    at = f"{tmp_path}/w"
    assert [line.removeprefix(at).partition(". ")[0] for line in loaded(workflow)] == [
        f"/w.yaml:3:13: {at}/../out.yaml cannot be read: only paths under the workspace root are allowed",
        f"/w.yaml:4:13: '{at}/bad.yaml' is absolute",
        "/w.yaml:5:23: agent 'c', which has a file, has no key 'role'",
        f"/w.yaml:9:13: {at}/missing.yaml cannot be read: no such file",
        "/w.yaml:10:6: agent 'h' is text",
        "/w.yaml:11:46: there is no step 't' to need",
        "/bad.yaml:1:1: agent 'c' lacks the key 'instructions'",
        "/bad.yaml:2:1: agent 'c' has no key 'file'",
        (
            "/broken.yaml:2:1: this is not YAML: "
            "expected the node content, but found '<stream end>' while parsing a flow node"
        ),
        "/latin.yaml:1:1: the file is not UTF-8 text",
        "/list.yaml:1:1: the file is a list",
    ]


def test_an_agent_file_without_a_directory_to_look_in_is_a_fault() -> None:
    text = "name: w\nagents: {a: {file: a.yaml}}\nsteps: [{id: s, agent: a, prompt: p}]\n"
    assert told(text) == ["2:20 agent files cannot be read here"]
