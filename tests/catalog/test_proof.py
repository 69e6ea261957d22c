"""A tool's refusal counts as tested when one test holds the tool's name and a code by which that tool is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from actors import Access
from actors.states import WorkflowState
from actors.tools import Approval
from orchestrator.catalog.audit import audit
from orchestrator.catalog.proof import UnreadableTests, refusal_codes, texts_of_tests
from orchestrator.denials import CODES
from tests.catalog.catalogs import declared, subject, tool

if TYPE_CHECKING:
    from pathlib import Path

PUT = declared("put", authorities=("a.b",), access=Access.WRITE)


def untested(folder: Path, text: str) -> list[str]:
    """The tools whose refusal no test in *text* asserts."""
    (folder / "test_it.py").write_text(text, encoding="utf-8")
    found = audit(subject(PUT, declared("look")), tests=texts_of_tests(folder))
    return [finding.tool for finding in found.findings if finding.kind == "untested_refusal"]


@pytest.mark.parametrize(
    "text",
    [
        "def test_a():\n    assert run('put') == 'authority_missing'\n",
        "async def test_a():\n    assert await run('put') == 'access_exceeded'\n",
        "class TestIt:\n    def test_a(self):\n        assert run('put') == 'grant_expired'\n",
        "@mark.parametrize('name', ['put'])\ndef test_a(name):\n    assert run(name) == 'authority_missing'\n",
    ],
)
def test_a_test_with_the_name_and_a_code_of_the_tool_shows_its_refusal(tmp_path: Path, text: str) -> None:
    assert untested(tmp_path, text) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "def test_a():\n    assert run('put') == 'done'\n",
        "def test_a():\n    assert run('other') == 'authority_missing'\n",
        "def test_a():\n    assert run('put')\ndef test_b():\n    assert run('x') == 'authority_missing'\n",
        "def test_a():\n    assert run('put') == 'context_missing'\n",
        "def check():\n    assert run('put') == 'authority_missing'\n",
        "def test_a():\n    'put is authority_missing'\n",
        "# def test_a(): run('put') == 'authority_missing'\n",
    ],
)
def test_anything_less_does_not(tmp_path: Path, text: str) -> None:
    assert untested(tmp_path, text) == ["put"]


def test_only_files_of_tests_are_read(tmp_path: Path) -> None:
    text = "def test_a():\n    assert run('put') == 'authority_missing'\n"
    (tmp_path / "sample.py").write_text(text, encoding="utf-8")
    assert texts_of_tests(tmp_path) == ()
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "it_test.py").write_text(text, encoding="utf-8")
    assert texts_of_tests(tmp_path) == (frozenset({"put", "authority_missing"}),)


def test_without_tests_to_look_at_nothing_is_said_of_them() -> None:
    assert "untested_refusal" not in audit(subject(PUT)).kinds()
    assert "untested_refusal" in audit(subject(PUT), tests=()).kinds()


def test_a_file_that_is_no_python_and_a_folder_that_is_not_there_are_told(tmp_path: Path) -> None:
    with pytest.raises(UnreadableTests, match="is no folder"):
        texts_of_tests(tmp_path / "none")
    (tmp_path / "test_it.py").write_text("def test_a(:\n", encoding="utf-8")
    with pytest.raises(UnreadableTests, match=r"test_it\.py cannot be read"):
        texts_of_tests(tmp_path)
    (tmp_path / "test_it.py").write_bytes(b"x = '\xff'\n")
    with pytest.raises(UnreadableTests, match=r"test_it\.py cannot be read"):
        texts_of_tests(tmp_path)


@pytest.mark.parametrize(
    "more, gate",
    [
        ({"authorities": ("a.b",)}, 7),
        ({"access": Access.EXTERNAL}, 8),
        ({"needs": ("z",)}, 9),
        ({"approval": Approval.EACH_CALL}, 14),
    ],
)
def test_the_codes_of_a_tool_are_those_of_the_gates_that_its_declaration_asks(more: dict[str, Any], gate: int) -> None:
    assert refusal_codes(tool("t"), states=False) == frozenset()
    assert refusal_codes(tool("t", **more), states=False) == {code for code, (at, *_) in CODES.items() if at == gate}
    assert refusal_codes(tool("t", **more), states=True) >= {"stale_state"}


def test_a_state_makes_even_a_reading_tool_refusable() -> None:
    states = (WorkflowState("one", ("look",)),)
    found = audit(subject(declared("look"), states=states), tests=())
    assert [finding.tool for finding in found.findings] == ["look"]
