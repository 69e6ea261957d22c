"""The mutation tool: which changes it makes, and that it tells a change that no test notices."""

from __future__ import annotations

import subprocess
import sys

from tests.proof.mutants import mutants_of
from tests.proof.mutate import ROOMS, ROOT, equivalent

SOURCE = '''
"""Doc."""
from __future__ import annotations
__all__ = ["f"]
NAMES = {"a", "b"}
TABLE = {"x": 1}

def f(a: int, b: int = 2) -> bool:
    """Doc."""
    if a < b and not b:
        a = a + 1
    return True
'''


def test_each_kind_of_change_is_made_and_what_people_read_is_left_alone() -> None:
    found = [(mutant.line, mutant.change) for mutant in mutants_of("f.py", SOURCE)]
    assert found == [
        (5, "'a' is dropped"),
        (5, "'b' is dropped"),
        (5, "'a' becomes 'a~'"),
        (5, "'b' becomes 'b~'"),
        (6, "the entry 'x' is dropped"),
        (6, "'x' becomes 'x~'"),
        (6, "1 becomes 2"),
        (8, "2 becomes 3"),
        (10, "the condition is negated"),
        (11, "the statement is removed"),
        (10, "and becomes or"),
        (10, "lt becomes lte"),
        (10, "not is dropped"),
        (11, "add becomes sub"),
        (11, "1 becomes 2"),
        (12, "None is returned"),
        (12, "True becomes False"),
    ]


def test_each_mutant_compiles_and_differs_by_what_it_says() -> None:
    by_change = {mutant.change: mutant for mutant in mutants_of("f.py", SOURCE)}
    for mutant in by_change.values():
        compile(mutant.tree(), "f.py", "exec")
    assert "+    if a <= b and (not b):" in by_change["lt becomes lte"].diff()
    assert "+NAMES = {'b'}" in by_change["'a' is dropped"].diff()


def test_equal_changes_on_equal_lines_are_told_apart() -> None:
    changes = [mutant.change for mutant in mutants_of("f.py", "x = 1 + 1\n")]
    assert changes == ["add becomes sub", "1 becomes 2", "1 becomes 2 (number 2)"]


def test_what_is_listed_as_equivalent_is_a_mutant_of_a_room_and_has_a_reason() -> None:
    made = {
        mutant.key
        for room in ROOMS.values()
        for file in room.files
        for mutant in mutants_of(file, (ROOT / file).read_text(encoding="utf-8"))
    }
    assert {key for key in equivalent() if key not in made} == set()
    assert all(len(reason.split()) > 3 for reason in equivalent().values())


def test_the_command_says_how_many_mutants_there_were_and_that_none_survived() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.proof.mutate", "restart", "--jobs", "2", "--sample", "7"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("restart: 5 mutants, 0 survived, 0 listed as equivalent")
