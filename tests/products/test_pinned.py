"""What each shipped product's tools declare is pinned in a file that people edit: a change of it is always meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.products.audited import subject_of

HERE = Path(__file__).parent


@pytest.mark.parametrize("product", ["mend", "open-catalog", "support-desk"])
def test_the_catalog_is_what_was_pinned_by_hand(product: str) -> None:
    file = f"{product.replace('-', '_')}.golden"
    lines = (HERE / file).read_text(encoding="utf-8").splitlines()
    pinned = [line.split() for line in lines if line and not line.startswith("#")]
    declared = [
        [
            each.tool.name,
            each.tool.access.value,
            ",".join(sorted(each.tool.authorities)) or "-",
            ",".join(sorted(each.tool.needs)) or "-",
            each.tool.approval.value,
            str(each.definition_bytes) if each.definition_bytes else "measured",
        ]
        for each in subject_of(product).tools
    ]
    assert declared == pinned, f"if the change is meant, write it into {file} too"
