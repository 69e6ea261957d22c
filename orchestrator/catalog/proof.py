"""Whether a test asserts a tool's refusals, read from the syntax of the tests; nothing of them is run.

A refusal counts as shown when one test function, its decorators included, holds the tool's name and one of the codes
by which that tool can be refused, each as a text of its own.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from actors.grants import Access
from actors.tools import Approval
from orchestrator.catalog.finding import Finding
from orchestrator.denials import CODES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from actors.tools import Tool
    from orchestrator.catalog.subject import Subject

__all__ = ["UnreadableTests", "refusal_codes", "refusal_findings", "texts_of_tests"]

STATE, AUTHORITY, ACCESS, REACH, TARGETS, APPROVAL = 5, 7, 8, 9, 11, 14


class UnreadableTests(ValueError):
    """A folder of tests, or a file in it, that cannot be read as Python."""


def texts_of_tests(folder: Path) -> tuple[frozenset[str], ...]:
    """Return, for each test function beneath *folder*, the texts written in it. Blocks. Raises `UnreadableTests`."""
    if not folder.is_dir():
        raise UnreadableTests(f"{folder} is no folder")
    found: list[frozenset[str]] = []
    for path in sorted(folder.rglob("*.py")):
        if not (path.name.startswith("test_") or path.stem.endswith("_test")):
            continue
        try:
            tree = ast.parse(path.read_bytes(), filename=str(path))
        except (OSError, SyntaxError, ValueError, RecursionError) as error:
            raise UnreadableTests(f"{path} cannot be read: {error}") from error
        found.extend(_texts(node) for node in ast.walk(tree) if _is_test(node))
    return tuple(found)


def _is_test(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")


def _texts(node: ast.AST) -> frozenset[str]:
    inner = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
    return frozenset(value for value in inner if isinstance(value, str))


def refusal_codes(tool: Tool, *, states: bool) -> frozenset[str]:
    """Return the codes by which *tool* can be refused for what it declares itself; *states* tells that there are any.

    None for a tool that only reads and asks for nothing: every caller that has it may call it.
    """
    asked = {
        STATE: states,
        AUTHORITY: bool(tool.authorities),
        ACCESS: tool.access is not Access.READ,
        REACH: bool(tool.needs),
        TARGETS: bool(tool.targets),
        APPROVAL: tool.approval is not Approval.NEVER,
    }
    return frozenset(code for code, (gate, *_) in CODES.items() if asked.get(gate, False))


def refusal_findings(subject: Subject, tests: tuple[frozenset[str], ...]) -> Iterator[Finding]:
    """Yield each tool that can be refused and whose refusal none of *tests* asserts."""
    for declared in subject.tools:
        tool = declared.tool
        codes = refusal_codes(tool, states=bool(subject.states))
        if codes and not any(tool.name in texts and texts & codes for texts in tests):
            message = f"no test asserts how {tool.name} is refused"
            remedy = f"Name it in a test together with one of: {', '.join(sorted(codes))}."
            yield Finding("untested_refusal", message, remedy, tool.name)
