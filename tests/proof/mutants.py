"""Small changes to a module's syntax tree, one at a time: what a good test should notice.

Comparisons and signs are turned around, conditions negated, constants moved, returns emptied, statements removed,
elements of tables dropped. Texts for people (whatever has a blank in it), docstrings and annotations are left alone.
"""

from __future__ import annotations

import ast
import difflib
import itertools
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Mutant", "mutants_of"]

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
REMOVABLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.Delete, ast.Raise, ast.Continue, ast.Break)


@attrs.frozen
class Mutant:
    """One change: the file, its line, the line's text, what was changed; *place* is its number in *source*."""

    file: str
    line: int
    text: str
    change: str
    place: int = attrs.field(eq=False)
    source: str = attrs.field(eq=False, repr=False)

    @property
    def key(self) -> tuple[str, str, str]:
        """What names the mutant, wherever its line moves to."""
        return self.file, self.text, self.change

    def tree(self) -> ast.Module:
        """Return the module's tree with the change in it."""
        tree = ast.parse(self.source)
        node, _, edit = next(itertools.islice(changes(tree), self.place, None))
        edit(node)
        return ast.fix_missing_locations(tree)

    def diff(self) -> str:
        """Return the lines that the change is about, before and after."""
        before, after = ast.unparse(ast.parse(self.source)), ast.unparse(self.tree())
        lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
        return "\n".join(list(lines)[2:])


def mutants_of(file: str, source: str) -> list[Mutant]:
    """Every mutant of a module. Two equal changes on equal lines have a number each."""
    lines = source.splitlines()
    found: list[Mutant] = []
    seen: dict[tuple[str, str], int] = {}
    for place, (node, change, _) in enumerate(changes(ast.parse(source))):
        line = getattr(node, "lineno", 1)
        text = lines[line - 1].strip()
        count = seen[text, change] = seen.get((text, change), 0) + 1
        numbered = change if count == 1 else f"{change} (number {count})"
        found.append(Mutant(file, line, text, numbered, place, source))
    return found


def changes(tree: ast.Module) -> Iterator[tuple[ast.AST, str, Callable[[Any], None]]]:
    """Yield each place that can be changed: the node, the change in words, and how to change it."""
    for node in visited(tree):
        yield from operator_changes(node)
        yield from value_changes(node)
        yield from statement_changes(node)
        yield from table_changes(node)


def visited(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield every node that runs: no annotations, docstrings, imports, ``__all__`` or type-checking blocks."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop(0)
        yield node
        inner: list[ast.AST] = []
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            inner.extend(item for item in (value if isinstance(value, list) else [value]) if isinstance(item, ast.AST))
        waiting[:0] = [item for item in inner if not skipped(item)]


def skipped(node: ast.AST) -> bool:
    """Whether nothing in *node* is worth a change."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.JoinedStr):
        return True
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(ast.unparse(target) in ("__all__", "__slots__") for target in targets)


def name_of(operator: type[ast.AST]) -> str:
    """An operator as it is called in a change."""
    return operator.__name__.lower()


def operator_changes(node: ast.AST) -> Iterator[tuple[ast.AST, str, Callable[[Any], None]]]:
    """Comparisons, and/or, signs, and conditions negated."""
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            other = OPERATORS.get(type(operator))
            if other is not None:
                yield node, f"{name_of(type(operator))} becomes {name_of(other)}", swap_comparison(place, other)
    elif isinstance(node, ast.BoolOp | ast.BinOp | ast.AugAssign):
        other = OPERATORS.get(type(node.op))
        if other is not None:
            yield node, f"{name_of(type(node.op))} becomes {name_of(other)}", swap_operator(other)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, "not is dropped", drop_not
    if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.Compare):
        yield node, "the condition is negated", negate


def swap_comparison(place: int, other: type[ast.AST]) -> Callable[[Any], None]:
    """How to put another operator into a comparison."""

    def edit(node: Any) -> None:
        node.ops[place] = other()

    return edit


def swap_operator(other: type[ast.AST]) -> Callable[[Any], None]:
    """How to put another operator between two operands."""

    def edit(node: Any) -> None:
        node.op = other()

    return edit


def drop_not(node: Any) -> None:
    """``not x`` becomes ``not not x``: the truth of x itself."""
    node.operand = ast.UnaryOp(ast.Not(), node.operand)


def negate(node: Any) -> None:
    """The other branch is taken."""
    node.test = ast.UnaryOp(ast.Not(), node.test)


def value_changes(node: ast.AST) -> Iterator[tuple[ast.AST, str, Callable[[Any], None]]]:
    """Constants moved, returns emptied."""
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool):
            yield node, f"{value} becomes {not value}", set_value(not value)
        elif isinstance(value, int | float):
            yield node, f"{value} becomes {value + 1}", set_value(value + 1)
        elif isinstance(value, str) and " " not in value:
            yield node, f"{value!r} becomes {value + '~'!r}", set_value(value + "~")
    elif isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
        yield node, "None is returned", return_none


def set_value(value: object) -> Callable[[Any], None]:
    """How to put another constant in."""

    def edit(node: Any) -> None:
        node.value = value

    return edit


def return_none(node: Any) -> None:
    """Nothing comes back."""
    node.value = ast.Constant(None)


def statement_changes(node: ast.AST) -> Iterator[tuple[ast.AST, str, Callable[[Any], None]]]:
    """Statements removed."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if not isinstance(block, list) or isinstance(node, ast.Module | ast.ClassDef):
            continue
        for place, statement in enumerate(block):
            if isinstance(statement, REMOVABLE) and not skipped(statement):
                yield statement, "the statement is removed", passed(node, field, place)


def passed(parent: ast.AST, field: str, place: int) -> Callable[[Any], None]:
    """How to put ``pass`` in the place of a statement."""

    def edit(_: Any) -> None:
        getattr(parent, field)[place] = ast.Pass()

    return edit


def table_changes(node: ast.AST) -> Iterator[tuple[ast.AST, str, Callable[[Any], None]]]:
    """Elements of sets, and entries of dictionaries, dropped."""
    if isinstance(node, ast.Set):
        for place, element in enumerate(node.elts):
            yield node, f"{ast.unparse(element)} is dropped", drop(place, "elts")
    elif isinstance(node, ast.Dict):
        for place, key in enumerate(node.keys):
            name = "**" if key is None else ast.unparse(key)
            yield (key or node), f"the entry {name} is dropped", drop_entry(node, place)


def drop(place: int, field: str) -> Callable[[Any], None]:
    """How to drop one element."""

    def edit(node: Any) -> None:
        del getattr(node, field)[place]
        if not node.elts:
            node.elts.append(ast.Starred(ast.Tuple([], ast.Load()), ast.Load()))

    return edit


def drop_entry(table: ast.Dict, place: int) -> Callable[[Any], None]:
    """How to drop one entry of a dictionary."""

    def edit(_: Any) -> None:
        del table.keys[place]
        del table.values[place]

    return edit
