"""``open-catalog`` reproduces what the owners of the catalog published, cell by cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors import ToolFault
from actors.selection import Selector
from orchestrator.catalog.audit import audit
from orchestrator.catalog.report_json import report_json
from orchestrator.catalog.viewpoint import Viewpoint
from orchestrator.facts import Attempt
from orchestrator.policy import decide
from orchestrator.products.audited import shipped_manifest
from orchestrator.products.manifest import Manifest, load_manifest
from orchestrator.selection import choose
from tests.catalog.catalogs import caller, catalog_of

HERE = Path(__file__).parent
PATH = shipped_manifest("open-catalog")
assert PATH is not None
CATALOG: Manifest = load_manifest(PATH)
SUBJECT = CATALOG.subject()
FOUND = audit(SUBJECT)
REPORT: dict[str, Any] = msgspec.json.decode(report_json(FOUND))
# What the owners call a situation: its name here, and the code that a caller gets outside of it.
CONDITIONS = {"Yes, if paired": "paired", "operators only": "operator", "coding jobs only": "coding"}


def table(name: str, separator: str | None = None) -> list[list[str]]:
    """The rows of a recorded table."""
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.split(separator)] for line in lines if line and not line.startswith("#")]


def published() -> list[tuple[str, str, str]]:
    """Every cell of the published matrix: tool, caller, words."""
    head, *rows = table("open_catalog.matrix", "|")
    return [(row[0], name, word) for row in rows for name, word in zip(head[1:], row[1:], strict=True)]


def kinds(kind: str) -> list[str]:
    """The tools that were found with this kind."""
    return [finding.tool for finding in FOUND.findings if finding.kind == kind]


def test_the_published_matrix_has_148_cells() -> None:
    assert len(published()) == 148
    assert {(tool, actor) for tool, actor, _ in published()} == {
        (tool, actor) for actor, cells in REPORT["actors"].items() for tool in cells
    }


@pytest.mark.requirement("B93")
@pytest.mark.parametrize("tool, actor, words", published())
def test_each_cell_has_the_published_verdict_and_names_at_least_what_the_owners_name(
    tool: str, actor: str, words: str
) -> None:
    cell = REPORT["actors"][actor][tool]
    helping = [name for name, tools in REPORT["totals"]["actors"][actor]["situations"].items() if tool in tools]
    assert cell["permitted"] is (words == "Yes")
    if words == "Yes":
        assert (cell["code"], cell["missing"]) == (None, [])
    elif words in CONDITIONS:
        assert cell["code"] in {"authority_missing", "context_missing"}
        assert helping == [CONDITIONS[words]]
    elif words == "no receipt":
        assert (cell["code"], cell["missing"]) == ("approval_unavailable", [])
    else:
        lacking = {"authority" if "." in name else name for name in cell["missing"]}
        assert set(words.split(", ")) <= lacking
        assert cell["code"] == ("authority_missing" if "authority" in lacking else "context_missing")
        assert helping == []


def test_the_published_sizes_are_reproduced() -> None:
    totals = REPORT["totals"]
    assert (totals["tools"], totals["definition_bytes"]) == (37, 21_396)
    assert totals["selections"]["zero_base"]["definition_bytes"] == 3_410
    assert totals["selections"]["coding_intent"]["definition_bytes"] == 8_569
    assert len(totals["selections"]["coding_intent"]["tools"]) == 13


@pytest.mark.requirement("B93")
def test_seven_tools_can_run_nowhere_that_a_person_types() -> None:
    assert kinds("nowhere_typed") == [
        "read",
        "write",
        "edit",
        "bash",
        "publish_changes",
        "open_pull_request",
        "code_check",
    ]


def test_six_of_them_no_actor_can_run_in_any_situation() -> None:
    assert kinds("no_actor") == ["read", "write", "edit", "bash", "publish_changes", "open_pull_request"]
    assert kinds("always_refused") == kinds("no_actor")


def test_account_chat_can_run_ten_of_thirty_seven_and_not_twelve() -> None:
    assert REPORT["totals"]["actors"]["account_chat"]["permitted"] == 10
    assert {name: actor["permitted"] for name, actor in REPORT["totals"]["actors"].items()} == {
        "visitor_chat": 23,
        "account_chat": 10,
        "voice": 16,
        "work_job": 8,
    }


def test_three_tools_do_not_what_they_declare() -> None:
    assert sorted(kinds("misdeclared")) == ["box_new", "code_check", "deep_work"]


def test_nothing_is_unresolved_over_the_budget_or_silent_about_its_limits() -> None:
    assert FOUND.kinds().isdisjoint({"unresolved_name", "over_budget", "use_not_told"})


def test_the_published_selection_was_made_before_reach_and_ours_is_made_after() -> None:
    assert set(kinds("refused_selection")) == {"read", "scv_deploy", "computer_agent"}
    one = CATALOG.caller("voice")
    view = Viewpoint(one)
    verdicts = {t.name: decide(Attempt(t.name, call=False), view.facts(t.name)) for t in one.definition.offered}
    published_names = next(each.tools for each in SUBJECT.selections if each.name == "coding_intent")
    chosen = choose(Selector(top_k=0, always_include=published_names), catalog_of(one.definition, verdicts), "code")
    assert set(chosen.names) == set(published_names) - set(kinds("refused_selection"))


@pytest.mark.parametrize(
    "tool",
    [
        "module_discover",
        "github_repo_list",
        "github_repo_read",
        "read_repository_file",
        "list_repository_directory",
        "read",
        "write",
        "edit",
        "bash",
        "publish_changes",
        "open_pull_request",
        "conversation_search",
        "conversation_read",
        "memory_list",
        "memory_search",
        "memory_remember",
        "memory_correct",
        "memory_forget",
        "computer_list",
        "computer_probe",
        "computer_run",
        "computer_devin",
        "computer_agent",
        "deep_work",
        "incident_lookup",
        "repo_read",
        "repo_grep",
        "repo_list",
        "code_check",
        "repo_edit",
        "repo_write",
        "repo_commit_push",
        "scv_deploy",
        "box_new",
        "box_list",
        "box_exec",
        "box_stop",
    ],
)
async def test_each_tool_refuses_a_caller_without_its_authority_and_does_nothing_when_it_is_called(tool: str) -> None:
    bare = Viewpoint(caller(CATALOG.agent("assistant")))
    assert getattr(decide(Attempt(tool), bare.facts(tool)), "code", "") == "authority_missing"
    run = next(each.tool.run for each in CATALOG.tools if each.tool.name == tool)
    assert run is not None
    with pytest.raises(ToolFault, match=f"{tool} is declared here and connected nowhere"):
        await run(None, {})  # type: ignore[arg-type]
