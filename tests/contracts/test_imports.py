"""Who may import whom, where import-linter's contracts in pyproject.toml do not reach."""

from __future__ import annotations

import ast
import re
import tomllib

import pytest

from tests.contracts.tree import ROOT, defined, imported_modules, imports, is_package, module_name, modules, sources

PURE = (
    "actors.grants",
    "actors.loop",
    "orchestrator.policy",
    "orchestrator.restart",
    "orchestrator.turn",
    "orchestrator.journal.fold",
)
NOT_IN_PURE = {
    "anyio",
    "asyncio",
    "datetime",
    "logging",
    "os",
    "pathlib",
    "random",
    "structlog",
    "time",
    "uuid",
}
WAITING = {"anyio", "asyncio", "logging", "structlog"}
STORE_DRIVERS = {
    "orchestrator.journal.memory",
    "orchestrator.journal.postgres",
    "orchestrator.journal.sqlite",
    "sqlite3",
}
STORE_DRIVERS |= {"asyncpg"}


def linter_contracts() -> dict[str, dict[str, object]]:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {contract["id"]: contract for contract in table["tool"]["importlinter"]["contracts"]}


def layers(contract: str) -> list[str]:
    """The names of a layers contract, parentheses kept."""
    written = linter_contracts()[contract]["layers"]
    assert isinstance(written, list)
    return [name for layer in written for name in re.split(r"\s*[|:]\s*", layer)]


def files_and_folders(package: str) -> set[str]:
    names = {name.split(".")[1] for name in modules() if name.startswith(package + ".")}
    return names - {"__main__"}


@pytest.mark.parametrize("package", ["actors", "orchestrator"])
def test_every_file_and_folder_has_a_place_and_only_unbuilt_rooms_stand_in_parentheses(package: str) -> None:
    written = layers(f"{package}-layers")
    unbuilt = {name.strip("()") for name in written if name.startswith("(")}
    built = {name for name in written if not name.startswith("(")}
    assert built == files_and_folders(package)
    assert not unbuilt & files_and_folders(package)


@pytest.mark.parametrize("name", PURE)
def test_a_pure_module_exists_and_imports_nothing_that_waits_or_reads_the_world(name: str) -> None:
    path = modules()[name]
    tops = {module.split(".")[0] for module in imported_modules(path)}
    assert not tops & NOT_IN_PURE


@pytest.mark.parametrize("name", PURE)
def test_what_a_pure_module_imports_of_ours_does_not_wait_either(name: str) -> None:
    known = modules()
    seen: set[str] = set()
    open_names = [name]
    while open_names:
        current = open_names.pop()
        if current in seen or current not in known:
            continue
        seen.add(current)
        open_names.extend(imported_modules(known[current], running=True))
    waiting = {
        inner: sorted(tops)
        for inner in seen
        if (tops := {module.split(".")[0] for module in imported_modules(known[inner], running=True)} & WAITING)
    }
    assert waiting == {}


def test_inside_the_project_names_come_from_the_module_that_defines_them() -> None:
    known = modules()
    faults = [
        f"{path.relative_to(ROOT)}:{line} takes {name or 'the whole package'} from {module}"
        for path in sources()
        if path.name != "__init__.py"
        for line, module, name in imports(path)
        if module in known and is_package(module)
        if name is None or (f"{module}.{name}" not in known and name not in defined(known[module]))
    ]
    assert faults == []


def test_the_catalog_and_the_servers_never_reach_for_a_store_driver() -> None:
    faults = {
        module_name(path): sorted(taken)
        for path in sources()
        if module_name(path).startswith(("orchestrator.catalog", "orchestrator.serving"))
        and (taken := imported_modules(path) & STORE_DRIVERS)
    }
    assert faults == {}


def test_nothing_that_makes_a_package_public_is_hidden_behind_a_leading_underscore() -> None:
    hidden = [
        name for name in modules() if any(part.startswith("_") and part != "__main__" for part in name.split("."))
    ]
    assert hidden == []


def test_no_module_is_named_after_what_it_is_not() -> None:
    vague = {"base", "common", "core", "helper", "helpers", "manager", "misc", "types", "util", "utils"}
    assert [name for name in modules() if name.split(".")[-1] in vague] == []


def test_the_scan_sees_relative_and_nested_imports() -> None:
    tree = ast.parse("def f():\n    from os import path\n")
    inner = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert [node.module for node in inner] == ["os"]
    assert any(name == "msgspec" for path in sources() for name in imported_modules(path))
