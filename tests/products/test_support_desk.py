"""``support-desk``: what each state offers, which calls are refused before anything happens, and what the rest book."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from actors import Grants
from actors.intrinsics import INTRINSICS
from actors.messages import StopReason
from orchestrator.approver import Verdict
from orchestrator.errors import AnswerRefused
from orchestrator.models.function import FunctionModel, call
from orchestrator.products.support_desk.database import Desk, NotBooked
from orchestrator.products.support_desk.product import MANIFEST
from orchestrator.runtime import OWNER, Principal
from tests.consent.office import Person, approve, at_the_desk, no, reject, yes
from tests.core.stage import calls, raw
from tests.products.support_case import (
    CONFIRM,
    FIND,
    OPEN,
    PREVIEW,
    WISH,
    booked,
    came_to,
    counter,
    desk_agent,
    finished,
    place,
    refund,
    reviewed,
)
from tests.supervision.scene import plays, script

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from actors.messages import ToolCall
    from actors.ports import ModelRequest
    from orchestrator.approver import Answer, Question

INTRINSIC = frozenset(INTRINSICS)
READING = frozenset({"get_api_spec", "read_output", "search_output", "ask_person"})
LOOKUP = ["find_customer", "list_invoices", "read_invoice", "open_refund"]
MANIFESTS = [
    ("SupportLookup", LOOKUP, OPEN()),
    ("RefundReview", ["read_invoice", "preview_refund", "confirm_review"], CONFIRM()),
    ("RefundExecute", ["execute_refund"], refund()),
    ("Notifications", ["send_mail", "close_case"], call("close_case")),
    ("SupportLookup", LOOKUP, "closed"),
]


def watched(*answers: Any) -> tuple[FunctionModel, list[frozenset[str]]]:
    """A model of these answers, and the tools that it was offered at each request."""
    offers: list[frozenset[str]] = []
    play = script(*answers)

    def desk(request: ModelRequest) -> Any:
        offers.append(frozenset(tool.name for tool in request.tools))
        return play(request)

    return FunctionModel({"desk": desk}), offers


async def test_each_state_offers_exactly_its_own_tools_and_its_declared_call_leads_to_the_next(tmp_path: Path) -> None:
    model, offers = watched(*(answer for _, _, answer in MANIFESTS))
    person = Person(yes)
    async with asyncio.timeout(5), counter(model, tmp_path, approver=at_the_desk(person)) as it:
        assert (await it.session.run("go")).output == "closed"
        assert place(it) == "SupportLookup"
        assert await came_to(it) == ["ok"] * 4
    assert [offer - INTRINSIC for offer in offers] == [frozenset(tools) for _, tools, _ in MANIFESTS]
    assert {offer & INTRINSIC for offer in offers} == {READING}
    assert [state.name for state in MANIFEST.states] == [name for name, _, _ in MANIFESTS[:-1]]
    assert booked(tmp_path) == [("i-302", 1000)]


BAD = {
    "a tool that nobody has": ([], call("refund_now", **WISH), "unknown_tool"),
    "a tool of another desk": ([], call("write_file", path="a"), "unknown_tool"),
    "a refund before the review": ([], refund(), "stale_state"),
    "a refund during the review": ([OPEN()], refund(), "stale_state"),
    "a mail before the refund": (reviewed(), call("send_mail", account="c-17", text="x"), "stale_state"),
    "a look back": (reviewed(), FIND(), "stale_state"),
    "a state as an argument": ([], call("open_refund", invoice="i-302", state="RefundExecute"), "invalid_arguments"),
    "a principal as an argument": (reviewed(), refund(principal="root"), "invalid_arguments"),
    "a yes as an argument": (reviewed(), refund(approval="a0001"), "invalid_arguments"),
    "an amount below nothing": (reviewed(), refund(amount="-10.00"), "invalid_arguments"),
    "an amount of more digits": (reviewed(), refund(amount="10.001"), "invalid_arguments"),
    "an amount in powers": (reviewed(), refund(amount="1e1"), "invalid_arguments"),
    "an amount with a line end": (reviewed(), refund(amount="10.00\n"), "invalid_arguments"),
    "an amount in other digits": (reviewed(), refund(amount="\u0661\u0660.\u0660\u0660"), "invalid_arguments"),
    "an amount as a number": (
        reviewed(),
        raw("execute_refund", '{"account":"c-17","invoice":"i-302","amount":10.00}'),
        "invalid_arguments",
    ),
}


@pytest.mark.parametrize("before, bad, code", BAD.values(), ids=BAD)
async def test_a_call_that_may_not_be_made_is_refused_unasked_with_its_code_and_the_one_beside_it_runs(
    tmp_path: Path, before: list[ToolCall], bad: ToolCall, code: str
) -> None:
    good = {0: OPEN(), 1: PREVIEW(), 2: refund()}[len(before)]
    person = Person(yes)
    async with asyncio.timeout(5):
        approver = at_the_desk(person)
        async with counter(plays(desk=[*before, bad, good, "end"]), tmp_path, approver=approver) as it:
            assert (await it.session.run("go")).output == "end"
            assert (await came_to(it))[-2:] == [code, "ok"]
            assert len(await finished(it)) == len(before) + 2
    assert booked(tmp_path) == ([("i-302", 1000)] if len(before) == 2 else [])
    assert len(person.asked) == len(booked(tmp_path))


async def test_each_tool_is_stale_in_the_states_that_are_not_its_own(tmp_path: Path) -> None:
    later = {"preview_refund", "confirm_review", "execute_refund", "send_mail", "close_case"}
    earlier = {"find_customer", "list_invoices", "open_refund"}
    mail, invoices = call("send_mail", account="c-17", text="x"), call("list_invoices", account="c-17")
    first = calls(PREVIEW(), CONFIRM(), refund(), mail, call("close_case"))
    answers = (first, OPEN(), PREVIEW(), calls(FIND(), invoices, OPEN()), "end")
    async with asyncio.timeout(5), counter(plays(desk=answers), tmp_path) as it:
        await it.session.run("go")
        denials = [result.denial for result in await finished(it) if result.denial is not None]
    assert {denial.code for denial in denials} == {"stale_state"}
    assert ({denial.tool for denial in denials[:5]}, {denial.tool for denial in denials[5:]}) == (later, earlier)
    assert booked(tmp_path) == []


async def test_a_call_made_in_a_state_that_an_earlier_call_of_the_same_reply_has_left_is_stale(tmp_path: Path) -> None:
    twice = calls(refund("one"), refund("two"))
    person = Person(yes, yes)
    async with asyncio.timeout(5):
        async with counter(plays(desk=[*reviewed(), twice, "x"]), tmp_path, approver=at_the_desk(person)) as it:
            await it.session.run("go")
            assert await came_to(it, "execute_refund") == ["ok", "stale_state"]
    assert booked(tmp_path) == [("i-302", 1000)]
    assert len(person.asked) == 1


async def test_a_call_replayed_under_the_id_of_one_that_was_approved_finds_its_yes_used(tmp_path: Path) -> None:
    again = [OPEN(), CONFIRM(), refund("second", invoice="i-301"), "x"]
    answers = [*reviewed(), refund("first"), call("close_case"), *again]
    replayed: list[str] = []

    async def replay(question: Question) -> Answer:
        capability = it.supervisor.members["desk"].capability
        assert capability is not None
        refused = await capability.call(refund("first"))
        assert refused is not None
        replayed.append(refused.denial.code if refused.denial else refused.outcome.value)
        return approve(question.approval)

    person = Person(yes, replay)
    async with asyncio.timeout(5), counter(plays(desk=answers), tmp_path, approver=at_the_desk(person)) as it:
        await it.session.run("go")
    assert replayed == ["approval_used"]
    assert booked(tmp_path) == [("i-302", 1000), ("i-301", 1000)]


@pytest.mark.parametrize("says, code", [(no, "approval_rejected"), (lambda _: None, "approval_expired")])
async def test_a_no_or_no_answer_books_nothing_and_a_yes_to_the_next_asking_does(
    tmp_path: Path, says: Callable[[Question], Answer | None], code: str
) -> None:
    person = Person(says, yes)
    async with asyncio.timeout(5):
        model = plays(desk=[*reviewed(), refund(), refund(), "x"])
        async with counter(model, tmp_path, approver=at_the_desk(person)) as it:
            await it.session.run("go")
            assert await came_to(it, "execute_refund") == [code, "ok"]
    assert booked(tmp_path) == [("i-302", 1000)]


@pytest.mark.parametrize("second", [Verdict.APPROVE, Verdict.REJECT])
async def test_of_two_answers_at_once_one_counts(tmp_path: Path, second: Verdict) -> None:
    other = approve("a0001", by="eve") if second is Verdict.APPROVE else reject("a0001", by="eve")
    async with asyncio.timeout(5), counter(plays(desk=[*reviewed(), refund(), "x"]), tmp_path) as it:
        assert (await it.session.run("go")).stop_reason is StopReason.SUSPENDED
        said = await asyncio.gather(
            it.session.send(approve("a0001", by="ada")), it.session.send(other), return_exceptions=True
        )
        (refused,) = [each for each in said if isinstance(each, BaseException)]
        assert isinstance(refused, AnswerRefused)
        assert (refused.code, "ada has answered" in str(refused)) == ("answered", True)
        await it.quiet()
        assert await came_to(it, "execute_refund") == ["ok"]
    assert booked(tmp_path) == [("i-302", 1000)]


async def test_a_trainee_can_look_up_and_do_nothing_else_whatever_is_called(tmp_path: Path) -> None:
    grants = MANIFEST.caller("trainee").grants
    trainee = Principal(grants=Grants(OWNER.authorities | grants.authorities, grants.access, (".",)))
    model, offers = watched(FIND(), OPEN(), refund(), call("send_mail", account="c-17", text="x"), "x")
    async with asyncio.timeout(5), counter(model, tmp_path, principal=trainee) as it:
        await it.session.run("go")
        assert await came_to(it) == ["ok", "authority_missing", "stale_state", "stale_state"]
        assert place(it) == "SupportLookup"
    assert {offer - INTRINSIC for offer in offers} == {frozenset(LOOKUP) - {"open_refund"}}
    assert booked(tmp_path) == []


async def test_without_anybody_to_ask_a_refund_is_refused_for_good(tmp_path: Path) -> None:
    async with asyncio.timeout(5):
        async with counter(plays(desk=[*reviewed(), refund(), "x"]), tmp_path, approver=None) as it:
            await it.session.run("go")
            assert await came_to(it, "execute_refund") == ["approval_unavailable"]
            assert place(it) == "RefundExecute"
    assert booked(tmp_path) == []


@pytest.mark.parametrize(
    "other, fault",
    [
        ({"amount": "10.01"}, "10.00 left to refund, not 10.01"),
        ({"amount": "0.00"}, "more than 0.00"),
        ({"account": "c-18"}, "account c-18 has no invoice i-302"),
        ({"invoice": "i-999"}, "account c-17 has no invoice i-999"),
    ],
)
async def test_what_a_person_approved_in_error_is_still_refused_by_the_database_and_the_case_stays_where_it_is(
    tmp_path: Path, other: dict[str, str], fault: str
) -> None:
    person = Person(yes, yes)
    async with asyncio.timeout(5):
        model = plays(desk=[*reviewed(), refund(**other), refund(), "x"])
        async with counter(model, tmp_path, approver=at_the_desk(person)) as it:
            await it.session.run("go")
            refused, ran = [each for each in await finished(it) if each.name == "execute_refund"]
            assert (refused.outcome.value, ran.outcome.value) == ("error", "ok")
            assert fault in refused.text
    assert booked(tmp_path) == [("i-302", 1000)]


def test_a_key_books_one_refund_and_no_other_under_its_name(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert desk.refund("k", "c-17", "i-301", 500, "local") == "refunded 5.00 on invoice i-301"
    assert "booked before" in desk.refund("k", "c-17", "i-301", 500, "local")
    for invoice, cents in (("i-301", 501), ("i-302", 500)):
        with pytest.raises(NotBooked, match="another refund"):
            desk.refund("k", "c-17", invoice, cents, "local")
    assert booked(tmp_path) == [("i-301", 500)]


def test_every_tool_of_the_desk_is_in_a_state_and_only_money_and_mail_leave_the_house() -> None:
    staged = {name for state in MANIFEST.states for name in state.tools}
    assert staged == {tool.name for tool in desk_agent().tools.direct}
    outside = {declared.tool.name for declared in MANIFEST.tools if declared.tool.access.value == "external"}
    assert outside == {"execute_refund", "send_mail"}
