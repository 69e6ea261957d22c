"""Discovery looks at one turn's own catalog; an unknown filter and a stale reference have a type. Seed oa.discovery."""

from __future__ import annotations

import pytest

from actors import Access, ToolFault
from orchestrator.denials import deny
from orchestrator.discovery import (
    FILTERS,
    Snapshot,
    StaleRegistry,
    UnknownFilter,
    UnknownModule,
    discover,
    find,
)
from orchestrator.facts import NeedsApproval, Verdict
from tests.catalog.catalogs import agent, catalog_of, tool

BOSS = agent(tool("put", "Writes. Not for reading.", access=Access.WRITE), tool("look"), tool("ask"))
VERDICTS: dict[str, Verdict] = {
    "put": deny("authority_missing", "put", "boss", "no"),
    "ask": NeedsApproval("ask", "boss"),
}
SNAPSHOT = Snapshot.of(catalog_of(BOSS, VERDICTS), {"put": ("files", "disk")})


def test_everything_of_the_turns_catalog_is_found_by_name_denied_tools_with_their_code() -> None:
    found = {entry.name: entry.verdict for entry in discover(SNAPSHOT)}
    assert list(found) == sorted(tool.name for tool in BOSS.offered)
    assert (found["put"], found["ask"], found["look"]) == ("authority_missing", "needs_approval", "permitted")


@pytest.mark.parametrize(
    "filters, names",
    [
        ({"name": "put"}, ["put"]),
        ({"name": "pu"}, []),
        ({"text": "WRITES"}, ["put"]),
        ({"access": "write"}, ["put"]),
        ({"tag": "files"}, ["put"]),
        ({"verdict": "needs_approval"}, ["ask"]),
        ({"access": "write", "verdict": "permitted"}, []),
    ],
)
def test_every_filter_narrows(filters: dict[str, str], names: list[str]) -> None:
    assert [entry.name for entry in discover(SNAPSHOT, filters) if entry.name in {"put", "ask", "look"}] == names


def test_oa_discovery_an_unknown_filter_is_refused_by_type_and_names_those_there_are() -> None:
    with pytest.raises(UnknownFilter) as refused:
        discover(SNAPSHOT, {"name": "put", "secret": "x"})
    assert (refused.value.code, refused.value.name) == ("discovery_filter_unknown", "secret")
    assert isinstance(refused.value, ToolFault)
    assert all(name in refused.value.remedy for name in FILTERS)


def test_oa_discovery_a_reference_made_under_another_registry_is_stale_though_the_name_is_there() -> None:
    mine = find(SNAPSHOT, discover(SNAPSHOT, {"name": "put"})[0].reference)
    assert mine.name == "put"
    other = Snapshot.of(catalog_of(agent(tool("put", "Changed. Not for reading.", access=Access.WRITE), tool("look"))))
    with pytest.raises(StaleRegistry) as refused:
        find(other, mine.reference)
    assert (refused.value.code, refused.value.reference) == ("stale_registry", mine.reference)
    with pytest.raises(StaleRegistry):
        find(SNAPSHOT, "put")


def test_a_reference_to_a_tool_that_the_actor_does_not_have_names_close_ones_of_its_own_only() -> None:
    seal = SNAPSHOT.entries[0].reference.partition("@")[2]
    with pytest.raises(UnknownModule) as refused:
        find(SNAPSHOT, f"putt@{seal}")
    assert "put" in refused.value.remedy
    assert refused.value.code == "unknown_tool"


def test_a_verdict_does_not_change_the_digest_and_a_declaration_or_a_tag_does() -> None:
    assert Snapshot.of(catalog_of(BOSS), {"put": ("disk", "files")}).digest == SNAPSHOT.digest
    assert Snapshot.of(catalog_of(BOSS), {"put": ("disk",)}).digest != SNAPSHOT.digest
    assert Snapshot.of(catalog_of(agent(tool("look")))).digest != SNAPSHOT.digest


def test_a_huge_reference_or_filter_is_cut_in_the_message() -> None:
    with pytest.raises(StaleRegistry) as stale:
        find(SNAPSHOT, "x" * 10_000)
    with pytest.raises(UnknownFilter) as unknown:
        discover(SNAPSHOT, {"y" * 10_000: ""})
    assert max(len(str(stale.value)), len(str(unknown.value))) < 500
