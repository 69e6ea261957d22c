"""Sizes that may only shrink: measures both packages and compares with what ratchets.toml records.

A place within its limit is not recorded. A place beyond it is recorded with its exact number, so a worse number fails
and a better one fails too until it is written down. ``python -m tests.contracts.ratchets --write`` writes it down;
without the flag the text is printed.
"""

from __future__ import annotations

import argparse
import ast
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from tests.contracts.tree import PACKAGES, ROOT, place, sources, syntax

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORD = Path(__file__).with_name("ratchets.toml")
LIMITS = {
    "file_lines": 300,
    "function_lines": 45,
    "class_methods": 10,
    "constructor_arguments": 7,
    "type_ignores": 0,
    "broad_excepts": 0,
}
HEAD = """\
# Places beyond the limits of ratchets.py, each with its exact number. A number may only fall.
# Written by: python -m tests.contracts.ratchets --write
"""
BROAD = {"BaseException", "Exception"}
TYPE_IGNORE = re.compile(r"#\s*type:\s*ignore")


def definitions(node: ast.AST, path: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Every class and function beneath *node* with its dotted path, outermost first."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{path}.{inner.name}" if path else inner.name
            yield name, inner
            yield from definitions(inner, name)
        else:
            yield from definitions(inner, path)


def methods(owner: ast.ClassDef) -> int:
    """How many methods *owner* writes; dunder methods and overload signatures are not counted."""
    return sum(
        isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
        and not inner.name.startswith("__")
        and not any(ast.unparse(decorator).endswith("overload") for decorator in inner.decorator_list)
        for inner in owner.body
    )


def arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many arguments *function* takes besides self."""
    given = function.args
    return len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs) - 1


def fields(owner: ast.ClassDef) -> int:
    """How many fields an attrs class or a Struct declares; 0 for any other class."""
    attrs_class = any(ast.unparse(decorator).startswith("attrs.") for decorator in owner.decorator_list)
    struct = any(ast.unparse(base).endswith("Struct") for base in owner.bases)
    if not (attrs_class or struct):
        return 0
    return sum(
        isinstance(inner, ast.AnnAssign)
        and "ClassVar" not in ast.unparse(inner.annotation)
        and "init=False" not in ast.unparse(inner)
        for inner in owner.body
    )


def exported() -> set[str]:
    """The names in the ``__all__`` of both packages, read without importing them."""
    names: set[str] = set()
    for package in PACKAGES:
        for node in ast.walk(syntax(ROOT / package / "__init__.py")):
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                names.update(ast.literal_eval(node.value))
    return names


def broad_excepts(function: ast.AST) -> int:
    """How many handlers of *function* itself catch everything and do not raise it again at their end."""
    count = 0
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        waiting.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.ExceptHandler) and catches_all(node):
            last = node.body[-1]
            count += not (isinstance(last, ast.Raise) and last.exc is None)
    return count


def catches_all(handler: ast.ExceptHandler) -> bool:
    """Tell whether *handler* is bare or names Exception or BaseException."""
    if handler.type is None:
        return True
    named = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(ast.unparse(name) in BROAD for name in named)


def sizes(path: Path, public: set[str]) -> Iterator[tuple[str, str, int]]:
    """Every measure of *path* as (ratchet, place, number)."""
    text, where = path.read_text(encoding="utf-8"), place(path)
    yield "file_lines", where, len(text.splitlines())
    yield "type_ignores", where, len(TYPE_IGNORE.findall(text))
    yield "broad_excepts", where, broad_excepts(syntax(path))
    for name, node in definitions(syntax(path)):
        spot = f"{where}::{name}"
        if isinstance(node, ast.ClassDef):
            yield "class_methods", spot, methods(node)
            if node.name in public:
                yield "constructor_arguments", spot, fields(node)
            yield "broad_excepts", spot, broad_excepts(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield "function_lines", spot, (node.end_lineno or node.lineno) - node.lineno + 1
            yield "broad_excepts", spot, broad_excepts(node)
            if node.name == "__init__":
                yield "constructor_arguments", spot, arguments(node)


def measure() -> dict[str, dict[str, int]]:
    """Every place beyond its limit, by ratchet, sorted."""
    public = exported()
    beyond: dict[str, dict[str, int]] = {ratchet: {} for ratchet in LIMITS}
    for path in sources():
        for ratchet, spot, number in sizes(path, public):
            if number > LIMITS[ratchet]:
                beyond[ratchet][spot] = max(number, beyond[ratchet].get(spot, 0))
    return {ratchet: dict(sorted(spots.items())) for ratchet, spots in beyond.items()}


def recorded() -> dict[str, dict[str, int]]:
    """What ratchets.toml holds."""
    return tomllib.loads(RECORD.read_text(encoding="utf-8"))


def render(beyond: dict[str, dict[str, int]]) -> str:
    """The text of ratchets.toml for *beyond*."""
    parts = [HEAD]
    for ratchet, spots in beyond.items():
        parts.append(f"\n[{ratchet}] # limit {LIMITS[ratchet]}\n")
        parts.extend(f'"{spot}" = {number}\n' for spot, number in spots.items())
    return "".join(parts)


def main() -> None:
    """Print the text, or write it where the test reads it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="rewrite ratchets.toml")
    if parser.parse_args().write:
        RECORD.write_text(render(measure()), encoding="utf-8")
    else:
        print(render(measure()), end="")


if __name__ == "__main__":
    main()
