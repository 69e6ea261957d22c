"""``orchestrator doctor``: what is there, what is missing, how to get it.

It looks for local model servers, for a second at most, and says which keys are set, never what they are.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import os
import shutil
import sys

import msgspec

from orchestrator.cli.fault import InputFault
from orchestrator.cli.line import one_line
from orchestrator.cli.place import default_store
from orchestrator.models.local import LocalServer, local_servers
from orchestrator.models.provider import PROVIDERS, Provider
from orchestrator.products.product import PRODUCTS, find_product

__all__ = ["doctor"]


class Found(msgspec.Struct, frozen=True):
    """One thing looked for; *needed* when nothing works without it. *models* are what ``--model`` takes for it.

    ``optional``: nobody needs it who does not ask for it.
    """

    name: str
    there: bool
    detail: str
    remedy: str = ""
    needed: bool = False
    models: tuple[str, ...] = ()
    optional: bool = False


def doctor(*, json: bool = False) -> int:
    """Tell what is there, what is missing, and how to get it. Exit code 1 when something needed is missing.

    Parameters
    ----------
    json:
        Print one JSON array.

    """
    git = _command("git", "to look at changes.patch; any git will do")
    found = (_python(), _state(), *_requirements(), git, *_servers(), *_keys())
    if json:
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
    else:
        for item in found:
            mark = "ok     " if item.there else "-      " if item.optional else "missing"
            remedy = f"; {item.remedy}" if item.remedy and not item.there else ""
            print(one_line(f"{mark}  {item.name:<18} {item.detail}{remedy}"))
            for model in item.models:
                print(one_line(f"         {'':<18} --model {model}"))
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


def _servers() -> tuple[Found, ...]:
    return tuple(map(_server, asyncio.run(local_servers(os.environ))))


def _server(server: LocalServer) -> Found:
    name = f"{server.provider} server"
    if server.fault:
        detail = f"{server.base_url or 'no address'}: {server.fault}"
        remedy = f"start it, or write --model {server.provider}:MODEL@http://HOST:PORT/v1"
        return Found(name, False, detail, remedy, optional=True)  # noqa: FBT003  # there
    models = tuple(map(server.reference, server.models))
    return Found(name, True, f"{server.base_url}, {len(models)} models", models=models, optional=True)  # noqa: FBT003  # there


def _keys() -> tuple[Found, ...]:
    return tuple(map(_key, (provider for provider in PROVIDERS if not provider.keyless)))


def _key(provider: Provider) -> Found:
    is_set = bool(os.environ.get(provider.key_name, "").strip())
    detail = f"{provider.key_name} is {'set' if is_set else 'not set'}"
    return Found(f"{provider.name} key", is_set, detail, f"set it to use --model {provider.name}:MODEL", optional=True)
