"""Server-sent events out of bytes: what the specification says, in any pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.models.wire.sse import EventParser, EventTooLarge

LINES = st.lists(
    st.sampled_from(
        [
            "data: a",
            "data:b",
            "data:  c",
            "data",
            "data:",
            "",
            "",
            "event: error",
            "event:",
            ": note",
            "id: 7",
            "retry: 1",
            "junk",
            "data: \u00e9\u2028",
        ]
    ),
    max_size=12,
)


def fed(*pieces: bytes) -> list[tuple[bytes, bytes]]:
    """The events of a stream in these pieces."""
    parser = EventParser()
    return [event for piece in pieces for event in parser.feed(piece)]


def by_the_book(lines: list[str]) -> list[tuple[bytes, bytes]]:
    """The events of these lines, as the specification reads."""
    events, data, name = [], [], ""
    for line in lines:
        if not line:
            if data:
                events.append((name.encode(), "\n".join(data).encode()))
            data, name = [], ""
        elif not line.startswith(":"):
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "data":
                data.append(value)
            elif field == "event":
                name = value
    return events


@given(LINES, st.lists(st.sampled_from(["\n", "\r", "\r\n"]), min_size=13, max_size=13), st.data())
def test_events_are_those_of_the_specification_however_the_bytes_are_split(
    lines: list[str], ends: list[str], data: st.DataObject
) -> None:
    text = "".join(line + end for line, end in zip(lines, ends, strict=False)).encode()
    if b"\r\n" in text.replace(b"\r\n", b"") or any(
        ends[place] == "\r" and not lines[place + 1] and ends[place + 1] == "\n" for place in range(len(lines) - 1)
    ):
        return  # a CR and an empty line's LF side by side are one line end: another text than the lines say
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert fed(*pieces) == by_the_book(lines)
    assert fed(text) == by_the_book(lines)


@pytest.mark.parametrize(
    "pieces, events",
    [
        ((b"data: a\n\n",), [(b"", b"a")]),
        ((b"\xef\xbb\xbfdata: a\r\n\r\n",), [(b"", b"a")]),
        ((b"\xef", b"\xbb\xbf", b"data: a\n\n"), [(b"", b"a")]),
        ((b"data: a\r", b"\n\r", b"\ndata: b\r\n\r\n"), [(b"", b"a"), (b"", b"b")]),
        ((b"data: a\r\rdata: b\r\r",), [(b"", b"a"), (b"", b"b")]),
        ((b"data: a\ndata: b\n\n",), [(b"", b"a\nb")]),
        ((b"event: error\ndata: {}\n\ndata: x\n\n",), [(b"error", b"{}"), (b"", b"x")]),
        ((b": note\n\nevent: only\n\n",), []),
        ((b"data: a\n",), []),
        ((b"data: a", b"", b"b\n", b"\n"), [(b"", b"ab")]),
        ((b"data: \xe4\xb8", b"\x96\n\n"), [(b"", "世".encode())]),
    ],
)
def test_a_stream_reads_as_it_is_meant(pieces: tuple[bytes, ...], events: list[tuple[bytes, bytes]]) -> None:
    assert fed(*pieces) == events


@pytest.mark.parametrize(
    "pieces",
    [
        (b"data: " + b"x" * 90,),
        (b"data: " + b"x" * 9,) * 12,
        (b"data: 123456789\n",) * 12,
        (b"data:\n" * 66,),
        (b"data\n" * 66,),
    ],
)
def test_an_event_beyond_the_limit_is_refused_before_it_is_held(pieces: tuple[bytes, ...]) -> None:
    parser = EventParser(max_event_bytes=64)
    with pytest.raises(EventTooLarge, match="more than 64 bytes"):
        list(map(parser.feed, pieces))


def test_an_event_of_many_lines_is_read_line_by_line_and_never_anew() -> None:
    lines = [b"%d" % number for number in range(100_000)]
    assert fed(*(b"data: " + line + b"\n" for line in lines), b"\n") == [(b"", b"\n".join(lines))]


def test_comments_in_pieces_are_no_part_of_an_event() -> None:
    parser = EventParser(max_event_bytes=64)
    for _ in range(20):
        assert parser.feed(b": 123456789") == parser.feed(b"0123456789\n") == []
    assert parser.feed(b"data: 123456789\n\n") == [(b"", b"123456789")]


def test_many_events_within_the_limit_pass() -> None:
    parser = EventParser(max_event_bytes=64)
    assert sum(len(parser.feed(b"data: 123456789\n\n")) for _ in range(1000)) == 1000


@pytest.mark.parametrize("line", [b"data: \xff", b": \xff", b"da\xffta: a", b"id: \xc3"])
def test_a_line_that_is_no_text_is_damage_wherever_it_stands(line: bytes) -> None:
    with pytest.raises(UnicodeDecodeError):
        fed(line + b"\n\n")
