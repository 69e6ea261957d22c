"""``orchestrator doctor``: what is there, what is missing, how to get it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import shutil
import sys

import msgspec

from orchestrator.cli.fault import InputFault
from orchestrator.cli.place import default_store
from orchestrator.products.product import PRODUCTS, find_product

__all__ = ["doctor"]


class Found(msgspec.Struct, frozen=True):
    """One thing looked for; *needed* when nothing works without it."""

    name: str
    there: bool
    detail: str
    remedy: str = ""
    needed: bool = False


def doctor(*, json: bool = False) -> int:
    """Tell what is there, what is missing, and how to get it. Exit code 1 when something needed is missing.

    Parameters
    ----------
    json:
        Print one JSON array.

    """
    found = (_python(), _state(), *_requirements(), _command("git", "to look at changes.patch; any git will do"))
    if json:
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
    else:
        for item in found:
            mark = "ok     " if item.there else "missing"
            remedy = f"; {item.remedy}" if item.remedy and not item.there else ""
            print(f"{mark}  {item.name:<14} {item.detail}{remedy}")
    return 1 if any(item.needed and not item.there for item in found) else 0


def _python() -> Found:
    version = ".".join(map(str, sys.version_info[:3]))
    return Found("python", (3, 11) <= sys.version_info[:2] <= (3, 13), version, "use Python 3.11 to 3.13", needed=True)


def _state() -> Found:
    try:
        url = default_store()
    except InputFault as fault:
        return Found("state folder", False, fault.fault, fault.remedy, needed=True)  # noqa: FBT003  # there
    return Found("state folder", True, url, needed=True)  # noqa: FBT003  # there


def _requirements() -> tuple[Found, ...]:
    needs = {module: (name, remedy) for name in PRODUCTS for module, remedy in find_product(name).requires}
    return tuple(
        Found(
            module,
            importlib.util.find_spec(module) is not None,
            f"{importlib.metadata.version(module)}, for the product {product}"
            if importlib.util.find_spec(module)
            else f"for the product {product}",
            remedy,
        )
        for module, (product, remedy) in sorted(needs.items())
    )


def _command(name: str, use: str) -> Found:
    path = shutil.which(name)
    return Found(name, path is not None, path or use, f"install {name}")
