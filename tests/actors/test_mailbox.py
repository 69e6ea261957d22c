"""The mailbox: bounded, in order, and its control lane is never refused."""

from __future__ import annotations

import pytest

from actors.errors import MailboxFull
from actors.mailbox import Mailbox
from actors.messages import StopReason, TurnOpened, TurnStopped


def test_turns_come_out_in_the_order_they_came_in() -> None:
    mailbox = Mailbox("a", 3)
    for turn in ("t1", "t2", "t3"):
        mailbox.put(TurnOpened(turn, "x"))
    assert [fact.turn for fact in iter(mailbox.take, None)] == ["t1", "t2", "t3"]
    assert len(mailbox) == 0


def test_a_full_mailbox_refuses_by_type_counts_it_and_keeps_what_it_has() -> None:
    mailbox = Mailbox("builder", 2)
    mailbox.put(TurnOpened("t1", "x"))
    with pytest.raises(MailboxFull, match="the mailbox of builder is full") as refused:
        mailbox.put(TurnOpened("t2", "x"), steered=1)
    assert (refused.value.actor, refused.value.capacity, mailbox.refused, len(mailbox)) == ("builder", 2, 1, 1)


def test_a_stop_is_taken_by_a_full_mailbox_and_before_the_turn_it_stops() -> None:
    mailbox = Mailbox("a", 1)
    mailbox.put(TurnOpened("t1", "x"))
    mailbox.stop(TurnStopped("t2", StopReason.CANCELLED))
    assert mailbox.stopping("t2")
    assert not mailbox.stopping("t1")


def test_the_first_stop_of_a_turn_counts_and_is_forgotten_once_taken() -> None:
    mailbox = Mailbox("a", 1)
    mailbox.stop(TurnStopped("t1", StopReason.TIMED_OUT))
    mailbox.stop(TurnStopped("t1", StopReason.CANCELLED))
    assert mailbox.take_stop("t2") is None
    assert mailbox.take_stop("t1") == TurnStopped("t1", StopReason.TIMED_OUT)
    assert mailbox.take_stop("t1") is None
    assert not mailbox.stopping("t1")
