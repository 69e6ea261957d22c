"""Chunks to a reply: pieces that belong together, counts that are not added up, and ends that are none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.messages import ModelReply, ReplyStop, ToolCall, Usage
from orchestrator.models.wire.assembly import Assembly
from orchestrator.models.wire.chunk import decode_chunk
from tests.models.streams import begun, chunk, more


def assembled(*chunks: dict[str, Any]) -> Assembly:
    """What these chunks are put together to."""
    assembly = Assembly()
    for one in chunks:
        assembly.take(decode_chunk(json.dumps(one).encode()))
    return assembly


def reply(*deltas: dict[str, Any], finish: str = "stop") -> ModelReply:
    """The reply of these deltas."""
    return assembled(*map(chunk, deltas), chunk({}, finish)).reply()


def counted(**counts: Any) -> dict[str, Any]:
    """A chunk that only counts."""
    return chunk({}, usage=counts)


# OpenAI's counts have no field for tokens written to a cache: they are among the prompt tokens, and counted there.
@pytest.mark.requirement("B82")
@pytest.mark.parametrize(
    "chunks, usage",
    [
        (
            [{"prompt_tokens": 47121, "completion_tokens": 4}, {"prompt_tokens": 47121, "completion_tokens": 64}],
            (47121, 0, 64),
        ),
        ([{"prompt_tokens": 9, "completion_tokens": 4}, {"completion_tokens": 6}, {"completion_tokens": 5}], (9, 0, 5)),
        ([{"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 8}}, {"completion_tokens": 3}], (9, 8, 3)),
        (
            [{"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 8}}, {"prompt_tokens_details": {}}],
            (9, 8, 0),
        ),
        ([{"prompt_tokens": 9, "prompt_cache_hit_tokens": 7, "prompt_cache_miss_tokens": 2}], (9, 7, 0)),
        ([{"prompt_tokens": 9, "completion_tokens": None}, {"prompt_tokens": None, "completion_tokens": 2}], (9, 0, 2)),
        ([{"prompt_tokens": -1, "completion_tokens": 2}], (0, 0, 2)),
    ],
)
def test_counts_are_those_that_came_last_and_one_that_is_missing_keeps_the_earlier(
    chunks: list[dict[str, Any]], usage: tuple[int, int, int]
) -> None:
    spent, cached, given = usage
    assert assembled(*(counted(**counts) for counts in chunks)).reply(1).usage == Usage(spent, cached, given, 1)


@pytest.mark.parametrize(
    "finish, stop",
    [
        ("stop", ReplyStop.END),
        ("eos", ReplyStop.END),
        ("length", ReplyStop.LENGTH),
        ("model_length", ReplyStop.LENGTH),
        ("content_filter", ReplyStop.REFUSED),
    ],
)
def test_the_finish_reason_says_why_the_model_stopped(finish: str, stop: ReplyStop) -> None:
    assert reply({"content": "So"}, finish=finish) == ModelReply("So", (), stop, Usage(requests=1))


def test_calls_are_wanted_whatever_the_server_calls_the_reason_unless_its_limit_cut_them() -> None:
    deltas = begun(0, "c1", "read"), more(0, "{}")
    for finish in ("tool_calls", "function_call", "stop"):
        assert reply(*deltas, finish=finish).stop is ReplyStop.TOOL_CALLS
    cut = reply(begun(0, "c1", "read"), more(0, '{"a'), finish="length")
    assert (cut.stop, cut.calls) == (ReplyStop.LENGTH, (ToolCall("c1", "read", '{"a'),))


def test_a_refusal_is_refused_and_is_the_text_where_there_is_no_other() -> None:
    assert reply({"refusal": "I can"}, {"refusal": "not."}).text == "I cannot."
    assert reply({"refusal": "No."}).stop is ReplyStop.REFUSED


def test_what_a_filter_stopped_runs_nothing() -> None:
    stopped = reply(begun(0, "c1", "delete", "{}"), finish="content_filter")
    assert (stopped.stop, stopped.calls) == (ReplyStop.REFUSED, ())


@pytest.mark.parametrize(
    "deltas, calls",
    [
        ((begun(0, "a", "r"), begun(1, "b", "s"), more(1, "2"), more(0, "1")), [("a", "r", "1"), ("b", "s", "2")]),
        ((begun(1, "b", "s", "2"), begun(0, "a", "r", "1")), [("a", "r", "1"), ("b", "s", "2")]),
        ((begun(0, "a", "r", "1"), begun(0, "b", "s", "2")), [("a", "r", "1"), ("b", "s", "2")]),
        ((begun(0, "a", "r", "1"), begun(0, "a", "r", "2")), [("a", "r", "12")]),
        ((begun(0, "a", "r", "1"), begun(0, "", "", "2")), [("a", "r", "12")]),
        ((begun(0, "a", "r", None),), [("a", "r", "{}")]),
        ((begun(0, "a", "r", ""),), [("a", "r", "")]),
        ((begun(0, "", "r", "1"), begun(1, "", "r", "2")), [("", "r", "1"), ("", "r", "2")]),
        ((begun(5, "a", "r", "1"), begun(3, "b", "s", "2")), [("b", "s", "2"), ("a", "r", "1")]),
    ],
)
def test_pieces_of_a_call_find_their_call_and_arguments_stay_what_they_are(
    deltas: tuple[dict[str, Any], ...], calls: list[tuple[str, str, str]]
) -> None:
    assert [(made.id, made.name, made.arguments) for made in reply(*deltas).calls] == calls


def test_calls_beyond_number_are_each_placed_once_and_a_name_beyond_any_is_cut() -> None:
    sent = [{"index": n, "id": f"c{n}", "function": {"name": "f", "arguments": "{}"}} for n in range(40_000)]
    assembly = Assembly()
    assembly.take(decode_chunk(json.dumps({"choices": [{"delta": {"tool_calls": sent}}]}).encode()))
    assert [call.id for call in assembly.reply().calls] == [f"c{n}" for n in range(40_000)]
    long = [{"index": 0, "id": "c", "function": {"name": f"{n},"}} for n in range(4_000)]
    assembly = Assembly()
    assembly.take(decode_chunk(json.dumps({"choices": [{"delta": {"tool_calls": long}}]}).encode()))
    (call,) = assembly.reply().calls
    assert len(call.name) == 4096


def test_calls_without_an_index_are_told_apart_by_their_ids() -> None:
    whole = [{"id": known, "function": {"name": "r", "arguments": known}} for known in ("a", "b")]
    goes_on = {"tool_calls": [{"function": {"arguments": "+"}}]}
    told = reply({"tool_calls": whole}, goes_on)
    assert [(made.id, made.arguments) for made in told.calls] == [("a", "a"), ("b", "b+")]


def test_thought_is_kept_apart_under_either_name_and_parts_of_a_content_are_its_texts() -> None:
    told = reply(
        {"reasoning_content": "Hm, "},
        {"reasoning": "yes. "},
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "x"}]},
                {"type": "text", "text": "Yes"},
            ]
        },
    )
    assert (told.reasoning, told.text) == ("Hm, yes. ", "Yes")


def test_a_second_choice_is_nobodys() -> None:
    second = {"index": 1, "delta": {"content": "other"}, "finish_reason": None}
    assert assembled({**chunk({}), "choices": [second]}, chunk({"content": "mine"}, "stop")).reply().text == "mine"


@pytest.mark.requirement("B78")
def test_half_a_letter_waits_for_its_other_half_and_alone_becomes_a_sign_of_it() -> None:
    assembly = Assembly()
    halves = (b'"a\\ud83c"', b'"\\udf0d b"', b'"\\ud83c"')
    pieces = [assembly.take(decode_chunk(b'{"choices":[{"delta":{"content":%s}}]}' % half)) for half in halves]
    pieces.append(assembly.flush())
    assert pieces == ["a", "\U0001f30d b", "", "\ufffd"]
    assert assembly.reply().text == "a\U0001f30d b\ufffd"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"1",
        b'{"choices": 1}',
        b'{"choices":[{"delta":{"content":1}}]}',
        b"{} x",
        b"[" * 5000,
        b'{"usage":NaN}',
    ],
)
def test_what_is_no_chunk_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        decode_chunk(data)
