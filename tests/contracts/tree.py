"""The tree of our code as the contracts see it: files, module names, syntax, and what each file imports."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("actors", "orchestrator")


def sources() -> list[Path]:
    """Every Python file of both packages, sorted."""
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def place(path: Path) -> str:
    """The path of a file as the recorded lists write it: relative to the root, with forward slashes."""
    return path.relative_to(ROOT).as_posix()


def module_name(path: Path) -> str:
    """The dotted name under which *path* is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def syntax(path: Path) -> ast.Module:
    """The parsed file; parsed once a run."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def modules() -> dict[str, Path]:
    """Every module of both packages, by dotted name."""
    return {module_name(path): path for path in sources()}


def is_package(name: str) -> bool:
    """Tell whether the module *name* of ours is a folder."""
    return (ROOT / Path(*name.split("."))).is_dir()


def defined(path: Path) -> set[str]:
    """The names that *path* itself defines at its top level; imported ones are not among them."""
    found: set[str] = set()
    for node in syntax(path).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update(target.id for target in targets if isinstance(target, ast.Name))
    return found


def type_checking_only(tree: ast.Module) -> set[ast.stmt]:
    """The statements that only a type checker executes."""
    guarded: set[ast.stmt] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            guarded.update(inner for inner in ast.walk(node) if isinstance(inner, ast.Import | ast.ImportFrom))
    return guarded


def imports(path: Path, *, running: bool = False) -> list[tuple[int, str, str | None]]:
    """Every import of *path*, wherever it stands, as (line, module, name taken from it or None).

    With *running*, those that only a type checker sees are left out.
    """
    tree = syntax(path)
    left_out = type_checking_only(tree) if running else set()
    found: list[tuple[int, str, str | None]] = []
    for node in ast.walk(tree):
        if node in left_out:
            continue
        if isinstance(node, ast.Import):
            found.extend((node.lineno, alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = absolute(path, node)
            found.extend((node.lineno, origin, alias.name) for alias in node.names)
    return found


def absolute(path: Path, node: ast.ImportFrom) -> str:
    """The dotted module that a from-import names, relative ones resolved against *path*."""
    if not node.level:
        return node.module or ""
    package = list(path.relative_to(ROOT).parts[:-1])
    base = package[: len(package) - node.level + 1]
    return ".".join([*base, *(node.module or "").split(".")]).rstrip(".")


def imported_modules(path: Path, *, running: bool = False) -> set[str]:
    """The dotted modules that *path* imports; a name that is itself a module of ours counts as that module."""
    known = modules()
    found = set()
    for _, module, name in imports(path, running=running):
        inner = f"{module}.{name}"
        found.add(inner if inner in known else module)
    return found
