"""``run`` connects a tool with a function of the product's own package, and with nothing else."""

from __future__ import annotations

import itertools
import sys
from typing import TYPE_CHECKING

import pytest

from actors import Access, Tool
from orchestrator.products.manifest import Manifest, ManifestError, load_manifest

if TYPE_CHECKING:
    from pathlib import Path

NUMBERS = itertools.count()
CODE = '''\
from actors import Access, ToolContext, tool


async def look(context: ToolContext, what: str, near: int = 1) -> str:
    """See a thing. Not for more."""
    return f"{what} {near}"


@tool(access=Access.WRITE, authorities=("shop.push",))
async def push(what: str) -> str:
    """Push a thing. Never twice."""
    return f"pushed {what}"


def plain() -> None:
    """Not async."""


NUMBER = 3
'''


class Shop:
    """A package of its own that can be imported, with the text of a tool for its product file."""

    def __init__(self, folder: Path) -> None:
        self.name = f"shop_of_tests_{next(NUMBERS)}"
        self.folder = folder / self.name
        self.folder.mkdir()
        (self.folder / "__init__.py").write_text('"""A shop."""\n', encoding="utf-8")
        (self.folder / "tools.py").write_text(CODE, encoding="utf-8")
        (self.folder / "broken.py").write_text("import nothing_of_that_name\n", encoding="utf-8")

    def load(self, tool: str) -> Manifest:
        """The product whose only tool is written like this; SHOP in it is the package's name."""
        name = tool.partition("name: ")[2].partition(",")[0]
        path = self.folder / "product.yaml"
        agents = f"agents:\n  clerk: {{role: builder, instructions: Help., tools: [{name}]}}\n"
        text = f"name: shop\n{agents}tools:\n  - {{{tool.replace('SHOP', self.name)}}}\n"
        path.write_text(text, encoding="utf-8")
        return load_manifest(path)

    def tool(self, tool: str) -> Tool:
        """The only tool of that product."""
        return self.load(tool).tools[0].tool


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A shop on the import path."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return Shop(tmp_path)


async def ran(tool: Tool, **arguments: object) -> object:
    """What the tool's function answers."""
    assert tool.run is not None
    return await tool.run(None, arguments)  # type: ignore[arg-type]


async def test_a_function_gives_description_and_schema_where_the_file_has_none(shop: Shop) -> None:
    tool = shop.tool("name: look, run: 'SHOP.tools:look', access: read, authorities: [shop.look], needs: [workspace]")
    assert tool.description == "See a thing. Not for more."
    assert '"required":["what"]' in tool.input_schema
    assert '"near":{"default":1,"type":"integer"}' in tool.input_schema
    assert (tool.authorities, tool.needs) == (frozenset({"shop.look"}), frozenset({"workspace"}))
    assert await ran(tool, what="a") == "a 1"
    assert shop.load("name: look, run: 'SHOP.tools:look', access: read").tools[0].connected


async def test_the_files_own_description_and_schema_stand_before_the_functions(shop: Shop) -> None:
    schema = "input_schema: {type: object, required: [what], properties: {what: {enum: [a, b]}}}"
    tool = shop.tool(f"name: see, description: Sees. Never twice., run: 'SHOP.tools:look', access: read, {schema}")
    assert (tool.name, tool.description) == ("see", "Sees. Never twice.")
    assert tool.input_schema == '{"properties":{"what":{"enum":["a","b"]}},"required":["what"],"type":"object"}'
    assert await ran(tool, what="b") == "b 1"


async def test_a_tool_says_everything_itself_and_may_be_repeated_but_not_contradicted(shop: Shop) -> None:
    tool = shop.tool("name: push, run: 'SHOP.tools:push', access: write, authorities: [shop.push]")
    assert (tool.access, tool.authorities) == (Access.WRITE, frozenset({"shop.push"}))
    assert await ran(tool, what="x") == "pushed x"
    with pytest.raises(ManifestError) as refused:
        shop.load("name: push, run: 'SHOP.tools:push', access: read, authorities: [shop.other]")
    assert [fault.message.partition(" than")[0] for fault in refused.value.faults] == [
        "tool 'push' has another 'access'",
        "tool 'push' has another 'authorities'",
    ]


@pytest.mark.parametrize(
    "tool, fault",
    [
        ("name: t, access: read, run: 'os:remove'", "'os' is not in the product's own package"),
        ("name: t, access: read, run: 'actors.tools:tool'", "'actors.tools' is not in the product's own package"),
        ("name: t, access: read, run: 'SHOPx.tools:look'", "is not in the product's own package"),
        ("name: t, access: read, run: 'SHOP.tools.look'", "names no attribute of a module"),
        ("name: t, access: read, run: '..tools:look'", "names no attribute of a module"),
        ("name: t, access: read, run: 'SHOP.tools:lok'", "has no 'lok'"),
        ("name: t, access: read, run: 'SHOP.tools:plain'", "is neither a tool nor an async function"),
        ("name: t, access: read, run: 'SHOP.tools:NUMBER'", "is neither a tool nor an async function"),
        ("name: t, access: read, run: 'SHOP.broken:look'", "cannot be imported: ModuleNotFoundError"),
        ("name: t, access: read, run: 'SHOP.none:look'", "cannot be imported: ModuleNotFoundError"),
        ("name: t, run: 'SHOP.tools:look'", "lacks the key 'access'"),
        ("name: other, run: 'SHOP.tools:push'", "has another 'name' than the tool"),
        (
            "name: t, access: read, run: 'SHOP.tools:look', input_schema: {required: [what], properties: {z: {}}}",
            "an argument 'z' that the function does not take",
        ),
        (
            "name: t, access: read, run: 'SHOP.tools:look', input_schema: {properties: {what: {}}}",
            "does not require 'what', which the function needs",
        ),
    ],
)
def test_what_cannot_be_connected_is_a_fault_at_its_place(shop: Shop, tool: str, fault: str) -> None:
    with pytest.raises(ManifestError) as refused:
        shop.load(tool)
    assert fault in refused.value.faults[0].message
    assert (len(refused.value.faults), refused.value.faults[0].line) == (1, 5)


def test_a_module_outside_the_package_is_not_even_imported(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / f"{shop.name}_evil.py").write_text("raise SystemExit(9)\n", encoding="utf-8")
    with pytest.raises(ManifestError, match="is not in the product's own package"):
        shop.load("name: t, access: read, run: 'SHOP_evil:look'")
    assert f"{shop.name}_evil" not in sys.modules


def test_a_product_in_no_package_and_one_that_cannot_be_imported_connect_nothing(tmp_path: Path) -> None:
    far = Shop(tmp_path)
    with pytest.raises(ManifestError, match="cannot be imported from here"):
        far.load("name: t, access: read, run: 'SHOP.tools:look'")
    (far.folder / "__init__.py").unlink()
    with pytest.raises(ManifestError, match="stands in no package"):
        far.load("name: t, access: read, run: 'SHOP.tools:look'")


def test_another_package_of_the_same_name_is_not_taken_for_the_products_own(shop: Shop, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / shop.name
    copy.mkdir(parents=True)
    (copy / "__init__.py").write_text("", encoding="utf-8")
    shop.folder = copy
    with pytest.raises(ManifestError, match="cannot be imported from here"):
        shop.load("name: t, access: read, run: 'SHOP.tools:look'")
