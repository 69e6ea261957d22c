"""The public door as text: a sorted line for each public name and each public member, with its signature.

``python -m tests.contracts.public_api --write`` rewrites public_api.txt; without the flag it prints the text.
The text is the same on every supported Python.
"""

from __future__ import annotations

import argparse
import enum
import importlib
import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

MODULES = ("actors", "orchestrator", "orchestrator.testing")
RECORD = Path(__file__).with_name("public_api.txt")
INHERITED_FROM = ("actors", "orchestrator")


def public_names(module: str) -> list[str]:
    """The sorted names in ``__all__`` of *module*."""
    return sorted(importlib.import_module(module).__all__)


class Written(NamedTuple):
    """An annotation that prints as it was written, whether it was kept as text or as a value."""

    text: str

    def __repr__(self) -> str:
        return self.text


def annotation(value: object) -> object:
    """The annotation *value* as it is to be printed; the mark of an absent one is kept."""
    return Written(value) if isinstance(value, str) else value


def signature(value: Callable[..., object]) -> str:
    """How *value* is called."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(…)"
    arguments = [given.replace(annotation=annotation(given.annotation)) for given in found.parameters.values()]
    return stable(str(found.replace(parameters=arguments, return_annotation=annotation(found.return_annotation))))


def stable(text: str) -> str:
    """*text* without what differs between two runs or two Pythons: addresses, the order of sets, how enums print."""
    text = re.sub(r"<(\w+)[^<>]*? at 0x[0-9a-f]+>", r"<\1>", text)
    text = re.sub(r"<class '([^']+)'>", r"\1", text)
    text = re.sub(r"<(\w+\.\w+): [^<>]*>", r"\1", text)
    text = re.sub(r"= NOTHING\b", "= …", text)
    return re.sub(r"frozenset\(\{([^{}]*)\}\)", lambda found: f"{{{', '.join(sorted(found[1].split(', ')))}}}", text)


def members(owner: type) -> dict[str, object]:
    """The public methods and properties of *owner* that this project wrote, dunder names left out."""
    found: dict[str, object] = {}
    for ancestor in reversed(owner.__mro__):
        if ancestor.__module__.split(".")[0] in INHERITED_FROM:
            found.update({name: value for name, value in vars(ancestor).items() if not name.startswith("_")})
    return {name: value for name, value in found.items() if is_method(value)}


def is_method(value: object) -> bool:
    """Tell whether a class attribute is something a user calls or reads, rather than a field."""
    return inspect.isfunction(value) or isinstance(value, classmethod | staticmethod | property)


def public_attributes(owner: type) -> list[str]:
    """The sorted names of all that *owner* and its ancestors of ours offer, fields too; dunder methods are left out."""
    names: set[str] = set()
    for ancestor in owner.__mro__:
        if ancestor.__module__.split(".")[0] in INHERITED_FROM:
            names.update(vars(ancestor), vars(ancestor).get("__annotations__", ()))
    return sorted(name for name in names if not name.startswith("_"))


def member_line(name: str, value: object) -> str:
    """One member with its signature."""
    if isinstance(value, property):
        returned = inspect.signature(value.fget).return_annotation if value.fget else ""
        return stable(f"{name} -> {returned}")
    inner = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    return called(name, inner)


def called(path: str, function: Any) -> str:
    """*path* with the signature of *function*, marked when it must be awaited."""
    return f"{'async ' if inspect.iscoroutinefunction(function) else ''}{path}{signature(function)}"


def lines_of(path: str, value: object) -> list[str]:
    """The lines for one public name."""
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return [f"{path} = {' | '.join(member.name for member in value)}"]
    if isinstance(value, type):
        head = f"{path}{constructor(value)}"
        return [head, *(member_line(f"{path}.{name}", member) for name, member in sorted(members(value).items()))]
    return [called(path, value) if callable(value) else f"{path}: {type(value).__name__}"]


def constructor(owner: type) -> str:
    """How a class is called; protocols are not."""
    return " (protocol)" if getattr(owner, "_is_protocol", False) else signature(owner)


def render() -> str:
    """The whole text, sorted, with a final newline."""
    lines: list[str] = []
    for module in MODULES:
        loaded = importlib.import_module(module)
        for name in public_names(module):
            lines.extend(lines_of(f"{module}.{name}", getattr(loaded, name)))
    return "\n".join(sorted(lines, key=lambda line: line.removeprefix("async "))) + "\n"


def main() -> None:
    """Print the text, or write it where the golden test reads it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="rewrite public_api.txt")
    if parser.parse_args().write:
        RECORD.write_text(render(), encoding="utf-8")
    else:
        print(render(), end="")


if __name__ == "__main__":
    main()
