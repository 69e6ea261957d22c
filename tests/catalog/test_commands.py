"""``orchestrator audit`` and ``orchestrator explain`` as people and CI call them: what they print, and exit codes."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from orchestrator.cli.main import call

MANIFEST = """\
name: shop
agents:
  clerk: {role: builder, instructions: Help., tools: [look, push]}
tools:
  - {name: look, description: See. Not for more., access: read}
  - {name: push, description: Push it., access: read, needs: [workspace], annotations: {readOnlyHint: false}}
callers:
  chat: {agent: clerk}
"""
WORKFLOW = """\
name: tidy
agents:
  planner: {role: builder, instructions: Name the files., tools: [list_files], children: [editor]}
  editor: {role: fixer, instructions: Apply it., tools: [read_file, diff_patch_workspace_file]}
steps:
  - {id: plan, agent: planner, prompt: "Which?"}
  - {id: edit, agent: editor, needs: [plan], prompt: Mend., lend: {authorities: [workspace.write], roots: [src]}}
"""


@pytest.fixture
def shop(tmp_path: Path) -> str:
    """A product file with one good tool and one that is misdeclared, silent and out of reach."""
    path = tmp_path / "product.yaml"
    path.write_text(MANIFEST, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    "options, code",
    [
        ((), 0),
        (("--fail-on", "over_budget"), 0),
        (("--fail-on", "misdeclared"), 1),
        (("--fail-on", "over_budget, misdeclared"), 1),
        (("--fail-on", "any"), 1),
        (("--budget", "10", "--fail-on", "over_budget"), 1),
        (("--budget", "0"), 2),
        (("--fail-on", "misdeclare"), 2),
        (("--tests", "nowhere-at-all"), 2),
        (("--html", "nowhere-at-all/page.html"), 2),
    ],
)
def test_an_audit_ends_with_0_or_1_as_asked_and_with_2_for_bad_usage(
    shop: str, options: tuple[str, ...], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["audit", shop, *options]) == code
    printed = capsys.readouterr()
    assert bool(printed.err) is (code == 2)
    assert ("misdeclared (1)" in printed.out) is (code != 2)


def test_an_unknown_kind_is_answered_with_the_nearest(shop: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["audit", shop, "--fail-on", "misdeclare"]) == 2
    assert "Did you mean 'misdeclared'?" in capsys.readouterr().err


def test_json_goes_to_standard_output_and_the_page_to_its_file(
    shop: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert call(["audit", shop, "--json", "--html", str(page)]) == 0
    told = msgspec.json.decode(capsys.readouterr().out)
    assert told["actors"]["chat"]["push"]["code"] == "context_missing"
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_tests_are_looked_at_only_when_named(shop: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_it.py").write_text("def test_a(): assert run('push') == 'context_missing'\n", encoding="utf-8")
    assert call(["audit", shop, "--tests", str(tmp_path), "--fail-on", "untested_refusal"]) == 0
    (tmp_path / "test_it.py").write_text("def test_a(): assert run('push') == 1\n", encoding="utf-8")
    assert call(["audit", shop, "--tests", str(tmp_path), "--fail-on", "untested_refusal"]) == 1
    assert "no test asserts how push is refused" in capsys.readouterr().out


@pytest.mark.parametrize("what", ["open-catlog", "nowhere.yaml"])
@pytest.mark.parametrize("command", [("audit",), ("explain", "--actor", "a", "--tool", "t")])
def test_what_is_not_there_is_told_with_what_is(
    what: str, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert call([command[0], what, *command[1:]]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert ("open-catalog" in printed.err) or ("nowhere.yaml:1:1: " in printed.err)


def test_a_workflow_file_is_audited_with_what_its_steps_lend_as_situations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tidy.yaml"
    path.write_text(WORKFLOW, encoding="utf-8")
    assert call(["audit", str(path), "--json", "--fail-on", "no_actor"]) == 0
    told = msgspec.json.decode(capsys.readouterr().out)
    assert list(told["actors"]) == ["planner", "editor"]
    assert told["actors"]["editor"]["diff_patch_workspace_file"]["missing"] == ["workspace.write"]
    assert told["totals"]["actors"]["editor"]["situations"] == {"step edit": ["diff_patch_workspace_file"]}
    assert told["actors"]["planner"]["list_files"]["permitted"]
    assert told["actors"]["planner"]["read_file"]["code"] == "unknown_tool"


TESTS = str(Path(__file__).parents[1])


@pytest.mark.parametrize("product", ["mend", "open-catalog", "support-desk"])
def test_every_shipped_product_is_audited_and_each_of_its_refusals_is_tested(
    product: str, capsys: pytest.CaptureFixture[str]
) -> None:
    clean = "unresolved_name,over_budget,untested_refusal"
    assert call(["audit", product, "--tests", TESTS, "--fail-on", clean]) == 0
    assert "tools, " in capsys.readouterr().out


def test_an_explanation_walks_the_gates_and_ends_with_0_whatever_the_answer_is(
    shop: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["explain", shop, "--actor", "chat", "--tool", "push"]) == 0
    assert ">  9 deny" in capsys.readouterr().out
    assert call(["explain", shop, "--actor", "chat", "--tool", "lok", "--json"]) == 0
    told = msgspec.json.decode(capsys.readouterr().out)
    assert (told["code"], "look" in told["gates"][1]["remedy"]) == ("unknown_tool", True)


def test_what_a_review_lends_is_a_situation_of_its_fixer_and_reviewers_are_audited_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    review = "    review: {by: critic, fix_by: editor, lend: {authorities: [workspace.write], roots: [src]}}\n"
    path = tmp_path / "tidy.yaml"
    path.write_text(
        "name: tidy\nagents:\n  planner: {role: builder, instructions: i, tools: [list_files]}\n"
        "  critic: {role: reviewer, instructions: i, tools: [read_file]}\n"
        "  editor: {role: fixer, instructions: i, tools: [diff_patch_workspace_file]}\n"
        f"steps:\n  - id: plan\n    agent: planner\n    prompt: p\n{review}",
        encoding="utf-8",
    )
    assert call(["audit", str(path), "--json", "--fail-on", "no_actor"]) == 0
    told = msgspec.json.decode(capsys.readouterr().out)
    assert list(told["actors"]) == ["planner", "critic", "editor"]
    assert told["totals"]["actors"]["editor"]["situations"] == {"fixes of step plan": ["diff_patch_workspace_file"]}
    assert told["actors"]["critic"]["read_file"]["permitted"]
    path.write_text(path.read_text().replace(", lend: {authorities: [workspace.write], roots: [src]}", ""))
    assert call(["audit", str(path), "--json"]) == 0
    assert msgspec.json.decode(capsys.readouterr().out)["totals"]["actors"]["editor"]["situations"] == {}


def test_an_explanation_may_ask_about_a_situation_and_a_wrong_name_is_answered_with_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    base = ["explain", "open-catalog", "--actor", "voice", "--tool", "computer_run", "--json"]
    assert call([*base, "--situation", "paired"]) == 0
    assert msgspec.json.decode(capsys.readouterr().out)["permitted"] is True
    assert call([*base, "--situation", "pared"]) == 2
    assert "Did you mean 'paired'?" in capsys.readouterr().err
    assert call(["explain", "open-catalog", "--actor", "vice", "--tool", "read"]) == 2
    assert "Did you mean 'voice'?" in capsys.readouterr().err
    assert call([*base, "--state", "one"]) == 2
