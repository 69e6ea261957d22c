"""One reply over the wire: from a good server, from a hostile one, and from none."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
from typing import TYPE_CHECKING, Any

import pytest

from actors.messages import ModelReply, ReplyStop, Results, Said, ToolCall, ToolResult, Usage
from orchestrator.models.fault import FaultKind, ModelFault
from orchestrator.models.function import FunctionModel, call
from orchestrator.models.retry import RETRY_NOTE, RetryPolicy
from orchestrator.models.shown import REPLACED_NOTE
from orchestrator.models.wire.client import Incoming, WireLimits
from tests.models import moves
from tests.models.asking import KEY, Asking, Waits, request, tool
from tests.models.certificate import self_signed
from tests.models.moves import says, well
from tests.models.provider import SSE, FakeProvider, chunk, event, events

if TYPE_CHECKING:
    from pathlib import Path

    from actors.ports import ModelRequest
    from tests.models.provider import Exchange, Move

TEXT = "Hello, world: \u00e9\u4e16\U0001f30d."
SPENT = Usage(40, 16, 8, 1)
OVERLOADED = {"type": "overloaded_error", "message": "Overloaded"}
PASSING = [
    (says(529), "529"),
    (says(503), "503"),
    (says(520), "520"),
    (says(500), "500"),
    (says(502), "502"),
    (says(504), "504"),
    (moves.bad_gateway, "HTTP 502: a web page"),
    (says(521), "521"),
    (says(522), "522"),
    (says(523), "523"),
    (says(524), "524"),
    (says(408), "408"),
    (says(409), "409"),
    (says(425), "425"),
    (says(429), "429"),
    (moves.fails_in_stream(OVERLOADED), "Overloaded"),
    (moves.fails_in_stream({"code": 502, "message": "bad gateway"}), "bad gateway"),
    (moves.fails_in_stream("it broke", name="error"), "it broke"),
    (moves.cut, "ended before the reply did"),
    (moves.closed, "broke"),
    (moves.reset, "broke"),
    (moves.reset_at_once, "broke"),
    (moves.damaged, "cannot be read"),
    (moves.nothing, "holds no reply"),
]
FINAL: list[tuple[Any, FaultKind, str]] = [
    (says(400, "bad thing"), FaultKind.BAD_REQUEST, "bad thing"),
    (says(401, "wrong key"), FaultKind.AUTHENTICATION, "set OPENAI_API_KEY"),
    (moves.broken_refusal, FaultKind.AUTHENTICATION, "the key is; set OPENAI_API_KEY"),
    (says(402, "pay"), FaultKind.QUOTA, "billing"),
    (says(403, "not yours"), FaultKind.FORBIDDEN, "OPENAI_API_KEY"),
    (says(404, "The model does not exist", "model_not_found"), FaultKind.NOT_FOUND, "check the model's name, 'fake'"),
    (says(413, "too big"), FaultKind.TOO_LARGE, "shorten"),
    (says(422, "what?"), FaultKind.BAD_REQUEST, "what?"),
    (says(501, "not built"), FaultKind.BAD_REQUEST, "not built"),
    (says(429, "You exceeded your quota", "insufficient_quota"), FaultKind.QUOTA, "billing"),
    (says(400, "This model's maximum context length is 8192 tokens"), FaultKind.TOO_LONG, "shorten"),
    (says(400, "too much", "context_length_exceeded"), FaultKind.TOO_LONG, "shorten"),
    (says(400, "filtered", "content_filter"), FaultKind.REFUSED, "other words"),
    (moves.fails_in_stream({"type": "invalid_request_error", "message": "no"}), FaultKind.BAD_REQUEST, "no"),
    (moves.page, FaultKind.FOREIGN, "base URL"),
    (moves.moved, FaultKind.FOREIGN, "elsewhere"),
]


def talking(*replies: ModelReply) -> FunctionModel:
    """A brain that says these things, one a request, whatever it is asked."""
    left = list(replies)
    return FunctionModel({}, default=lambda _: left.pop(0))


async def test_a_reply_comes_as_text_in_pieces_and_then_whole() -> None:
    with FakeProvider() as there:
        async with Asking(there.base_url) as it:
            assert await it.ask() == ModelReply(TEXT, usage=SPENT)
            assert it.heard.text == TEXT
            assert len(it.heard.told) > 1
    assert there.refusals == []
    assert there.headers[0]["authorization"] == f"bearer {KEY}"
    assert there.bodies[0]["stream_options"] == {"include_usage": True}
    assert there.bodies[0].keys() == {"model", "messages", "stream", "stream_options"}


async def test_calls_keep_their_order_names_and_exact_arguments_and_go_back_paired() -> None:
    first, second = call("repo.read", path="a.py"), call("plain", text='"\u00e9\\')
    seen: list[ModelRequest] = []

    def play(asked: ModelRequest) -> Any:
        seen.append(asked)
        return [ToolCall("", asked.tools[0].name, first.arguments), second] if len(asked.history) == 1 else "done"

    with FakeProvider(FunctionModel({}, default=play)) as there:
        async with Asking(there.base_url) as it:
            offered = (tool("repo.read"), tool("plain"))
            reply = await it.ask(request(tools=offered))
            assert [made.name for made in reply.calls] == ["repo.read", "plain"]
            assert [made.arguments for made in reply.calls] == [first.arguments, second.arguments]
            assert reply.stop is ReplyStop.TOOL_CALLS
            results = Results(tuple(ToolResult(made.id, made.name, f"told {made.name}") for made in reply.calls))
            again = await it.ask(request(Said("Hello?"), reply, results))
    assert again.text == "done"
    assert there.refusals == []
    assert seen[0].tools[0].name != "repo.read"
    (_, made, told) = seen[1].history
    assert isinstance(made, ModelReply)
    assert isinstance(told, Results)
    assert [result.text for result in told.results] == ["told repo.read", "told plain"]
    assert made.calls[0].name == seen[0].tools[0].name


@pytest.mark.requirement("B80")
@pytest.mark.parametrize("move, words", PASSING, ids=[f"{n}-{words}" for n, (_, words) in enumerate(PASSING)])
async def test_a_fault_that_may_pass_is_asked_again_told_once_and_shows_no_text_twice(move: Move, words: str) -> None:
    with FakeProvider(script=[move]) as there:
        async with Asking(there.base_url) as it:
            reply = await it.ask()
            assert (reply.text, reply.usage.requests) == (TEXT, 2)
            assert it.heard.text == TEXT
            (note,) = it.heard.notes
    assert note.kind == RETRY_NOTE
    assert words in note.text
    assert len(there.bodies) == 2
    assert there.bodies[0] == there.bodies[1]


@pytest.mark.requirement("B80")
@pytest.mark.parametrize("move, kind, words", FINAL, ids=[f"{n}-{kind}" for n, (_, kind, _) in enumerate(FINAL)])
async def test_a_fault_that_stays_ends_at_once_with_its_kind_and_a_remedy(
    move: Move, kind: FaultKind, words: str
) -> None:
    with FakeProvider(script=[move]) as there:
        async with Asking(there.base_url) as it:
            with pytest.raises(ModelFault) as caught:
                await it.ask()
            assert (it.heard.notes, it.waits.slept) == ([], [])
    assert caught.value.kind is kind
    assert words in str(caught.value)
    assert len(there.bodies) == 1


async def test_what_never_passes_is_given_up_after_the_last_attempt_and_says_how_often_it_was_asked() -> None:
    with FakeProvider(script=[says(503)] * 9) as there:
        async with Asking(there.base_url) as it:
            with pytest.raises(ModelFault, match=r"HTTP 503: not now \(asked 5 times\)"):
                await it.ask()
            assert len(it.heard.notes) == len(it.waits.slept) == 4
    assert len(there.bodies) == 5


async def test_a_tool_that_no_provider_takes_is_named_and_nothing_is_sent() -> None:
    with FakeProvider() as there:
        async with Asking(there.base_url) as it:
            with pytest.raises(ModelFault, match="the schema of the tool 'odd' is unfit: its top level has 'enum'"):
                await it.ask(request(tools=(tool("fine"), tool("odd", '{"enum": [{}]}'))))
            assert json.loads(it.model.tool_schema("{}")) == {"properties": {}, "type": "object"}
    assert there.bodies == []


async def test_the_wait_that_the_server_asks_for_is_the_wait() -> None:
    script = [says(429, retry_after="7"), says(429, retry_after_ms="1500"), says(503, retry_after="3")]
    with FakeProvider(script=script) as there:
        async with Asking(there.base_url) as it:
            assert (await it.ask()).text == TEXT
            assert it.waits.slept == [7.0, 1.5, 3.0]


async def test_a_server_that_wants_to_be_left_alone_for_too_long_is_not_waited_for() -> None:
    with FakeProvider(script=[says(429, retry_after="86400")]) as there:
        async with Asking(there.base_url) as it:
            with pytest.raises(ModelFault, match="asks to wait 86400 s"):
                await it.ask()
            assert it.waits.slept == []


@pytest.mark.parametrize("move", [moves.slow, moves.odd_bytes, moves.zipped, moves.not_streamed, moves.unmarked])
async def test_an_odd_answer_that_is_whole_is_an_answer(move: Move) -> None:
    with FakeProvider(script=[move]) as there:
        async with Asking(there.base_url) as it:
            assert await it.ask() == ModelReply(TEXT, usage=SPENT)
            assert it.heard.text == TEXT


@pytest.mark.parametrize("move", [moves.not_streamed, well])
@pytest.mark.parametrize("name", ["", "Application/JSON; charset=utf-8", "application/problem+json", "text/plain", SSE])
async def test_a_reply_is_read_as_it_begins_whatever_it_is_called(move: Move, name: str) -> None:
    async def called(it: Exchange) -> None:
        head = it.head
        it.head = lambda status=200, _="", **more: head(status, name, **more)  # type: ignore[method-assign]
        await move(it)

    with FakeProvider(script=[called]) as there:
        async with Asking(there.base_url) as it:
            assert await it.ask() == ModelReply(TEXT, usage=SPENT)


async def test_an_error_in_place_of_a_stream_is_told_whatever_it_is_called() -> None:
    async def said(it: Exchange) -> None:
        await it.whole(200, '\n{"error": {"message": "no such model", "code": 404}}', SSE)

    with FakeProvider(script=[said]) as there:
        async with Asking(there.base_url) as it:
            with pytest.raises(ModelFault, match="no such model") as caught:
                await it.ask()
    assert caught.value.kind is FaultKind.NOT_FOUND


async def test_an_end_mark_without_a_finish_reason_ends_a_reply() -> None:
    with FakeProvider(script=[moves.unfinished]) as there:
        async with Asking(there.base_url) as it:
            assert (await it.ask()).text == TEXT


async def test_what_a_failed_attempt_showed_and_the_next_says_otherwise_is_called_void_and_never_shown_twice() -> None:
    brain = talking(ModelReply("The answer is four, I think."), ModelReply("The answer was five."))
    with FakeProvider(brain, [moves.cut]) as there:
        async with Asking(there.base_url) as it:
            reply = await it.ask()
            told = it.heard.told
    assert reply.text == "The answer was five."
    (retry, void) = it.heard.notes
    assert (retry.kind, void.kind) == (RETRY_NOTE, REPLACED_NOTE)
    assert "only the first 11 characters stand" in void.text
    before = "".join(piece for piece in told[: told.index(void)] if isinstance(piece, str))
    after = "".join(piece for piece in told[told.index(void) :] if isinstance(piece, str))
    assert before[:11] + after == reply.text


async def test_an_answer_that_was_whole_when_its_connection_broke_is_not_asked_for_again() -> None:
    async def whole_then_reset(it: Exchange) -> None:
        await it.head()
        await it.send(event(chunk({"content": "All of it."})) + event(chunk({}, "stop")))
        it.reset()

    with FakeProvider(script=[whole_then_reset]) as there:
        async with Asking(there.base_url) as it:
            assert (await it.ask()).text == "All of it."
    assert len(there.bodies) == 1


async def test_a_server_that_says_all_and_then_nothing_is_not_waited_for_long() -> None:
    async def lingers(it: Exchange) -> None:
        await it.head()
        await it.send(event(chunk({"content": "All of it."})) + event(chunk({}, "stop")))
        await asyncio.Event().wait()

    with FakeProvider(script=[lingers]) as there:
        async with Asking(there.base_url, limits=WireLimits(tail_s=0.05)) as it, asyncio.timeout(2):
            assert (await it.ask()).text == "All of it."


@pytest.mark.parametrize("move", [moves.silent, moves.mute])
async def test_a_server_that_falls_silent_is_left_and_asked_again(move: Move) -> None:
    with FakeProvider(script=[move]) as there:
        async with Asking(there.base_url, limits=WireLimits(first_byte_s=0.3, idle_s=0.3)) as it:
            assert (await it.ask()).text == TEXT
            (note,) = it.heard.notes
    assert "fell silent (limits: first byte 0.3 s, next byte 0.3 s)" in note.text
    assert there.gone.wait(5)


async def test_nobody_at_the_address_is_told_with_the_address_and_the_doctor() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        async with Asking(f"http://127.0.0.1:{port}/v1", retry=RetryPolicy(attempts=2)) as it:
            with pytest.raises(
                ModelFault, match=rf"no connection to 127.0.0.1:{port}: Connection refused \(asked 2 times\).*doctor"
            ) as caught:
                await it.ask()
    assert caught.value.kind is FaultKind.CONNECTION


@pytest.mark.parametrize("limits", [WireLimits(max_reply_bytes=300), WireLimits(max_event_bytes=100)])
async def test_a_reply_or_an_event_beyond_its_limit_is_left(limits: WireLimits) -> None:
    with FakeProvider() as there:
        async with Asking(there.base_url, limits=limits) as it:
            with pytest.raises(ModelFault, match=r"more than \d+ bytes") as caught:
                await it.ask()
    assert caught.value.kind is FaultKind.FOREIGN


async def test_of_an_endless_error_the_beginning_is_read() -> None:
    async def endless(it: Exchange) -> None:
        await it.head(400, "text/plain")
        while True:
            await it.send(b"no, " * 1000)

    with FakeProvider(script=[endless]) as there:
        async with Asking(there.base_url) as it:
            with pytest.raises(ModelFault, match="HTTP 400: no, no"):
                await it.ask()
    assert there.gone.is_set()


async def test_one_connection_serves_many_requests_and_many_sessions_share_one_model() -> None:
    with FakeProvider() as there:
        async with Asking(there.base_url) as it:
            for _ in range(3):
                await it.ask()
            assert there.connections == 1
            replies = await asyncio.gather(*(it.ask() for _ in range(20)))
    assert {reply.text for reply in replies} == {TEXT}
    assert there.connections <= 20


async def test_a_connection_whose_end_comes_after_the_end_mark_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    drained, drain = threading.Event(), Incoming.drain

    async def draining(incoming: Incoming) -> None:
        drained.set()
        await drain(incoming)

    async def ends_late(it: Exchange) -> None:
        await it.head()
        await it.send(b"".join(events(it.reply)))
        await asyncio.to_thread(drained.wait, 5)
        drained.clear()
        await it.end()

    monkeypatch.setattr(Incoming, "drain", draining)
    monkeypatch.setattr("orchestrator.models.wire.client.DRAIN_S", 5)
    with FakeProvider(script=[ends_late] * 3) as there:
        async with Asking(there.base_url) as it:
            assert [(await it.ask()).text for _ in range(3)] == [TEXT] * 3
            assert there.connections == 1


async def test_a_reply_is_asked_for_uncompressed_and_a_cookie_is_not_sent_back() -> None:
    async def sets_a_cookie(it: Exchange) -> None:
        await it.whole(200, b"".join(events(it.reply)), SSE, set_cookie="who=you; Path=/")

    with FakeProvider(script=[sets_a_cookie] * 2) as there:
        async with Asking(there.base_url.replace("127.0.0.1", "localhost")) as it:  # an address may set no cookie
            for _ in range(2):
                assert (await it.ask()).text == TEXT
    assert [head["accept-encoding"] for head in there.headers] == ["identity"] * 2
    assert not [head for head in there.headers if "cookie" in head]


async def test_more_requests_than_connections_wait_and_are_all_answered() -> None:
    with FakeProvider() as there:
        async with Asking(there.base_url, limits=WireLimits(connections=2)) as it:
            replies = await asyncio.gather(*(it.ask() for _ in range(10)))
    assert len(replies) == 10
    assert there.connections <= 2


async def test_closing_leaves_no_connection_and_may_be_done_twice() -> None:
    with FakeProvider() as there:
        it = Asking(there.base_url)
        await it.ask()
        await it.model.close()
        assert await asyncio.to_thread(there.gone.wait, 5)
        await it.model.close()
    never_used = Asking(there.base_url)
    await never_used.model.close()


@pytest.mark.parametrize("move", [moves.silent, moves.mute])
async def test_a_cancel_ends_the_request_and_the_server_sees_it(move: Move) -> None:
    with FakeProvider(script=[move]) as there:
        async with Asking(there.base_url) as it:
            asking = asyncio.create_task(it.ask())
            assert await asyncio.to_thread(there.came.wait, 5)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert await asyncio.to_thread(there.gone.wait, 5)
            assert len(there.bodies) == 1
            assert it.heard.notes == []


async def test_a_cancel_during_the_wait_for_another_attempt_asks_nothing_more() -> None:
    waits = Waits(held=True)
    with FakeProvider(script=[says(503)]) as there:
        async with Asking(there.base_url, waits=waits) as it:
            asking = asyncio.create_task(it.ask())
            await waits.begun.wait()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
    assert len(there.bodies) == 1
    assert len(it.heard.notes) == 1


async def test_the_key_is_in_no_error_no_repr_and_no_note_though_the_server_repeats_it() -> None:
    script = [says(500, f"failed with {KEY}"), moves.fails_in_stream({"message": f"bad {KEY}"}), says(401, f"no {KEY}")]
    with FakeProvider(script=script) as there:
        async with Asking(there.base_url) as it:
            with pytest.raises(ModelFault) as caught:
                await it.ask()
            told = [str(caught.value), repr(caught.value), repr(it.model), *(note.text for note in it.heard.notes)]
            told += [repr(vars(it.model)), json.dumps(there.bodies)]
    assert len(it.heard.notes) == 2
    assert not [text for text in told if KEY in text]
    assert "[key]" in told[0]


async def test_a_proxy_of_the_environment_is_used_except_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeProvider() as proxy:
        for name in ("http_proxy", "HTTP_PROXY"):
            monkeypatch.setenv(name, proxy.base_url.removesuffix("/v1"))
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        async with Asking("http://model.internal/v1") as it:
            with pytest.raises(ModelFault, match=r"nothing at POST http://model\.internal/v1/chat/completions"):
                await it.ask()
        assert len(proxy.bodies) == 1
        with FakeProvider() as there:
            async with Asking(there.base_url) as it:
                assert (await it.ask()).text == TEXT
    assert len(proxy.bodies) == 1


@pytest.mark.parametrize(
    "proxy, words",
    [
        ("http://me:{KEY}@127.0.0.1:{port}", "no connection to model.internal by the proxy 127.0.0.1:{port}: HTTP 407"),
        ("127.0.0.1:{port}", "no connection to model.internal by the proxy 127.0.0.1:{port}: HTTP 407"),
        ("http://me:{KEY}@127.0.0.1:{shut}", "by the proxy 127.0.0.1:{shut}: Connection refused"),
        ("socks5h://me:{KEY}@127.0.0.1:{port}", "none that we can use (socks5h://…); give an http:// one"),
        ("http://me:{KEY}@127.0.0.1:port", "the proxy for model.internal in the environment is no address"),
    ],
)
async def test_a_proxy_that_does_not_serve_is_named_and_its_password_is_not(
    proxy: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()

    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        places = {"port": server.sockets[0].getsockname()[1], "shut": closed.getsockname()[1], "KEY": KEY}
        for name in ("https_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, proxy.format(**places))
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        async with server, Asking("https://model.internal/v1", retry=RetryPolicy(attempts=1)) as it:
            with pytest.raises(ModelFault) as caught:
                await it.ask()
    assert words.format(**places) in str(caught.value)
    assert "http_proxy, https_proxy, all_proxy" in caught.value.remedy
    assert KEY not in str(caught.value)


async def test_an_address_that_no_name_server_takes_is_told_as_one() -> None:
    async with Asking("http://..internal/v1") as it:
        with pytest.raises(ModelFault, match="is no address; check the URL"):
            await it.ask()


async def test_a_server_whose_certificate_nobody_vouches_for_gets_neither_request_nor_key(tmp_path: Path) -> None:
    taken: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        taken.append(await reader.read(1))
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed(tmp_path))
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server, Asking(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1") as it:
        with pytest.raises(ModelFault, match=r"cannot be trusted.*SSL_CERT_FILE") as caught:
            await it.ask()
    assert caught.value.kind is FaultKind.FOREIGN
    assert b"".join(taken) == b""
