"""The same bytes read by the official SDK and by us: they agree, or we are stricter by one of the rules named here.

The SDK gives chunks; they are put together as its documentation shows: pieces by index, texts joined, the last usage.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx2
import openai

from actors.messages import ReplyStop
from orchestrator.models.fault import FaultKind, ModelFault
from orchestrator.models.shown import Shown
from orchestrator.models.wire.answer import Server
from orchestrator.models.wire.client import Endpoint, WireLimits
from orchestrator.models.wire.reading import Reading
from tests.models.streams import Stream, every_stream

if TYPE_CHECKING:
    from collections.abc import Callable

STOPS = {"length": ReplyStop.LENGTH, "content_filter": ReplyStop.REFUSED}
ENDED = (b"\n\n", b"\r\n\r\n")


class Read(NamedTuple):
    """What a reader made of a stream: a reply, or a fault of some kind."""

    fault: str = ""
    text: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    stop: ReplyStop | None = None
    usage: tuple[int, int, int] = (0, 0, 0)
    detail: str = ""

    @property
    def reply(self) -> tuple[Any, ...]:
        """All of the reply that is compared."""
        return self[:5]


class Body:
    """A response with this body, in pieces of any size."""

    headers = {"content-type": "text/event-stream"}  # noqa: RUF012  # it is read only

    def __init__(self, stream: Stream) -> None:
        self.left = stream.data
        self.chance = random.Random(stream.name)

    async def read(self) -> bytes:
        """Give the next piece."""
        size = self.chance.randrange(1, 90)
        piece, self.left = self.left[:size], self.left[size:]
        return piece

    async def drain(self) -> None:
        """There is nothing to do."""

    def hurry(self) -> None:
        """There is no time here."""


async def ours(stream: Stream) -> Read:
    """Read it as the wire does."""
    shown: list[Any] = []
    reading = Reading(Server("m", "u"), Endpoint("u"), WireLimits(), Shown(shown.append))
    try:
        await reading.read(Body(stream))  # type: ignore[arg-type]  # a body without a socket
        reply = reading.reply(1)
    except ModelFault as fault:
        return Read(fault.kind.value, detail=fault.text)
    assert "".join(shown) == reply.text or reply.stop is ReplyStop.REFUSED
    calls = tuple((call.id, call.name, call.arguments) for call in reply.calls)
    spent = reply.usage
    return Read("", reply.text, calls, reply.stop, (spent.input_tokens, spent.cached_tokens, spent.output_tokens))


def theirs(stream: Stream) -> Read:
    """Read it with the SDK."""
    headers = {"content-type": "text/event-stream"}
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, headers=headers, content=stream.data))
    http = httpx2.Client(transport=transport)
    with openai.OpenAI(api_key="none", base_url="http://sdk/v1", http_client=http, max_retries=0) as client:
        try:
            told = list(
                client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}], stream=True)
            )
        except (openai.APIError, ValueError) as error:
            return Read(type(error).__name__)
    try:
        return put_together(told)
    except (AttributeError, TypeError) as error:  # the SDK checks no types: what it gave is not what it says it gives
        return Read(type(error).__name__)


def put_together(told: list[Any]) -> Read:
    """Put the SDK's chunks together."""
    text, refusal, finish, usage = "", "", None, None
    calls: dict[int, list[str]] = {}
    for chunk in told:
        usage = chunk.usage or usage
        for choice in chunk.choices or ():
            finish = choice.finish_reason or finish
            delta = choice.delta
            text += plain(getattr(delta, "content", None))
            refusal += plain(getattr(delta, "refusal", None))
            made = getattr(delta, "tool_calls", None)
            for piece in made if isinstance(made, list) else ():
                call = calls.setdefault(piece.index, ["", "", ""])
                call[0] = call[0] or plain(piece.id)
                if piece.function is not None:
                    call[1] = call[1] or plain(piece.function.name)
                    call[2] += plain(piece.function.arguments)
    stop = STOPS.get(str(finish), ReplyStop.TOOL_CALLS if calls else ReplyStop.END)
    details = None if usage is None else usage.prompt_tokens_details
    cached = 0 if details is None else details.cached_tokens or 0
    return Read(
        "",
        text or refusal,
        tuple((known, name, arguments) for _, (known, name, arguments) in sorted(calls.items())),
        ReplyStop.REFUSED if refusal else stop,
        (0, 0, 0) if usage is None else (usage.prompt_tokens or 0, cached, usage.completion_tokens or 0),
        "" if finish is None else str(finish),
    )


def plain(value: Any) -> str:
    """A text as it is, anything else as no text."""
    return value if isinstance(value, str) else ""


def cut(stream: Stream, mine: Read, sdk: Read) -> bool:
    """A stream that ends without a finish reason or end mark, or within an event, is no reply: its rest is missing."""
    return mine.fault == FaultKind.CUT and (not sdk.detail or not stream.data.endswith(ENDED))


def mistyped(_: Stream, mine: Read, __: Read) -> bool:
    """A field that we read has the type that it should have: a number is no text, and what it meant is not known."""
    return mine.fault == FaultKind.DAMAGED and "Expected `" in mine.detail


def without_choices(_: Stream, mine: Read, __: Read) -> bool:
    """A chunk has choices, if no more than an empty list: without, what it added is lost."""
    return mine.fault == FaultKind.DAMAGED and "has no choices" in mine.detail


def empty(_: Stream, mine: Read, sdk: Read) -> bool:
    """A stream that ends well and has no choice in it is no reply, not an empty one."""
    return mine.fault == FaultKind.EMPTY and sdk.reply == Read("", "", (), ReplyStop.END, sdk.usage).reply


def filtered(_: Stream, mine: Read, sdk: Read) -> bool:
    """A reply that a filter stopped runs nothing: its calls may be cut anywhere."""
    return mine.stop is ReplyStop.REFUSED and bool(sdk.calls) and mine.reply == sdk._replace(calls=()).reply


def another_id(_: Stream, mine: Read, sdk: Read) -> bool:
    """Two ids are two calls, though a server gave both one index: joined they would be neither."""
    joined = "".join(arguments for _, _, arguments in mine.calls)
    return len(mine.calls) > len(sdk.calls) == 1 and sdk.calls[0][2] == joined and mine.text == sdk.text


RULES: tuple[Callable[[Stream, Read, Read], bool], ...] = (cut, mistyped, without_choices, empty, filtered, another_id)


async def test_the_official_sdk_and_the_wire_agree_or_the_wire_is_stricter_by_a_rule_that_has_a_name() -> None:
    counted: Counter[str] = Counter()
    unexplained = []
    for stream in every_stream():
        mine, sdk = await ours(stream), theirs(stream)
        if mine.fault and sdk.fault:
            counted["both refuse"] += 1
        elif mine.reply == sdk.reply:
            counted["same reply"] += 1
        else:
            rule = next((rule.__name__ for rule in RULES if not sdk.fault and rule(stream, mine, sdk)), "")
            counted[rule or "unexplained"] += 1
            if not rule:
                unexplained.append((stream.name, mine, sdk))
    assert unexplained == []
    assert counted.total() == 778
    assert counted["same reply"] >= 400
    assert counted["both refuse"] >= 80
    assert {rule.__name__ for rule in RULES} <= counted.keys()
