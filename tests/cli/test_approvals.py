"""``approvals``: what waits is listed and shown exactly as it would run, and an answer needs the key."""

from __future__ import annotations

import asyncio
import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.approver import Approver
from orchestrator.journal.store import open_store
from orchestrator.models.function import call
from orchestrator.turn import Stop
from tests.consent.office import KEY, approve, handed_down, office, paying, tree
from tests.core.stage import Ledger, calls, raw
from tests.supervision.scene import agent, plays

if TYPE_CHECKING:
    from tests.cli.desk import Desk, Said


class Asking:
    """A session that asks, in the store that the command line looks into; the ledger has what its tool did."""

    def __init__(self, desk: Desk, *says: Any) -> None:
        self.desk = desk
        self.ledger = Ledger()
        self.boss = tree(paying(self.ledger))
        self.model = plays(**handed_down(*(says or (call("pay", to="A", amount=10),))))
        self.handle: Any = None
        desk.home.mkdir(exist_ok=True)

    def go(self, *messages: Any, expires_s: float = 3600.0) -> str:
        """Run, or resume, until nothing moves; return the session's id."""

        async def play() -> None:
            store = open_store(f"sqlite:///{self.desk.home / 'sessions.db'}")
            approver = Approver(KEY, expires_s=expires_s)
            async with (
                asyncio.timeout(5),
                office(self.boss, self.model, store=store, handle=self.handle, approver=approver) as it,
            ):
                if self.handle is None:
                    await it.session.run("go")
                for message in messages:
                    await it.session.send(message)
                await it.quiet()
                self.handle = it.session.snapshot()
            await store.close()

        asyncio.run(play())
        session: str = self.handle.session
        return session


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Type a key at standard input."""

    def typed(text: str) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))

    return typed


def listed(desk: Desk, *words: str) -> list[dict[str, Any]]:
    """What ``list --json`` says."""
    found: list[dict[str, Any]] = json.loads(desk.say("approvals", "list", "--json", *words).out)
    return found


@pytest.mark.requirement("B65")
def test_what_waits_is_listed_with_its_path_and_shown_exactly_as_it_would_run(desk: Desk) -> None:
    session = Asking(desk).go()
    (item,) = listed(desk)
    assert (item["session"], item["approval"], item["status"]) == (session, "a0001", "pending")
    assert (item["actor"], item["tool"], item["arguments"]) == ("boss/c-0002/g-0003", "pay", '{"amount":10,"to":"A"}')
    line = desk.say("approvals", "list")
    assert (line.code, line.err) == (0, "")
    assert line.out == f'{session} a0001  pending  boss/c-0002/g-0003: pay {{"amount":10,"to":"A"}}\n'
    assert json.loads(desk.say("approvals", "show", session, "a0001").out) == item


@pytest.mark.requirement("I8", "B63")
def test_a_yes_with_the_key_is_used_by_the_resumed_session_once(desk: Desk, key: Any) -> None:
    asking = Asking(desk)
    session = asking.go()
    key(f"{KEY}\n")
    said = desk.say("approvals", "approve", session, "a0001", "--by", "ann", "--reason", "fine")
    assert (said.code, said.err) == (0, "")
    assert f"orchestrator sessions resume {session}" in said.out
    assert KEY not in said.out
    assert asking.ledger.lines == []
    assert listed(desk) == []
    (item,) = listed(desk, "--every")
    assert (item["status"], item["by"], item["reason"]) == ("approved", "ann", "fine")
    asking.go()
    asking.go()
    assert asking.ledger.lines == ["pay amount=10 to=A"]


@pytest.mark.requirement("I8")
def test_a_no_is_what_the_agent_is_told_at_the_resume(desk: Desk, key: Any) -> None:
    asking = Asking(desk)
    session = asking.go()
    key(KEY)
    assert desk.say("approvals", "reject", session, "a0001", "--reason", "not this month").code == 0
    asking.go()
    assert asking.ledger.lines == []
    assert "not this month" in desk.say("sessions", "events", session).out
    assert [item["status"] for item in listed(desk, "--every")] == ["rejected"]


def refused(said: Said, *parts: str) -> None:
    """Hold a refusal to its form."""
    assert said.code == 2
    assert said.out == ""
    assert said.err.startswith("orchestrator: ")
    assert "Traceback" not in said.err
    for part in parts:
        assert part in said.err


@pytest.mark.requirement("I8")
@pytest.mark.parametrize("verb", ["approve", "reject"])
@pytest.mark.parametrize("typed", ["wrong\n", f"{KEY}x\n", "", "\n"])
def test_without_the_right_key_nothing_is_answered(desk: Desk, key: Any, verb: str, typed: str) -> None:
    session = Asking(desk).go()
    before = desk.say("sessions", "events", session).out
    key(typed)
    refused(desk.say("approvals", verb, session, "a0001"), "key")
    assert [item["status"] for item in listed(desk)] == ["pending"]
    assert desk.say("sessions", "events", session).out == before


@pytest.mark.requirement("I8")
def test_the_key_is_taken_from_no_argument_and_no_variable(
    desk: Desk, key: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Asking(desk).go()
    for name in ("ORCHESTRATOR_KEY", "ORCHESTRATOR_APPROVER_KEY", "APPROVER_KEY", "KEY"):
        monkeypatch.setenv(name, KEY)
    key("")
    refused(desk.say("approvals", "approve", session, "a0001"))
    refused(desk.say("approvals", "approve", session, "a0001", "--key", KEY))
    assert [item["status"] for item in listed(desk)] == ["pending"]


@pytest.mark.requirement("I8")
def test_a_second_answer_does_not_count(desk: Desk, key: Any) -> None:
    asking = Asking(desk)
    session = asking.go()
    key(KEY)
    assert desk.say("approvals", "reject", session, "a0001", "--by", "ann").code == 0
    key(KEY)
    refused(desk.say("approvals", "approve", session, "a0001"), "ann has answered it already")
    asking.go()
    assert asking.ledger.lines == []


def test_a_question_that_lapsed_is_expired_and_takes_no_answer(desk: Desk, key: Any) -> None:
    session = Asking(desk).go(expires_s=0.000_1)
    (item,) = listed(desk, "--every")[:1]
    assert item["status"] in ("expired", "closed")
    key(KEY)
    refused(desk.say("approvals", "approve", session, "a0001"))


def test_the_question_of_a_stopped_turn_is_closed(desk: Desk, key: Any) -> None:
    ledger, asking = Ledger(), Asking(desk)
    asking.boss = agent("boss", paying(ledger))
    asking.model = plays(boss=[call("pay", to="A", amount=10), "x"])
    session = asking.go(Stop())
    assert listed(desk) == []
    assert [item["status"] for item in listed(desk, "--every")] == ["closed"]
    key(KEY)
    refused(desk.say("approvals", "approve", session, "a0001"), "ended meanwhile")


@pytest.mark.parametrize("verb", ["show", "approve", "reject"])
def test_an_unknown_approval_or_session_is_refused_by_name(desk: Desk, key: Any, verb: str) -> None:
    session = Asking(desk).go()
    key(KEY)
    refused(desk.say("approvals", verb, session, "a0099"), "a0099")
    key(KEY)
    refused(desk.say("approvals", verb, "s00000000", "a0001"), "s00000000")


def test_the_lists_of_a_new_state_folder_are_empty(desk: Desk) -> None:
    assert desk.say("approvals", "list") == (0, "", "")
    assert desk.say("approvals", "list", "--json") == (0, "[]\n", "")


@pytest.mark.requirement("I8")
@pytest.mark.parametrize("mark", ["\u202e", "\u200b", "\x7f", "\x9b", "\u2028", "\U000e0041"])
def test_a_character_that_does_not_print_hides_nothing(desk: Desk, mark: str) -> None:
    session = Asking(desk, calls(raw("pay", json.dumps({"to": f"A{mark}B", "amount": 1})))).go()
    for words in (("list",), ("show", session, "a0001")):
        out = desk.say("approvals", *words).out
        assert mark not in out
        assert json.dumps(mark)[1:-1] in out
        assert all(line.isprintable() for line in out.splitlines())
    shown = json.loads(desk.say("approvals", "show", session, "a0001").out)
    assert json.loads(shown["arguments"])["to"] == f"A{mark}B"


def test_arguments_as_a_person_edited_them_are_shown_beside_what_was_asked(desk: Desk) -> None:
    session = Asking(desk).go(approve("a0001", arguments='{"to":"A","amount":9}'))
    shown = json.loads(desk.say("approvals", "show", session, "a0001").out)
    assert (shown["arguments"], shown["edited"]) == ('{"amount":10,"to":"A"}', '{"amount":9,"to":"A"}')
    assert shown["status"] == "approved"


@pytest.mark.requirement("I8")
async def test_a_session_that_runs_elsewhere_is_answered_there_and_not_from_here(desk: Desk, key: Any) -> None:
    asking = Asking(desk)
    store = open_store(f"sqlite:///{desk.home / 'sessions.db'}")
    async with asyncio.timeout(10), office(asking.boss, asking.model, store=store) as it:
        await it.session.run("go")
        session = it.session.snapshot().session
        key(KEY)
        refused(await asyncio.to_thread(desk.say, "approvals", "approve", session, "a0001"), session)
        assert it.supervisor.approvals.pending() == ("a0001",)
        await it.session.send(approve("a0001"))
        await it.quiet()
    await store.close()
    assert asking.ledger.lines == ["pay amount=10 to=A"]
