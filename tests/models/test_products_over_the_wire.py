"""`mend` and `support-desk` over the wire, whatever the provider does: the right outcome, and no effect twice.

The provider is strict and answers with the products' own playbooks, so an undisturbed run is the same run as the one
offline. What it does to a request, it does to every one that it hears for the first time.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.cli import job
from orchestrator.models.opening import open_model
from orchestrator.models.retry import RETRY_NOTE
from orchestrator.products.product import find_product
from tests.models import moves
from tests.models.asking import Waits
from tests.models.heard import cast_of
from tests.models.provider import FakeProvider
from tests.products.support_case import booked
from tests.products.tree import Mended, held

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.desk import Desk
    from tests.models.provider import Move

KEY = "sk-of-the-desk-55"
FILES = {
    "one.py": "import os\nimport sys\n\n\ndef argument():\n    return sys.argv[ 1 ]\n",
    "two.py": "def same(a):\n    if a == None:\n        return True\n    return False\n",
    "sub/three.py": "# three\nimport os\n\nX = 1\n",
    "clean.py": '"""Fine."""\n\nX = 1\n',
}
AGAIN = {
    "429": moves.says(429, retry_after_ms="1"),
    "500": moves.says(500),
    "520": moves.says(520),
    "529": moves.says(529),
    "reset": moves.reset,
    "reset at once": moves.reset_at_once,
    "cut": moves.cut,
    "closed": moves.closed,
    "error in the stream": moves.fails_in_stream({"type": "overloaded_error", "message": "Overloaded"}),
    "damaged": moves.damaged,
}
ODD = {
    "well": moves.well,
    "slow": moves.slow,
    "odd bytes": moves.odd_bytes,
    "compressed": moves.zipped,
    "not streamed": moves.not_streamed,
    "no finish reason": moves.unfinished,
    "broken arguments": moves.broken_arguments,
    "the same id": moves.same_ids,
    "no ids": moves.no_ids,
}
FINAL = {
    "401": (moves.says(401, "wrong key"), "set OPENAI_API_KEY"),
    "404": (moves.says(404, "no such model"), "check the model's name"),
    "400": (moves.says(400, "maximum context length"), "shorten"),
    "a page": (moves.page, "base URL"),
}


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> Waits:
    """Waits between attempts that take no time."""
    waits = Waits()

    def opened(name: str) -> Any:
        model = open_model(name)
        vars(model)["_waiting"] = waits.waiting
        return model

    monkeypatch.setattr(job, "open_model", opened)
    return waits


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key that the provider takes."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def provider(product: str, move: Move | None) -> FakeProvider:
    """The provider whose brain is the playbook of *product*."""
    found = find_product(product)
    return FakeProvider(found.model(), cast=cast_of(found), first=move)


def entries(desk: Desk, session: str) -> list[dict[str, Any]]:
    """Everything on record."""
    return [json.loads(line) for line in desk.say("sessions", "events", session).out.splitlines()]


def retries(found: list[dict[str, Any]]) -> int:
    """How many attempts were told."""
    records = (entry["record"] for entry in found)
    return sum(record["type"] == "noted" and record["kind"] == RETRY_NOTE for record in records)


def effects(found: list[dict[str, Any]]) -> Counter[str]:
    """How often each thing was really done, by what makes two calls the same effect."""
    records = [(entry["actor"], entry["record"]) for entry in found]
    results = [(actor, record["result"]) for actor, record in records if record["type"] == "call_finished"]
    done = {(actor, result["call_id"]) for actor, result in results if "outcome" not in result}
    intents = [(actor, record) for actor, record in records if record["type"] == "call_intended"]
    return Counter(record["effect_key"] for actor, record in intents if (actor, record["call"]) in done)


def planted(folder: Path) -> Path:
    """The tree to mend."""
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Mended:
    """What `mend` comes to without a wire."""
    folder = tmp_path_factory.mktemp("offline")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ORCHESTRATOR_HOME", str(folder / "home"))
        return Mended(planted(folder / "tree"), folder / "report", "--in-place")


@pytest.mark.parametrize("name", [*AGAIN, *ODD])
def test_mend_over_the_wire_comes_to_what_it_comes_to_offline(
    desk: Desk, hurry: Waits, offline: Mended, name: str
) -> None:
    tree, folder = planted(desk.folder / "tree"), desk.folder / "wired"
    with provider("mend", {**AGAIN, **ODD}[name]) as there:
        wired = Mended(tree, folder, "--in-place", "--model", f"openai:m@{there.base_url}")
    assert there.refusals == []
    assert (wired.code, wired.patch, wired.fates()) == (offline.code, offline.patch, offline.fates())
    assert wired.patch
    assert held(tree) == held(offline.folder.parent / "tree")
    found = entries(desk, wired.report["session"])
    assert set(effects(found).values()) == {1}
    assert retries(found) == len(hurry.slept) == (len(there.bodies) / 2 if name in AGAIN else 0)


def told(text: str, pattern: str) -> str:
    """What was said, where *pattern* has its group."""
    found = re.search(pattern, text)
    assert found is not None, text
    return found[1]


@pytest.mark.parametrize("name", [*AGAIN, *ODD, "twice"])
def test_a_case_over_the_wire_is_asked_about_once_and_refunded_once(
    desk: Desk, hurry: Waits, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    move = {**AGAIN, **ODD, "twice": moves.twice}[name]
    with provider("support-desk", move) as there:
        began = desk.say("run", "support-desk", "--workspace", "ws", "--json", "--model", f"openai:m@{there.base_url}")
        waiting = json.loads(began.out)
        assert (began.code, waiting["waiting"], booked(desk.folder / "ws")) == (1, ["a0001"], [])
        monkeypatch.setattr(sys, "stdin", io.StringIO(told(began.err, r"approver key (\S+)") + "\n"))
        assert desk.say("approvals", "approve", waiting["session"], "a0001").code == 0
        ended = desk.say("sessions", "resume", waiting["session"], "--json")
    assert booked(desk.folder / "ws") == [("i-302", 1000)]
    assert there.refusals == []
    found = entries(desk, waiting["session"])
    assert ("asking again" in began.err) is (name in AGAIN)
    if name == "twice":
        # Its second refund finds the case in another state. A mail needs no yes: two calls of it are two mails.
        assert [count for effect, count in effects(found).items() if effect.startswith("execute_refund:")] == [1]
    else:
        assert set(effects(found).values()) == {1}
        assert (ended.code, json.loads(ended.out)["ok"]) == (0, True)
        assert retries(found) == len(hurry.slept) == (len(there.bodies) / 2 if name in AGAIN else 0)
    assert KEY not in json.dumps(found) + began.out + began.err + ended.out + ended.err


@pytest.mark.parametrize("name", FINAL)
def test_a_provider_that_will_not_answer_fails_the_run_with_a_remedy_and_nothing_happened(
    desk: Desk, hurry: Waits, name: str
) -> None:
    move, words = FINAL[name]
    with provider("support-desk", move) as there:
        said = desk.say("run", "support-desk", "--workspace", "ws", "--json", "--model", f"openai:m@{there.base_url}")
    assert said.code == 1
    assert words in json.loads(said.out)["headline"]
    assert len(there.bodies) == 1
    assert (booked(desk.folder / "ws"), hurry.slept) == ([], [])
