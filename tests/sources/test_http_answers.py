"""What HTTP can answer besides a message: what says no is a refusal, anything else leaves the outcome open."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import pytest

from actors.grants import Access
from actors.messages import CallFinished, Outcome
from actors.sources import MCPSource
from orchestrator.testing import call
from tests.core.stage import staged
from tests.sources.stage import LIMIT_S, entries, finished, told, user
from tests.sources.web import Web, answer, result, served

JSON = "application/json"


def ran(request: Any, text: str = "ran") -> bytes:
    """The body of a good answer."""
    content = [{"type": "text", "text": text}]
    return json.dumps({"jsonrpc": "2.0", "id": request, "result": {"content": content}}).encode()


def no(request: Any, code: int, message: str) -> bytes:
    """The body of an error."""
    return json.dumps({"jsonrpc": "2.0", "id": request, "error": {"code": code, "message": message}}).encode()


class Odd(Web):
    """A server that answers each call in one odd way: a status, a body made of the request's id, further headers."""

    def __init__(self, status: int, body: Any = b"", kind: str = "text/plain", more: str = "") -> None:
        super().__init__()
        self._odd = (status, body, kind, more)

    async def _call(self, writer: asyncio.StreamWriter, request: Any, params: dict[str, Any]) -> bool:
        self.calls.append(params["name"])
        status, body, kind, more = self._odd
        return await answer(writer, status, body(request) if callable(body) else body, kind=kind, more=more)


ELSEWHERE = "location: http://127.0.0.1:9/mcp\r\n"
PACKED = "content-encoding: gzip\r\n"


@pytest.mark.parametrize(
    "web, outcome, text",
    [
        (Odd(200, ran, JSON), Outcome.OK, "ran"),
        (Odd(200, b"<html>hello</html>", "text/html"), Outcome.UNKNOWN, "HTTP 200"),
        (Odd(200, b"{nope", JSON), Outcome.UNKNOWN, "what the protocol does not allow"),
        (Odd(202), Outcome.UNKNOWN, "HTTP 202"),
        (Odd(204), Outcome.UNKNOWN, "HTTP 204"),
        (Odd(302, more=ELSEWHERE), Outcome.ERROR, "not followed"),
        (Odd(307, more=ELSEWHERE), Outcome.ERROR, "not followed"),
        (Odd(400), Outcome.ERROR, "refused: HTTP 400"),
        (Odd(401), Outcome.ERROR, "refused: HTTP 401"),
        (Odd(429, more="retry-after: 30\r\n"), Outcome.ERROR, "refused: HTTP 429 X, retry after 30"),
        (Odd(500, b"broken"), Outcome.UNKNOWN, "HTTP 500"),
        (Odd(500, b'{"error": "broken"}', JSON), Outcome.UNKNOWN, "HTTP 500"),
        (Odd(500, lambda request: no(request, -32603, "broke"), JSON), Outcome.ERROR, "refused: broke (-32603)"),
        (Odd(502, b"<html>no</html>", "text/html"), Outcome.UNKNOWN, "HTTP 502"),
        (Odd(503, more="retry-after: 30\r\n"), Outcome.UNKNOWN, "HTTP 503 X, retry after 30"),
        (Odd(200, lambda request: no(request, -32600, "Session terminated"), JSON), Outcome.ERROR, "terminated"),
        (Odd(200, lambda request: gzip.compress(ran(request)), JSON, PACKED), Outcome.UNKNOWN, "is packed"),
        (Odd(200, lambda request: ran(request, "x" * 20_000_000), JSON), Outcome.UNKNOWN, "more than 16777216 bytes"),
    ],
)
async def test_only_what_says_no_is_a_refusal_and_nothing_is_sent_twice(web: Odd, outcome: Outcome, text: str) -> None:
    async with asyncio.timeout(LIMIT_S), served(web):
        source = MCPSource("s", url=web.url, access=Access.WRITE, call_s=60.0)
        runner, _ = staged(user(source), call("s__ok"), "end")
        async with runner, runner.start() as session:
            await session.run("go")
            seen, said = await finished(session), await told(session)
    assert (seen["s__ok"].outcome, text in seen["s__ok"].text) == (outcome, True), seen["s__ok"].text
    assert web.calls == ["ok"]
    assert said == []


