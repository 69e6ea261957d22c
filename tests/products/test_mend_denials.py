"""`mend` with agents that try what they may not: nothing of it happens, all of it is told, the work is done."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from actors import Access, AgentDefinition, Grants, Role, ToolSet
from actors.messages import ModelReply, Results, Said
from orchestrator.agent import Agent
from orchestrator.models.function import FunctionModel, as_reply, call
from orchestrator.products.mend import playbook
from orchestrator.products.mend.product import PRODUCT
from orchestrator.products.mend.tools import MEND_TOOLS
from orchestrator.runtime import Principal, RuntimeConfig
from orchestrator.testing import ScriptedModel
from orchestrator.workflows.load import parse_plan
from orchestrator.workflows.run import WorkflowRun
from tests.core.stage import calls, results
from tests.products.tree import FILES, held, plant

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from actors.ports import ModelRequest

DIFF = '--- a/clean.py\n+++ b/clean.py\n@@ -1,3 +1,1 @@\n-"""Fine."""\n-\n X = 1\n'
LATE = '  - {id: late, agent: fixer, needs: [judge], prompt: "Late: once more."}\n'


def patching(path: str = "clean.py", diff: str = DIFF) -> Any:
    return call("diff_patch_workspace_file", path=path, diff=diff)


def first_trying(play: Callable[[ModelRequest], Any], *calls: Any) -> Callable[[ModelRequest], Any]:
    """An agent that makes *calls* at the start of each turn, forgets them, and then does its work."""

    def trying(request: ModelRequest) -> Any:
        begin = max(at for at, item in enumerate(request.history) if isinstance(item, Said))
        after = request.history[begin + 1 :]
        if not any(isinstance(item, ModelReply) for item in after):
            return list(calls)
        reply = next(at for at, item in enumerate(after) if isinstance(item, ModelReply))
        results = next(at for at, item in enumerate(after) if isinstance(item, Results))
        kept = tuple(item for at, item in enumerate(after) if at not in (reply, results))
        return play(msgspec.structs.replace(request, history=(*request.history[: begin + 1], *kept)))

    return trying


def fixer(request: ModelRequest) -> Any:
    """The fixer, which in a turn of a step of its own, that lends nothing, writes all the same."""
    turn = playbook.Turn(request)
    if turn.text.startswith("Late"):
        return '"done"' if turn.steps else [patching()]
    return playbook.fix(request)


PLAYS: dict[str, Any] = {
    "builder": first_trying(playbook.build, patching(), call("read_file", path="/etc/passwd")),
    "run": first_trying(playbook.run, patching()),
    "mender": first_trying(playbook.mend, patching(), call("read_file", path="link.py")),
    "reviewer": first_trying(playbook.review, patching(), call("lint_file", path="clean.py")),
    "fixer": fixer,
}


async def report_of(root: Path, plays: dict[str, Any]) -> dict[str, Any]:
    """The report of a run of the product, with a late turn of the fixer, under other agents."""
    pool = {tool.name: tool for tool in PRODUCT.tools}
    plan = parse_plan(PRODUCT.workflow.read_text() + LATE, "mend.yaml", pool=pool)
    config = RuntimeConfig(FunctionModel(plays), limits=PRODUCT.limits, workspace=root)
    async with asyncio.timeout(20), WorkflowRun(plan, pool, config) as run:
        result = await run.run()
        told = PRODUCT.report(run.state, await run.entries(), result)
    found: dict[str, Any] = json.loads(told.json)
    found["markdown"] = told.markdown
    return found


def refused(report: dict[str, Any]) -> set[tuple[str, str, str]]:
    """Agent, tool and code of each denial."""
    return {(d["actor"].rpartition("/")[2].rpartition("-")[0], d["tool"], d["code"]) for d in report["denials"]}


@pytest.mark.requirement("I6", "I7", "B03", "B76")
async def test_whoever_tries_what_it_may_not_is_refused_told_why_and_listed(tmp_path: Path) -> None:
    root = plant(tmp_path / "tree")
    report = await report_of(root, PLAYS)
    assert refused(report) == {
        ("builder", "diff_patch_workspace_file", "unknown_tool"),
        ("builder", "read_file", "path_outside_workspace"),
        ("run", "diff_patch_workspace_file", "unknown_tool"),
        ("mender", "diff_patch_workspace_file", "unknown_tool"),
        ("mender", "read_file", "path_outside_workspace"),
        ("reviewer", "diff_patch_workspace_file", "unknown_tool"),
        ("reviewer", "lint_file", "unknown_tool"),
        ("fixer", "diff_patch_workspace_file", "authority_missing"),
    }
    assert all(d["count"] == 1 and d["first"] == d["last"] and d["message"] for d in report["denials"])
    for denial in report["denials"]:
        assert f"- {denial['actor']}, {denial['tool']}, 1 times: " in report["markdown"]
    assert held(root)["clean.py"] == FILES["clean.py"]


async def test_the_work_comes_to_the_same_fates_as_without_the_attempts(tmp_path: Path) -> None:
    plain = {"builder": playbook.build, "run": playbook.run, "mender": playbook.mend, "reviewer": playbook.review}
    one, two = plant(tmp_path / "one" / "tree"), plant(tmp_path / "two" / "tree")
    calm = await report_of(one, {**plain, "fixer": fixer})
    tried = await report_of(two, PLAYS)
    keys = ("place", "code", "fate", "reason")
    assert [[item[k] for k in keys] for item in calm["items"]] == [[item[k] for k in keys] for item in tried["items"]]
    assert held(one) == held(two)
    assert len(calm["denials"]) == 1


@pytest.mark.requirement("B76")
async def test_a_fixer_reaches_nothing_outside_the_tree_however_it_spells_the_path(tmp_path: Path) -> None:
    root = plant(tmp_path / "tree")
    outside = (tmp_path / "outside.py").read_bytes()
    paths = ("../outside.py", str(tmp_path / "outside.py"), "link.py", "odd pkg/../../outside.py", "./link.py")
    attempts = [patching(path, f"--- a/{path}\n+++ b/{path}\n@@ -1,1 +0,0 @@\n-import os\n") for path in paths]
    report = await report_of(root, {**PLAYS, "fixer": first_trying(playbook.fix, *attempts)})
    lent = [d for d in report["denials"] if "/fixer" in d["actor"] and d["code"] != "authority_missing"]
    assert {d["code"] for d in lent} == {"path_outside_workspace"}
    made = Counter({turn: sum(d["count"] for d in lent if d["turn"] == turn) for turn in {d["turn"] for d in lent}})
    assert made == dict.fromkeys(made, len(paths))
    assert len(made) == len({d["actor"] for d in lent}) == 3
    assert (tmp_path / "outside.py").read_bytes() == outside


async def test_equal_refusals_of_one_turn_are_one_line_with_their_number(tmp_path: Path) -> None:
    root = plant(tmp_path / "tree")
    report = await report_of(root, {**PLAYS, "builder": first_trying(playbook.build, *[patching()] * 3)})
    mine = [d for d in report["denials"] if "/builder" in d["actor"]]
    assert [(d["tool"], d["count"]) for d in mine] == [("diff_patch_workspace_file", 3)]
    assert mine[0]["first"] < mine[0]["last"]


async def test_agents_that_answer_nonsense_fail_their_steps_and_the_report_still_holds_what_is_known(
    tmp_path: Path,
) -> None:
    for number, agent in enumerate(("builder", "run", "mender", "reviewer", "fixer")):
        root = plant(tmp_path / str(number) / "tree")
        report = await report_of(root, {**PLAYS, "fixer": playbook.fix, agent: lambda _: as_reply("nonsense")})
        assert report["verdict"] in ("failed", "accepted")
        assert sum(report["fates"].values()) == len(report["items"])
        if agent == "mender":
            assert len(report["failed_files"]) == report["files"]
        assert held(root)["unsafe.py"] == FILES["unsafe.py"]


async def test_a_finding_that_an_agent_words_in_its_own_way_keeps_its_words(tmp_path: Path) -> None:
    def mender(request: ModelRequest) -> Any:
        turn = playbook.Turn(request)
        if not turn.steps:
            return [call("record_finding", subject="odd", message="I do not like it", place="somewhere")]
        return playbook.answer(findings=1, proposals=[])

    report = await report_of(plant(tmp_path / "tree"), {**PLAYS, "mender": mender})
    assert {(i["place"], i["message"], i["fate"]) for i in report["items"]} == {
        ("somewhere", "I do not like it", "no fix")
    }


async def test_each_tool_of_the_job_is_refused_to_an_actor_that_may_not_read_the_workspace(tmp_path: Path) -> None:
    asked = [call("run_linter"), call("lint_file", path="a.py"), call("verify_tree")]
    asked += [call("read_fix", fix=1), call("try_fix", fix=1)]
    definition = AgentDefinition("outsider", Role.CHILD, tools=ToolSet(direct=MEND_TOOLS))
    stranger = Principal(grants=Grants(("elsewhere.*",), Access.EXTERNAL, (".",)))
    model = ScriptedModel(outsider=[calls(*asked), "end"])
    config = RuntimeConfig(model, stranger, workspace=tmp_path)
    async with asyncio.timeout(10), Agent(definition, config) as agent, agent.start() as session:
        await session.run("go")
    refused = {(result.name, result.denial.code) for result in results(model.requests[1]) if result.denial}
    names = {"run_linter", "lint_file", "verify_tree", "read_fix", "try_fix"}
    assert refused == {(name, "authority_missing") for name in names}
