"""A refund's yes is bound to who acts, for whom, where the case stands, and which money goes where."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import attrs
import msgspec
import pytest

from actors.grants import Access
from orchestrator.errors import HandleRefused
from orchestrator.journal.consent import ApprovalAnswered, ApprovalAsked, StateMoved
from orchestrator.journal.memory import MemoryStore
from orchestrator.journal.records import CallIntended
from orchestrator.products.support_desk.product import PRODUCT
from orchestrator.standing import Standing
from tests.consent.office import approve, at_the_desk, no
from tests.products.support_case import booked, came_to, counter, finished, place, refund, reviewed, swap
from tests.supervision.scene import plays

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from orchestrator.runtime import Principal
    from orchestrator.standing import AccessCheck
    from tests.supervision.scene import Scene

ASKED = [*reviewed(), refund(), "end"]


def moved(*states: str) -> Callable[[Scene], None]:
    """The host moves the case."""

    def change(it: Scene) -> None:
        for state in states:
            it.supervisor.journal.append("desk", StateMoved(state, "the host"))

    return change


def asked(**fields: Any) -> Callable[[Scene], None]:
    """What was asked is another thing on record."""

    def change(it: Scene) -> None:
        state = it.supervisor.journal.state.approvals["a0001"]
        state.asked = msgspec.structs.replace(state.asked, **fields)

    return change


CHANGES: dict[str, tuple[Callable[[Scene], None], str]] = {
    "nothing": (lambda _: None, "ok"),
    "the account": (lambda it: swap(it, account="c-18"), "approval_mismatch"),
    "the invoice": (lambda it: swap(it, invoice="i-301"), "approval_mismatch"),
    "a cent more": (lambda it: swap(it, amount="10.01"), "approval_mismatch"),
    "a cent less": (lambda it: swap(it, amount="9.99"), "approval_mismatch"),
    "one more field": (lambda it: swap(it, note="urgent"), "invalid_arguments"),
    "the state": (moved("Notifications"), "stale_state"),
    "the state, and back": (moved("SupportLookup", "RefundExecute"), "stale_state"),
    "the revision of the policy": (asked(revision="0" * 16), "approval_mismatch"),
    "the version of the tool": (asked(version="2"), "approval_mismatch"),
    "the tool": (asked(tool="send_mail"), "approval_mismatch"),
}


@pytest.mark.requirement("I7", "I8")
@pytest.mark.parametrize("change, code", CHANGES.values(), ids=CHANGES)
async def test_a_yes_holds_for_the_call_as_it_was_asked_and_for_no_other(
    tmp_path: Path, change: Callable[[Scene], None], code: str
) -> None:
    async with asyncio.timeout(5), counter(plays(desk=ASKED), tmp_path) as it:
        await it.session.run("go")
        change(it)
        await it.session.send(approve("a0001"))
        await it.quiet()
        assert await came_to(it, "execute_refund") == [code]
        assert len(await it.records(CallIntended)) == (code == "ok")
        assert (place(it) == "Notifications") == (code == "ok" or change is CHANGES["the state"][0])
    assert booked(tmp_path) == ([("i-302", 1000)] if code == "ok" else [])


@pytest.mark.requirement("I8")
async def test_what_is_asked_and_answered_is_on_record_with_its_call_and_its_terms(tmp_path: Path) -> None:
    async with asyncio.timeout(5), counter(plays(desk=ASKED), tmp_path) as it:
        await it.session.run("go")
        await it.session.send(approve("a0001", by="ada", reason="a regular"))
        await it.quiet()
        (record,) = await it.records(ApprovalAsked)
        (answer,) = await it.records(ApprovalAnswered)
    assert (record.tool, record.version, len(record.digest), len(record.revision)) == ("execute_refund", "1", 64, 16)
    assert record.arguments == '{"account":"c-17","amount":"10.00","invoice":"i-302"}'
    assert record.target == "c-17, i-302"
    assert (answer.approved, answer.by, answer.reason, answer.digest) == (True, "ada", "a regular", record.digest)


@pytest.mark.parametrize("other", [{"name": "eve"}, {"tenant": "elsewhere"}])
async def test_another_principal_or_tenant_cannot_take_the_session_up_and_the_one_who_began_it_can(
    tmp_path: Path, other: dict[str, Any]
) -> None:
    store, stranger = MemoryStore(), attrs.evolve(PRODUCT.principal, **other)
    async with asyncio.timeout(5):
        async with counter(plays(desk=ASKED), tmp_path, store=store) as it:
            await it.session.run("go")
            handle = it.session.snapshot()
        with pytest.raises(HandleRefused, match="another principal"):
            async with counter(plays(desk=ASKED), tmp_path, store=store, handle=handle, principal=stranger):
                raise AssertionError
        assert booked(tmp_path) == []
        async with counter(plays(desk=ASKED), tmp_path, store=store, handle=handle) as it:
            await it.session.send(approve("a0001"))
            await it.quiet()
            assert await came_to(it, "execute_refund") == ["ok"]
    assert booked(tmp_path) == [("i-302", 1000)]


@pytest.mark.parametrize(
    "standing, code",
    [
        (Standing("local"), "ok"),
        (Standing("eve"), "identity_conflict"),
        (Standing(None), "identity_conflict"),
        (Standing("local", Access.READ), "access_revoked"),
        (Standing("local", enabled=False), "access_revoked"),
    ],
)
async def test_a_caller_who_is_another_by_the_time_of_the_answer_books_nothing(
    tmp_path: Path, standing: Standing, code: str
) -> None:
    now = [Standing("local")]

    async def look(check: AccessCheck) -> Standing:
        assert (check.principal, check.tenant, check.owner) == ("local", "local", "local")
        return now[0]

    principal: Principal = attrs.evolve(PRODUCT.principal, access=look)
    async with asyncio.timeout(5), counter(plays(desk=ASKED), tmp_path, principal=principal) as it:
        await it.session.run("go")
        now[0] = standing
        await it.session.send(approve("a0001"))
        await it.quiet()
        assert await came_to(it, "execute_refund") == [code]
    assert len(booked(tmp_path)) == (code == "ok")


async def test_a_principal_with_less_authority_after_a_restart_books_nothing_with_an_old_yes(tmp_path: Path) -> None:
    store = MemoryStore()
    grants = PRODUCT.principal.grants
    less = attrs.evolve(
        PRODUCT.principal, grants=attrs.evolve(grants, authorities=grants.authorities - {"support.refund"})
    )
    async with asyncio.timeout(5):
        async with counter(plays(desk=ASKED), tmp_path, store=store) as it:
            await it.session.run("go")
            handle = it.session.snapshot()
        async with counter(plays(desk=ASKED), tmp_path, store=store, handle=handle, principal=less) as it:
            await it.session.send(approve("a0001"))
            await it.quiet()
            assert await came_to(it, "execute_refund") == ["authority_missing"]
    assert booked(tmp_path) == []


async def test_the_yes_of_one_session_is_none_in_another_over_the_same_database(tmp_path: Path) -> None:
    async with asyncio.timeout(5):
        async with counter(plays(desk=ASKED), tmp_path) as one, counter(plays(desk=ASKED), tmp_path) as two:
            await one.session.run("go")
            await two.session.run("go")
            await one.session.send(approve("a0001"))
            await one.quiet()
            assert two.supervisor.approvals.pending() == ("a0001",)
            assert booked(tmp_path) == [("i-302", 1000)]
            await two.session.send(approve("a0001"))
            await two.quiet()
            (second,) = [each for each in await finished(two) if each.name == "execute_refund"]
            assert (second.outcome.value, "0.00 left" in second.text) == ("error", True)
    assert booked(tmp_path) == [("i-302", 1000)]


async def test_the_reason_of_a_no_reaches_the_model_and_nobody_is_asked_twice(tmp_path: Path) -> None:
    class Clerk:
        async def ask(self, question: Any) -> Any:
            return msgspec.structs.replace(no(question), reason="the seat is in use")

    heard: list[str] = []

    def end(request: Any) -> str:
        heard.append(request.history[-1].results[-1].text)
        return "end"

    async with asyncio.timeout(5):
        async with counter(plays(desk=[*reviewed(), refund(), end]), tmp_path, approver=at_the_desk(Clerk())) as it:
            await it.session.run("go")
            assert await came_to(it, "execute_refund") == ["approval_rejected"]
    assert ("the seat is in use" in heard[0], booked(tmp_path)) == (True, [])