@pytest.mark.parametrize("web", [Odd(404), Odd(404, lambda request: no(request, -32001, "Session not found"), JSON)])
async def test_a_call_that_a_forgetful_server_refuses_is_sent_twice_at_most(web: Odd) -> None:
    async with asyncio.timeout(LIMIT_S), served(web):
        source = MCPSource("s", url=web.url, access=Access.WRITE, call_s=5.0)
        runner, _ = staged(user(source), call("s__ok"), "end")
        async with runner, runner.start() as session:
            await session.run("go")
            seen, said = await finished(session), await told(session)
    assert seen["s__ok"].outcome is Outcome.ERROR
    assert "forgot the session twice" in seen["s__ok"].text
    assert web.calls == ["ok", "ok"]
    assert [kind for kind, _ in said] == ["server_lost", "server_back", "server_lost"]
    assert said[0][1] == "s: it had forgotten the session"


class Loose(Odd):
    """An odd server that knows no sessions."""

    async def _post(self, writer: asyncio.StreamWriter, headers: dict[str, str], message: dict[str, Any]) -> bool:
        if message.get("method") == "initialize":
            told = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}}
            return await result(writer, message["id"], {**told, "serverInfo": {"name": "loose", "version": "1"}})
        assert "mcp-session-id" not in headers
        self.sessions = {"any"}
        return await super()._post(writer, {**headers, "mcp-session-id": "any"}, message)


@pytest.mark.parametrize(
    "web, text",
    [
        (Loose(404), "refused: HTTP 404"),
        (Loose(404, lambda request: no(request, -32602, "no such thing"), JSON), "refused: no such thing (-32602)"),
    ],
)
async def test_a_server_without_sessions_has_none_to_forget_and_its_refusal_stands(web: Odd, text: str) -> None:
    async with asyncio.timeout(LIMIT_S), served(web):
        source = MCPSource("s", url=web.url, access=Access.WRITE, call_s=5.0)
        runner, _ = staged(user(source), call("s__ok"), "end")
        async with runner, runner.start() as session:
            await session.run("go")
            seen, said = await finished(session), await told(session)
    assert (seen["s__ok"].outcome, text in seen["s__ok"].text) == (Outcome.ERROR, True), seen["s__ok"].text
    assert web.calls == ["ok"]
    assert said == []


async def test_two_hundred_calls_of_one_server_are_in_flight_at_once_and_end_each_by_itself() -> None:
    web = Web()
    async with asyncio.timeout(LIMIT_S), served(web):
        source = MCPSource("s", url=web.url, access=Access.READ, call_s=3.0)
        calls = [call("s__hang", n=n) for n in range(150)] + [call("s__ok", n=n) for n in range(50)]
        runner, _ = staged(user(source), calls, "end")
        async with runner, runner.start() as session:
            await session.run("go")
            results = [e.record.result for e in await entries(session) if isinstance(e.record, CallFinished)]
            said = await told(session)
    assert said == []
    assert [each.outcome for each in results if each.name == "s__ok"] == [Outcome.OK] * 50
    assert [each.outcome for each in results if each.name == "s__hang"] == [Outcome.UNKNOWN] * 150


class Slow(Web):
    """A server that begins its answer to a call, or to a farewell, and never ends it."""

    head = b"HTTP/1.1 200 OK\r\n"

    async def _call(self, writer: asyncio.StreamWriter, _: Any, params: dict[str, Any]) -> bool:
        self.calls.append(params["name"])
        writer.write(self.head)
        await writer.drain()
        await self._over.wait()
        return False


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"])
async def test_a_server_that_never_ends_its_answer_is_silent_like_any_other(head: bytes) -> None:
    web = Slow()
    web.head = head
    async with asyncio.timeout(LIMIT_S), served(web):
        source = MCPSource("s", url=web.url, access=Access.READ, call_s=0.3)
        runner, _ = staged(user(source), call("s__ok"), "end")
        async with runner, runner.start() as session:
            await session.run("go")
            seen = await finished(session)
    assert "timed_out: the server s was silent for 0.3 s" in seen["s__ok"].text
