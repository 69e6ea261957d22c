"""Mutation testing of the pure rooms: each small change must make a test fail, or be listed as equivalent, with why.

Each mutant runs in a process forked from one that has loaded the libraries and nothing of ours, against the tests of
its room alone, until the first failure or its time limit.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import os
import signal
import sys
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from tests.proof.mutants import Mutant, mutants_of

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable, Sequence
    from types import CodeType, ModuleType

__all__ = ["ROOMS", "Room", "equivalent", "main", "survivors"]

ROOT = Path(__file__).resolve().parents[2]
LISTED = Path(__file__).with_name("equivalent.toml")
LEAST_LIMIT_S = 10.0
SLOWER = 5


@attrs.frozen
class Room:
    """Some files of one decision, and the tests that are to notice a change in them; the quickest first."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


ROOMS = {
    "policy": Room(
        ("orchestrator/policy.py", "orchestrator/denials.py", "orchestrator/focus.py"),
        ("tests/proof/test_mutants_policy.py", "tests/core/test_decide.py", "tests/core/test_authority.py"),
    ),
    "grants": Room(
        ("actors/grants.py",),
        ("tests/proof/test_mutants_grants.py", "tests/actors/test_grants.py"),
    ),
    "loop": Room(
        ("actors/loop.py", "actors/repeats.py", "actors/ids.py", "actors/spending.py", "actors/answers.py"),
        (
            "tests/proof/test_mutants_loop.py",
            "tests/actors/test_loop.py",
            "tests/actors/test_loop_answers.py",
            "tests/actors/test_loop_properties.py",
        ),
    ),
    "fold": Room(
        (
            "orchestrator/journal/fold.py",
            "orchestrator/journal/worked.py",
            "orchestrator/journal/state.py",
        ),
        (
            "tests/proof/test_mutants_fold.py",
            "tests/journal/test_fold_equals_live.py",
        ),
    ),
    "review": Room(
        ("orchestrator/workflows/review.py",),
        ("tests/workflows/test_review_rounds.py",),
    ),
    "restart": Room(
        ("orchestrator/restart.py",),
        ("tests/proof/test_mutants_restart.py", "tests/core/test_clock.py"),
    ),
}


class MutantLoader(importlib.machinery.SourceFileLoader):
    """Loads one module from a changed tree."""

    def __init__(self, name: str, path: str, tree: ast.Module) -> None:
        super().__init__(name, path)
        self.tree = tree

    def get_code(self, fullname: str) -> CodeType:
        """Compile the changed tree; no cache is read or written."""
        return compile(self.tree, self.get_filename(fullname), "exec")


class MutantFinder(importlib.abc.MetaPathFinder):
    """Finds the changed module before anybody finds the true one."""

    def __init__(self, mutant: Mutant) -> None:
        self.name = mutant.file.removesuffix(".py").replace("/", ".")
        self.loader = MutantLoader(self.name, str(ROOT / mutant.file), mutant.tree())

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the changed module's spec for its own name only."""
        del path, target
        return importlib.util.spec_from_loader(fullname, self.loader) if fullname == self.name else None


class FewerExamples:
    """Lets properties try fewer examples, the same ones every time: a mutant is not found by luck."""

    def pytest_configure(self) -> None:
        """Load the profile once the project's own are known and before any test is read."""
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)  # one failure is enough; nobody reads the smallest
        settings.register_profile("mutants", settings.get_profile("ci"), max_examples=30, phases=phases)
        settings.load_profile("mutants")


def judge(mutant: Mutant | None, tests: Iterable[str]) -> int:
    """Run *tests* against *mutant* in this process; return pytest's exit code. Never returns to a clean process."""
    import pytest

    if mutant is not None:
        sys.meta_path.insert(0, MutantFinder(mutant))
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=no"]
    options += ["-W", "ignore:Module already imported"]  # they are, on purpose
    there = [test for test in tests if (ROOT / test).exists()]
    return int(pytest.main([*options, *there], plugins=[FewerExamples()]))


