from __future__ import annotations

from orchestrator.denials import CODES
from orchestrator.policy import GATES
from tests.contracts.generated import BLOCK, DOCUMENT, MAKERS, renewed


def test_the_generated_parts_of_the_architecture_are_what_the_code_says() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert {found.group(2) for found in BLOCK.finditer(text)} == set(MAKERS)
    assert renewed(text) == text, "run: python -m tests.contracts.generated --write"


def test_every_denial_code_belongs_to_a_gate_and_every_gate_that_refuses_has_a_code() -> None:
    numbers = {at for at, _, _ in CODES.values()}
    assert numbers == set(range(1, len(GATES) + 1))
