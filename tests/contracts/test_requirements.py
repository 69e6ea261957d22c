"""Every requirement that is due has a test, and every test that names a requirement names a real one."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.contracts.requirements import CURRENT_STEP, REQUIREMENTS, UNTESTED
from tests.contracts.tree import ROOT

MARK = "pytest.mark.requirement"


def named_in(text: str) -> set[str]:
    """The ids in the requirement marks of one test file."""
    return {
        argument.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == MARK
        for argument in node.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }


def shown() -> dict[str, set[str]]:
    """Each id that some test names, with the files that do."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if path != Path(__file__):
            for name in named_in(path.read_text(encoding="utf-8")):
                found.setdefault(name, set()).add(path.relative_to(ROOT).as_posix())
    return found


def test_every_requirement_that_is_due_has_a_test() -> None:
    due = {line.id for line in REQUIREMENTS if line.step <= CURRENT_STEP}
    assert sorted(due - shown().keys()) == []


def test_every_requirement_that_a_test_names_is_written_down() -> None:
    known = {line.id for line in REQUIREMENTS}
    assert {name: sorted(files) for name, files in shown().items() if name not in known} == {}


def test_the_list_of_later_requirements_without_a_test_is_exact() -> None:
    later = {line.id for line in REQUIREMENTS if line.step > CURRENT_STEP}
    assert later - shown().keys() == UNTESTED


def test_a_requirement_has_an_id_of_its_own_and_one_sentence() -> None:
    ids = [line.id for line in REQUIREMENTS]
    assert len(set(ids)) == len(ids)
    assert [line.id for line in REQUIREMENTS if line.sentence.count(".") != 1 or not line.sentence.endswith(".")] == []


def test_a_mark_is_found_on_a_function_a_class_and_a_whole_file() -> None:
    text = (
        "pytestmark = pytest.mark.requirement('A')\n"
        "@pytest.mark.requirement('B', 'C')\nclass X:\n"
        "    @pytest.mark.requirement('D')\n    async def test_y(self): ...\n"
        "unrelated('E')\n"
    )
    assert named_in(text) == {"A", "B", "C", "D"}
