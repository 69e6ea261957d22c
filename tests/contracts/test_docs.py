"""The documents' Python runs: every block of README.md and ARCHITECTURE.md, each in a process of its own.

A block opened with ```` ```python no-run ```` needs what a test has not got, and is only compiled.
"""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

from orchestrator.workflows.load import parse_plan
from orchestrator.workspace.toolset import WORKSPACE_TOOLS
from tests.contracts.tree import ROOT

if TYPE_CHECKING:
    from pathlib import Path

DOCUMENTS = ("README.md", "ARCHITECTURE.md")
SECONDS = 30
FENCE = re.compile(r"^```python(?P<flag>[^\n]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
YAML = re.compile(r"^```yaml\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = {"", "no-run"}


class Block(NamedTuple):
    """One Python block: where its code begins, whether it runs, and the code."""

    document: str
    line: int
    flag: str
    code: str

    def padded(self) -> str:
        """The code, moved down so that a traceback names the document's own line."""
        return "\n" * (self.line - 1) + self.code


def blocks_of(document: str, text: str) -> list[Block]:
    """The Python blocks of *text* in order."""
    return [
        Block(document, text.count("\n", 0, found.start("code")) + 1, found["flag"].strip(), found["code"])
        for found in FENCE.finditer(text)
    ]


def blocks() -> list[Block]:
    return [block for name in DOCUMENTS for block in blocks_of(name, (ROOT / name).read_text(encoding="utf-8"))]


def run(block: Block, folder: Path) -> str:
    """Run *block* in an empty folder with warnings as errors; return what went wrong, or nothing."""
    script = folder / f"{block.document}.{block.line}.py"
    script.write_text(block.padded(), encoding="utf-8")
    inside = script.with_suffix(".folder")
    inside.mkdir()
    try:
        done = subprocess.run(
            [sys.executable, "-W", "error", str(script)],
            cwd=inside,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return f"{block.document}:{block.line} did not end in {SECONDS} s"
    return "" if done.returncode == 0 else f"{block.document}:{block.line} failed:\n{done.stderr}"


def test_every_python_block_that_may_run_runs(tmp_path: Path) -> None:
    faults = [fault for block in blocks() if not block.flag and (fault := run(block, tmp_path))]
    assert not faults, "\n".join(faults)


def test_every_python_block_compiles_and_carries_no_unknown_flag() -> None:
    found = blocks()
    assert {block.flag for block in found} <= FLAGS
    for block in found:
        compile(block.padded(), block.document, "exec")


def test_the_readmes_workflow_is_a_plan_also_with_what_is_said_of_reviews_and_servers() -> None:
    parts = [found["code"] for found in YAML.finditer((ROOT / "README.md").read_text(encoding="utf-8"))]
    whole, servers, review = sorted(parts, key=lambda part: ("name:" not in part, "review:" in part))
    pool = {tool.name: tool for tool in WORKSPACE_TOOLS}
    assert [step.id for step in parse_plan(whole, "README.md", pool=pool).steps] == ["plan", "each", "edit"]
    agents = (
        "agents:\n  critic: {role: reviewer, instructions: Judge.}\n  clerk:\n    role: run\n    instructions: Work.\n"
    )
    step = f"{review}  - id: each\n"
    text = whole.replace("agents:\n", agents + servers, 1).replace("  - id: each\n", step, 1)
    plan = parse_plan(text, "README.md", pool=pool)
    assert [source.name for source in plan.agents[1].sources] == ["git", "search"]
    assert plan.steps[0].review is not None


def test_the_readme_opens_with_code_that_runs() -> None:
    assert next(block for block in blocks() if block.document == "README.md").flag == ""


def test_a_block_is_found_with_its_line_and_flag_and_other_languages_are_left_alone() -> None:
    text = "a\n```sh\nls\n```\n```python\nx = 1\n```\n\n```python no-run\ny\n```\n"
    assert blocks_of("d", text) == [Block("d", 6, "", "x = 1\n"), Block("d", 10, "no-run", "y\n")]


def test_a_block_that_raises_is_reported_with_the_documents_line(tmp_path: Path) -> None:
    assert "line 7" in run(Block("d", 7, "", "1 / 0\n"), tmp_path)
