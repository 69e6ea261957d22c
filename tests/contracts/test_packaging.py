"""What is installed is pinned, fits what is declared, and carries its types."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement

from tests.contracts.tree import PACKAGES, ROOT

PIN = re.compile(r"(?P<name>[a-z0-9]+(?:-[a-z0-9]+)*)==(?P<version>[0-9][0-9A-Za-z.]*)")


def pins() -> dict[str, str]:
    found = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        pin = PIN.fullmatch(line)
        assert pin, f"not a plain pin: {line!r}"
        found[pin["name"]] = pin["version"]
    return found


def declared() -> list[Requirement]:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = table["project"]
    extras = [entry for extra in project["optional-dependencies"].values() for entry in extra]
    everything = [*table["build-system"]["requires"], *project["dependencies"], *extras]
    return [entry for text in everything if (entry := Requirement(text)).name != project["name"]]


def test_every_declared_dependency_is_pinned_within_its_range() -> None:
    pinned = pins()
    unfit = [str(entry) for entry in declared() if not entry.specifier.contains(pinned.get(entry.name, "0.dev0"))]
    assert unfit == []


def test_the_pins_are_sorted_and_each_name_stands_once() -> None:
    names = [line.split("==")[0] for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()]
    assert names == sorted(set(names))


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_carries_its_types(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()
