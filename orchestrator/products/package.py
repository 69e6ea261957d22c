"""The package that a product file stands in, and what ``run: package.module:attribute`` names in it.

Only modules of the product's own package can be named: a product file never reaches for code of anybody else.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from actors.errors import ActorError
from actors.tools import Tool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["Package", "Unreachable", "attribute_at", "package_at"]

REFERENCE = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)", re.ASCII)
BROKEN = (ImportError, SyntaxError, AttributeError, NameError, TypeError, ValueError, KeyError, OSError, ActorError)


class Unreachable(Exception):
    """What ``run`` names cannot be taken: *message* says why, *remedy* what would help."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message, remedy)
        self.message = message
        self.remedy = remedy


@attrs.frozen
class Package:
    """A package by its dotted *name* (empty: the folder is no package) and the *folder* it lies in."""

    name: str
    folder: Path


def package_at(folder: Path) -> Package:
    """Return the package that *folder* is. Imports nothing; looks for ``__init__.py`` in it and above it."""
    parts: list[str] = []
    here = folder
    while here.name and (here / "__init__.py").is_file():
        parts.append(here.name)
        here = here.parent
    return Package(".".join(reversed(parts)), folder)


def attribute_at(reference: str, package: Package | None) -> Tool | Callable[..., Awaitable[Any]]:
    """Return the tool or the async function that *reference* names in *package*; its module is imported.

    Raises `Unreachable`: it is not of the form, not in the package, cannot be imported, or is something else.
    """
    match = REFERENCE.fullmatch(reference)
    if match is None:
        raise Unreachable(f"{reference[:100]!r} names no attribute of a module", "Write it like package.module:name.")
    module, attribute = match.groups()
    if package is None or not package.name:
        raise Unreachable("the product file stands in no package", "Put an __init__.py beside it.")
    if module != package.name and not module.startswith(f"{package.name}."):
        remedy = f"Name a module beneath {package.name}."
        raise Unreachable(f"{module!r} is not in the product's own package", remedy)
    _check_place(package)
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except BROKEN as error:
        raise Unreachable(f"{module!r} cannot be imported: {type(error).__name__}: {error}", "Mend it.") from error
    if isinstance(found, Tool) or inspect.iscoroutinefunction(found):
        return found
    if found is None:
        raise Unreachable(f"{module!r} has no {attribute!r}", "Correct the name.")
    raise Unreachable(f"{reference!r} is neither a tool nor an async function", "Name one.")


def _check_place(package: Package) -> None:
    """Raise `Unreachable` unless importing *package* by its name leads to its folder."""
    try:
        spec = importlib.util.find_spec(package.name)
    except BROKEN:
        spec = None
    places = [] if spec is None else [os.path.realpath(place) for place in spec.submodule_search_locations or ()]
    if os.path.realpath(package.folder) not in places:
        remedy = "Install it, or start where it can be imported."
        raise Unreachable(f"the product's package {package.name!r} cannot be imported from here", remedy)
