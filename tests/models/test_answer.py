"""What servers say when they do not reply, in the shapes that they say it in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.models.fault import RETRIED, FaultKind
from orchestrator.models.wire.answer import Server, refused, streamed_error

SERVER = Server("openai:gpt-5@http://h/v1", "http://h/v1", "OPENAI_API_KEY")
SHAPES: list[tuple[Any, str]] = [
    ({"error": {"message": "no such thing", "type": "x", "code": None}}, "no such thing"),
    ({"error": "no such thing"}, "no such thing"),
    ({"error": {"error": "no such thing"}}, "no such thing"),
    ({"object": "error", "message": "no such thing", "code": 40}, "no such thing"),
    ({"detail": "no such thing"}, "no such thing"),
    ({"detail": [{"loc": ["body"], "msg": "no such thing"}]}, "no such thing"),
    ([{"error": {"code": 400, "message": "no such thing", "status": "INVALID_ARGUMENT"}}], "no such thing"),
    ("no such thing", "no such thing"),
    ({"error": {}}, "HTTP 400"),
    ({"error": None}, "HTTP 400"),
    (None, "HTTP 400"),
    ([], "HTTP 400"),
    (7, "HTTP 400"),
]


@pytest.mark.parametrize("value, words", SHAPES)
def test_what_is_said_is_told_whatever_shape_it_has(value: Any, words: str) -> None:
    fault = refused(SERVER, 400, json.dumps(value))
    assert words in str(fault)
    assert (fault.kind, fault.status) == (FaultKind.BAD_REQUEST, 400)


@pytest.mark.parametrize(
    "text, words",
    [("", "HTTP 400"), ("plain words\nin lines", "plain words in lines"), ("<!DOCTYPE html>", "a web page")],
)
def test_what_is_no_json_is_told_as_it_is(text: str, words: str) -> None:
    assert words in str(refused(SERVER, 400, text))


@pytest.mark.parametrize(
    "status, words",
    [
        (204, "HTTP 204: the server does not answer with a reply"),
        (304, "HTTP 304: the server does not answer with a reply"),
        (308, "HTTP 308: the server sends us elsewhere, and a key is not carried there"),
        (407, "HTTP 407: the proxy on the way wants a user and a password of its own"),
    ],
)
def test_a_status_without_words_is_told_in_words(status: int, words: str) -> None:
    assert words in str(refused(SERVER, status, ""))


@pytest.mark.parametrize("text", ['{"error":{"message":"no a\\/b"}}', '{"error":"no \\u0061/b"}', "no a/b"])
def test_what_is_secret_is_hidden_however_it_was_spelled(text: str) -> None:
    for fault in (refused(SERVER, 401, text, hide=hidden), streamed_error(SERVER, text, hidden)):
        assert fault.text.endswith("no [key]")


def hidden(text: str) -> str:
    return text.replace("a/b", "[key]")


def test_a_long_text_is_told_in_part() -> None:
    assert len(str(refused(SERVER, 400, "x" * 60_000))) < 800


@pytest.mark.parametrize(
    "status, value, kind",
    [
        (
            400,
            {
                "error": {
                    "type": "exceed_context_size_error",
                    "message": "the request exceeds the available context size",
                }
            },
            FaultKind.TOO_LONG,
        ),
        (
            400,
            {"object": "error", "message": "This model's maximum context length is 4096 tokens."},
            FaultKind.TOO_LONG,
        ),
        (500, {"error": {"message": "prompt is too long"}}, FaultKind.TOO_LONG),
        (404, {"error": "model 'x' not found, try pulling it first"}, FaultKind.NOT_FOUND),
        (429, {"error": {"code": "rate_limit_exceeded", "message": "see your billing page"}}, FaultKind.THROTTLED),
        (429, {"error": {"code": "insufficient_quota", "message": "no"}}, FaultKind.QUOTA),
        (403, {"error": {"code": "content_filter", "message": "no"}}, FaultKind.REFUSED),
        (500, {"error": {"message": "The server is overloaded"}}, FaultKind.OVERLOADED),
        (500, {"error": {"message": "Too many requests"}}, FaultKind.THROTTLED),
        (418, {}, FaultKind.BAD_REQUEST),
        (302, {}, FaultKind.FOREIGN),
        (204, {}, FaultKind.FOREIGN),
        (599, {}, FaultKind.BAD_REQUEST),
    ],
)
def test_what_is_said_decides_the_kind_where_it_is_sure(status: int, value: Any, kind: FaultKind) -> None:
    assert refused(SERVER, status, json.dumps(value)).kind is kind


@pytest.mark.parametrize(
    "error, kind",
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, FaultKind.OVERLOADED),
        ({"type": "server_error", "message": "sorry"}, FaultKind.SERVER),
        ({"code": 502, "message": "gone"}, FaultKind.SERVER),
        ({"code": 429, "message": "slow down"}, FaultKind.THROTTLED),
        ({"code": "rate_limit_exceeded", "message": "slow down"}, FaultKind.THROTTLED),
        ({"code": 400, "message": "maximum context length"}, FaultKind.TOO_LONG),
        ({"type": "invalid_request_error", "message": "no"}, FaultKind.BAD_REQUEST),
        ({"type": "authentication_error", "message": "no"}, FaultKind.AUTHENTICATION),
        ({"code": "context_length_exceeded", "message": "no"}, FaultKind.TOO_LONG),
        ("it broke", FaultKind.SERVER),
        ({}, FaultKind.SERVER),
    ],
)
def test_an_error_inside_a_stream_has_a_kind_too(error: Any, kind: FaultKind) -> None:
    assert streamed_error(SERVER, json.dumps({"error": error})).kind is kind


def test_every_kind_that_stays_has_a_remedy_or_the_words_of_the_server() -> None:
    for kind in sorted(set(FaultKind) - RETRIED - {FaultKind.BAD_REQUEST}):
        assert SERVER.remedy(kind), kind
    assert "'gpt-5'" in SERVER.remedy(FaultKind.NOT_FOUND)
    assert "OPENAI_API_KEY" in SERVER.remedy(FaultKind.AUTHENTICATION)