@attrs.define
class Running:
    """A forked process that judges a mutant."""

    mutant: Mutant
    until: float


def start(mutant: Mutant | None, tests: Iterable[str]) -> int:
    """Fork a process that exits with 0 if every test passes; return its id."""
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        os.setsid()
        code = judge(mutant, tests)
    finally:
        os._exit(code)


def survivors(mutants: Sequence[Mutant], tests: Sequence[str], jobs: int, limit_s: float) -> list[Mutant]:
    """Return the mutants that no test noticed. One that takes longer than *limit_s* seconds is noticed."""
    running: dict[int, Running] = {}
    waiting, found, done = list(mutants), [], 0
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop(0)
            running[start(mutant, tests)] = Running(mutant, time.monotonic() + limit_s)
        child, status = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            time.sleep(0.01)
            for process, item in running.items():
                if time.monotonic() > item.until:
                    os.killpg(process, signal.SIGKILL)
                    item.until = float("inf")
            continue
        item = running.pop(child)
        done += 1
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
            found.append(item.mutant)
        if sys.stderr.isatty():
            print(f"\r{done}/{len(mutants)}, {len(found)} survived ", end="", file=sys.stderr)
    return sorted(found, key=lambda mutant: (mutant.file, mutant.line))


def equivalent() -> dict[tuple[str, str, str], str]:
    """The mutants that no test can notice, with the reason."""
    listed = tomllib.loads(LISTED.read_text(encoding="utf-8")).get("mutant", [])
    return {(item["file"], item["line"], item["mutation"]): item["reason"] for item in listed}


def preload() -> None:
    """Load the libraries once, and nothing of ours."""
    for name in ("hypothesis.stateful", "pytest", "pytest_asyncio", "msgspec", "attrs", "anyio", "jsonschema_rs"):
        importlib.import_module(name)
    importlib.import_module("_hypothesis_pytestplugin")


def examine(name: str, jobs: int, sample: int, known: dict[tuple[str, str, str], str]) -> bool:
    """Judge every *sample*-th mutant of a room and print what is wrong; return whether nothing is."""
    room, began = ROOMS[name], time.monotonic()
    mutants = [mutant for file in room.files for mutant in mutants_of(file, (ROOT / file).read_text(encoding="utf-8"))]
    status = os.waitpid(start(None, room.tests), 0)[1]
    if status:
        print(f"{name}: its tests fail without any change")
        return False
    mutants = mutants[::sample]
    left = survivors(mutants, room.tests, jobs, max(LEAST_LIMIT_S, SLOWER * (time.monotonic() - began)))
    missed = [mutant for mutant in left if mutant.key not in known]
    for mutant in missed:
        print(f"\n{mutant.file}:{mutant.line}: {mutant.change}\n    {mutant.text}\n{mutant.diff()}")
    alive = {mutant.key for mutant in left}
    judged = {mutant.key for mutant in mutants}
    stale = [key for key in known if key[0] in room.files and key not in alive and (key in judged or sample == 1)]
    for key in stale:
        print(f"\n{LISTED.name} lists what does not survive: {key}")
    took = time.monotonic() - began
    listed = len(left) - len(missed)
    print(f"{name}: {len(mutants)} mutants, {len(missed)} survived, {listed} listed as equivalent, {took:.0f} s")
    return not missed and not stale


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the options and examine the rooms; 1 if a mutant survived that is not listed."""
    parser = argparse.ArgumentParser(prog="scripts/mutate", description=__doc__)
    parser.add_argument("rooms", nargs="*", choices=[[], *ROOMS], help=f"which of {', '.join(ROOMS)}; default: all")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (default 2)")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="judge every N-th mutant only")
    options = parser.parse_args(arguments)
    os.chdir(ROOT)
    os.environ["CI"] = "1"
    preload()
    known = equivalent()
    results = [examine(name, options.jobs, options.sample, known) for name in options.rooms or ROOMS]
    return 0 if all(results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
