"""How a store is named, and how what it raises reads."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest

from orchestrator.journal.store import (
    LeaseLost,
    SessionExists,
    SessionUnknown,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreUnavailable,
    StoreVersion,
    open_store,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "url, told",
    [
        ("mysql://x", "the scheme is not known; known are memory:"),
        ("runs.sqlite", "the scheme is not known; known are memory:"),
        ("", "the scheme is not known; known are memory:"),
        ("postgresql://host/db", "extra \\[postgres\\] in a later release"),
        ("sqlite://", "names no file"),
        ("sqlite:///", "names no file"),
        ("sqlite:///:memory:", "names no file; known are memory:"),
        ("sqlite:///a.db?synchronous=off", "use synchronous=full or synchronous=normal"),
        ("sqlite:///a.db?sync=full", "parameter 'sync' is not known; known are synchronous"),
        ("sqlite:///a.db?max_bytes=1e6", "not a number of bytes"),
    ],
)
def test_a_url_that_names_no_store_is_answered_with_those_that_do(url: str, told: str) -> None:
    with pytest.raises(StoreUnavailable, match=told):
        open_store(url)


def test_naming_a_store_touches_nothing_and_its_url_opens_it_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_store("memory:").url == "memory:"
    for url in ("runs.db", "sqlite:///runs.db", f"sqlite:///{tmp_path}/runs.db"):
        found = open_store(url).url
        assert found == f"sqlite:///{tmp_path}/runs.db?synchronous=full"
        assert open_store(found).url == found
    assert open_store("sqlite:///a%20b.db?synchronous=normal&max_bytes=9").url.endswith(
        "/a%20b.db?synchronous=normal&max_bytes=9"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "error, words",
    [
        (StoreUnavailable("here", "broken", "mend it"), ("here", "broken", "mend it")),
        (StoreDamaged("here", 7, "cut"), ("here", "record 7", "cut", "limit=6")),
        (StoreDamaged("here", 1, "cut"), ("here", "record 1", "copy")),
        (StoreDamaged("here", 0, "cut"), ("here", "cut", "copy")),
        (StoreVersion(3, 1, "here"), ("here", "3", "1", "upgrade")),
        (StoreFull("here"), ("here", "no room", "Free space")),
        (LeaseLost("s", 4), ("session s", "fence 4")),
        (SessionUnknown("s", ("t", "u")), ("'s'", "t or u")),
        (SessionExists("s"), ("'s'", "resume it")),
    ],
)
def test_an_error_names_place_fault_and_remedy_and_can_be_sent(error: StoreError, words: tuple[str, ...]) -> None:
    sent = pickle.loads(pickle.dumps(error))
    assert str(sent) == str(error)
    for word in words:
        assert word in str(error)
