"""Text over several attempts: nothing twice, and what is void is said to be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from actors.messages import Note
from orchestrator.models.shown import REPLACED_NOTE, Shown
from tests.models.asking import Heard

PIECES = st.lists(st.text("ab", max_size=3), max_size=4)


def seen(heard: Heard) -> str:
    """What somebody reads who cuts the text where a note says so."""
    text = ""
    for piece in heard.told:
        if isinstance(piece, Note):
            assert piece.kind == REPLACED_NOTE
            text = text[: int(piece.text.partition("first ")[2].partition(" ")[0])]
        else:
            text += piece
    return text


@given(st.lists(PIECES, min_size=1, max_size=4))
def test_after_every_attempt_what_is_seen_is_what_the_last_one_said(attempts: list[list[str]]) -> None:
    heard = Heard()
    shown = Shown(heard)
    for number, pieces in enumerate(attempts):
        if number:
            shown.restart()
        for piece in pieces:
            shown.show(piece)
    shown.finish()
    assert seen(heard) == "".join(attempts[-1])


@given(PIECES, PIECES)
def test_an_attempt_that_says_the_same_and_more_shows_only_what_is_more(first: list[str], rest: list[str]) -> None:
    heard = Heard()
    shown = Shown(heard)
    for piece in first:
        shown.show(piece)
    shown.restart()
    for piece in (*first, *rest):
        shown.show(piece)
    shown.finish()
    assert heard.notes == []
    assert heard.text == "".join((*first, *rest))
