"""The workspace tools as an agent has them: refused early by the bridge, refused again by the tool, told in words."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from actors.definition import AgentDefinition, ToolSet
from actors.grants import Access, Grants
from actors.messages import CallFinished, Outcome, ToolResult
from actors.roles.role import Role
from actors.tools import Reconciled
from orchestrator.agent import Agent
from orchestrator.journal.records import CallIntended
from orchestrator.models.function import FunctionModel, call
from orchestrator.runtime import Principal, RuntimeConfig
from orchestrator.workspace.patch import make
from orchestrator.workspace.roots import Workspace
from orchestrator.workspace.toolset import WORKSPACE_TOOLS
from tests.core.stage import written
from tests.supervision.scene import script

if TYPE_CHECKING:
    from pathlib import Path

    from actors.messages import ToolCall

BEFORE = "one\ntwo\nthree\n"
AFTER = "one\n2\nthree\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a.txt").write_text(BEFORE)
    (tmp_path / "secret.txt").write_text("secret\n")
    (tree / "out.txt").symlink_to(tmp_path / "secret.txt")
    return tree


def boss(role: Role = Role.BUILDER) -> AgentDefinition:
    tools = WORKSPACE_TOOLS[:2] if role is Role.REVIEWER else WORKSPACE_TOOLS
    return AgentDefinition("boss", role, tools=ToolSet(direct=tools))


async def did(
    root: Path | None, *calls: ToolCall, grants: Grants | None = None, definition: Any = None
) -> list[ToolResult]:
    """The results of *calls*, made one after the other."""
    config: dict[str, Any] = {} if grants is None else {"principal": Principal(grants=grants)}
    runtime = RuntimeConfig(FunctionModel({"boss": script(*calls, "done")}), workspace=root, **config)
    async with asyncio.timeout(5), Agent(definition or boss(), runtime) as agent, agent.start() as session:
        await session.run("go")
        intended = {intent.call for intent in await written(session, CallIntended)}
        results = [record.result for record in await written(session, CallFinished)]
    refused = {r.call_id for r in results if r.denial is not None}
    assert not intended & refused
    return results


def patch(path: str, before: str = BEFORE, after: str = AFTER) -> ToolCall:
    return call("diff_patch_workspace_file", path=path, diff=make(before, after, path))


async def test_a_file_is_read_listed_and_patched(root: Path) -> None:
    results = await did(
        root, call("read_file", path="a.txt", start_line=2, max_lines=1), call("list_files"), patch("a.txt")
    )
    assert [result.outcome for result in results] == [Outcome.OK] * 3
    assert results[0].text == "a.txt: lines 2-2 of 3\ntwo"
    assert "a.txt (14)" in results[1].text
    assert (root / "a.txt").read_text() == AFTER


@pytest.mark.requirement("B76", "I7")
@pytest.mark.parametrize("path", ["../secret.txt", "/etc/passwd", "out.txt", "x/../../secret.txt", "a\x00b", ""])
async def test_a_path_outside_is_refused_before_any_tool_begins(root: Path, path: str) -> None:
    reading, listing, writing = await did(
        root, call("read_file", path=path), call("list_files", path=path), patch("a.txt", "secret\n", "known\n")
    )
    for result in (reading, listing):
        assert result.outcome is Outcome.DENIED
        assert result.denial is not None
        assert result.denial.code == "path_outside_workspace"
        assert "secret\n" not in result.text
    assert writing.outcome is Outcome.ERROR
    outside = call("diff_patch_workspace_file", path=path, diff=make("secret\n", "known\n", "x"))
    (result,) = await did(root, outside)
    assert result.denial is not None
    assert result.denial.code == "path_outside_workspace"
    assert (root.parent / "secret.txt").read_text() == "secret\n"


async def test_a_diff_that_does_not_fit_is_told_to_the_model_and_changes_nothing(root: Path) -> None:
    (result,) = await did(root, patch("a.txt", "other\n", "text\n"))
    assert result.outcome is Outcome.ERROR
    assert "a.txt" in result.text
    assert (root / "a.txt").read_text() == BEFORE


@pytest.mark.requirement("I6")
async def test_writing_reaches_only_beneath_the_roots_that_are_held_and_reading_reaches_all(root: Path) -> None:
    (root / "src").mkdir()
    (root / "src" / "b.txt").write_text(BEFORE)
    grants = Grants(("workspace.read", "workspace.write"), Access.WRITE, ("src",))
    results = await did(root, patch("a.txt"), patch("src/b.txt"), call("read_file", path="a.txt"), grants=grants)
    assert results[0].denial is not None
    assert results[0].denial.code == "path_outside_workspace"
    assert [result.outcome for result in results[1:]] == [Outcome.OK, Outcome.OK]
    assert (root / "a.txt").read_text() == BEFORE
    assert (root / "src" / "b.txt").read_text() == AFTER


async def test_without_a_workspace_every_tool_says_what_is_missing() -> None:
    for result in await did(None, call("read_file", path="a.txt"), call("list_files"), patch("a.txt")):
        assert result.denial is not None
        assert result.denial.code == "context_missing"


@pytest.mark.parametrize(
    "arguments, part",
    [
        ({"path": 3}, "path"),
        ({}, "path"),
        ({"path": "a.txt", "lines": 3}, "lines"),
        ({"path": "a.txt", "start_line": "1"}, "start_line"),
    ],
)
async def test_arguments_of_another_shape_are_refused_by_name(root: Path, arguments: dict[str, Any], part: str) -> None:
    (result,) = await did(root, call("read_file", **arguments))
    assert result.denial is not None
    assert result.denial.code == "invalid_arguments"
    assert part in result.text


@pytest.mark.parametrize("lines, start", [(0, 1), (2001, 1), (1, 0), (1, 99)])
async def test_a_range_that_is_not_there_is_answered_in_words(root: Path, lines: int, start: int) -> None:
    (result,) = await did(root, call("read_file", path="a.txt", start_line=start, max_lines=lines))
    assert result.outcome is Outcome.ERROR
    assert "Give start_line from 1" in result.text


@pytest.mark.parametrize(
    "stands, found",
    [(AFTER, Reconciled.HAPPENED), (BEFORE, Reconciled.DID_NOT_HAPPEN), ("x\n", Reconciled.UNKNOWN)],
)
async def test_the_patch_tool_finds_out_by_itself_whether_a_patch_happened(
    root: Path, stands: str, found: Reconciled
) -> None:
    (root / "a.txt").write_text(stands)
    tool = WORKSPACE_TOOLS[2]

    class Context:
        workspace = Workspace(root)

    assert tool.reconcile is not None
    assert await tool.reconcile(Context(), {"path": "a.txt", "diff": make(BEFORE, AFTER, "a.txt")}) is found
    assert (root / "a.txt").read_text() == stands


def test_only_the_patch_tool_writes_and_each_tool_says_what_it_is_not_for() -> None:
    assert [tool.access for tool in WORKSPACE_TOOLS] == [Access.READ, Access.READ, Access.WRITE]
    assert all("workspace.read" in tool.authorities and tool.needs == {"workspace"} for tool in WORKSPACE_TOOLS)
    assert all(tool.targets == {"path"} for tool in WORKSPACE_TOOLS)
    assert all("Not for" in tool.description for tool in WORKSPACE_TOOLS)
