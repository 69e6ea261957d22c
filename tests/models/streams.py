"""Streams of Chat Completions servers: shapes of real ones, others made by chance, and ways to damage both."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DONE = "[DONE]"
LETTERS = 'ab c{}"\\/\n\t.:,\u00e9\u0142\u4e16\U0001f30d\u2028\x85'


class Stream(NamedTuple):
    """A stream by its name, as bytes."""

    name: str
    data: bytes


def written(*events: Any) -> bytes:
    """The bytes of events: a value as JSON, a text as it is."""
    lines = (one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in events)
    return "".join(f"data: {line}\n\n" for line in lines).encode("utf-8", "surrogatepass")


def chunk(delta: dict[str, Any] | None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """One chunk; ``None``: without any choice."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}


def begun(index: int, known: str, name: str, arguments: str | None = "") -> dict[str, Any]:
    """The delta that begins a call."""
    function = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
    return {"tool_calls": [{"index": index, "id": known, "type": "function", "function": function}]}


def more(index: int, arguments: str) -> dict[str, Any]:
    """The delta that goes on with a call."""
    return {"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}


USAGE = {"prompt_tokens": 19, "completion_tokens": 10, "total_tokens": 29}
CACHED = {**USAGE, "prompt_tokens_details": {"cached_tokens": 8, "audio_tokens": 0}}
FIRST = {"role": "assistant", "content": ""}

RECORDED: dict[str, bytes] = {
    "openai text": written(
        chunk({**FIRST, "refusal": None}, usage=None, service_tier="default", obfuscation="x"),
        chunk({"content": "Hello"}, usage=None),
        chunk({"content": " there."}, usage=None),
        chunk({}, "stop", usage=None),
        chunk(None, usage=CACHED),
        DONE,
    ),
    "openai two calls": written(
        chunk({"role": "assistant", "content": None, **begun(0, "call_a", "read")}),
        chunk(more(0, '{"pa')),
        chunk(more(0, 'th":"a"}')),
        chunk(begun(1, "call_b", "list")),
        chunk(more(1, "{}")),
        chunk({}, "tool_calls"),
        chunk(None, usage=USAGE),
        DONE,
    ),
    "openai length": written(chunk({"content": "It was"}), chunk({}, "length"), DONE),
    "openai refusal": written(chunk({"refusal": "I cannot"}), chunk({"refusal": " help."}), chunk({}, "stop"), DONE),
    "azure filter": written(
        {**chunk(None), "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]},
        chunk({"role": "assistant", "content": "So"}),
        chunk({}, "content_filter"),
        DONE,
    ),
    "ollama call whole": written(
        chunk({"role": "assistant", "content": "", **begun(0, "call_x1", "read", '{"path":"a"}')}),
        chunk({"role": "assistant", "content": ""}, "tool_calls", usage=USAGE),
        DONE,
    ),
    "one index for all": written(
        chunk(begun(0, "call_x1", "read", '{"path":"a"}')),
        chunk(begun(0, "call_x2", "list", "{}"), "stop"),
        DONE,
    ),
    "filtered in a call": written(chunk(begun(0, "call_f", "read", '{"path":"a"')), chunk({}, "content_filter"), DONE),
    "name each time": written(
        chunk(begun(0, "call_n", "read", '{"path"')), chunk(begun(0, "call_n", "read", ':"a"}'), "tool_calls"), DONE
    ),
    "ollama thinks": written(
        chunk({"role": "assistant", "content": "", "reasoning": "Let me"}),
        chunk({"role": "assistant", "content": "", "reasoning": " see."}),
        chunk({"role": "assistant", "content": "Yes."}),
        chunk({"role": "assistant", "content": ""}, "stop"),
        DONE,
    ),
    "llama.cpp": written(
        chunk({"role": "assistant", "content": None}),
        chunk({"content": "Hi"}),
        chunk({}, "stop", timings={"prompt_n": 3, "predicted_per_second": 51.5}),
        chunk(None, usage=USAGE, timings={"prompt_n": 3}),
        DONE,
    ),
    "vllm": written(
        chunk({"role": "assistant", "content": ""}, prompt_token_ids=None),
        chunk({"reasoning_content": "Hm. "}),
        chunk({"content": "Fine", "reasoning_content": None}),
        {**chunk({"content": ""}, "stop"), "usage": None},
        chunk(None, usage={**USAGE, "prompt_tokens_details": None}),
        DONE,
    ),
    "vllm call": written(
        chunk({"role": "assistant", "content": ""}),
        chunk(begun(0, "chatcmpl-tool-1", "read", None)),
        chunk(more(0, '{"path": "')),
        chunk(more(0, 'a"}')),
        chunk({"content": ""}, "tool_calls"),
        DONE,
    ),
    "openrouter": b": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n"
    + written(
        chunk({"role": "assistant", "content": "", "reasoning": "Well", "reasoning_details": []}, provider="P"),
        chunk({"role": "assistant", "content": "Yes"}, native_finish_reason=None),
        chunk({"role": "assistant", "content": ""}, "stop", native_finish_reason="stop"),
        chunk({"role": "assistant", "content": ""}, usage={**CACHED, "cost": 0.001}),
        DONE,
    ),
    "deepseek": written(
        chunk({"role": "assistant", "content": None, "reasoning_content": ""}),
        chunk({"content": None, "reasoning_content": "First"}),
        chunk({"content": "Then", "reasoning_content": None}),
        chunk({"content": "", "reasoning_content": None}, "stop", usage={**USAGE, "prompt_cache_hit_tokens": 0}),
        DONE,
    ),
    "groq": written(
        chunk({"role": "assistant", "content": ""}, x_groq={"id": "req_1"}),
        chunk({"content": "Fast"}),
        chunk({}, "stop", x_groq={"usage": USAGE}),
        chunk(None, usage=USAGE),
        DONE,
    ),
    "mistral": written(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Bon"}),
        chunk({"content": ""}, "stop", usage=USAGE),
        DONE,
    ),
    "mistral call": written(
        chunk({"role": "assistant", "content": ""}),
        chunk(
            {"tool_calls": [{"id": "D681PevKs", "index": 0, "function": {"name": "read", "arguments": '{"a": 1}'}}]},
            "tool_calls",
            usage=USAGE,
        ),
        DONE,
    ),
    "error at once": written({"error": {"message": "no model loaded", "type": "server_error", "code": 500}}),
    "error later": written(chunk({"content": "It"}), {"error": {"message": "Overloaded", "type": "overloaded_error"}}),
    "openrouter error": written(
        chunk({"content": "It"}), {**chunk({"content": ""}, "error"), "error": {"code": 502, "message": "gone"}}
    ),
    "usage each time": written(
        chunk({"content": "a"}, usage={"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}),
        chunk({"content": "b"}, usage={"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}),
        chunk({}, "stop", usage={"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}),
        DONE,
    ),
    "crlf": written(chunk({"content": "a"}), chunk({}, "stop"), DONE).replace(b"\n", b"\r\n"),
    "no blank": written(chunk({"content": "a"}), chunk({}, "stop"), DONE).replace(b"data: ", b"data:"),
    "named and numbered": written(chunk({"content": "a"}), chunk({}, "stop"), DONE).replace(
        b"data: ", b"id: 7\nretry: 10\nevent: message\ndata: "
    ),
    "nothing": b"",
    "only the end": written(DONE),
    "only a comment": b": hello\n\n",
}


def generated(seed: int) -> list[Any]:
    """The events of a stream made by chance: text, thought and calls in pieces, counts here and there."""
    chance = random.Random(seed)
    text = lambda most: "".join(chance.choices(LETTERS, k=chance.randrange(most)))  # noqa: E731
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": chance.choice(["", None])}]
    for _ in range(chance.randrange(6)):
        deltas.append({"content": text(8)})
        if not chance.randrange(4):
            deltas.append({chance.choice(["reasoning", "reasoning_content"]): text(8)})
    calls = chance.choice([0, 0, 1, 2, 3])
    for index in range(calls):
        arguments = json.dumps({"text": text(20), "n": chance.randrange(99)}, ensure_ascii=bool(chance.randrange(2)))
        deltas.append(begun(index, f"call_{seed}_{index}", chance.choice(["read", "write", "look-up"])))
        while arguments:
            at = chance.randrange(1, 12)
            deltas.append(more(index, arguments[:at]))
            arguments = arguments[at:]
    finish = "tool_calls" if calls else chance.choice(["stop", "stop", "length"])
    usage = {**CACHED, "completion_tokens": chance.randrange(1, 99)}
    events: list[Any] = [chunk(delta) for delta in deltas]
    if chance.randrange(2):
        return [*events, chunk({}, finish, usage=usage), DONE]
    return [*events, chunk({}, finish), chunk(None, usage=usage), DONE]


def framed(events: list[Any], chance: random.Random) -> bytes:
    """The bytes of *events*, with line ends and comments as they may be."""
    end = chance.choice(["\n", "\n", "\r\n"])
    lines = []
    for one in events:
        line = one if isinstance(one, str) else json.dumps(one, ensure_ascii=bool(chance.randrange(2)))
        comment = f": ping{end}{end}" if not chance.randrange(6) else ""
        lines.append(f"{comment}data: {line}{end}{end}")
    return "".join(lines).encode()


def without(events: list[Any], chance: random.Random) -> list[Any]:
    """One event is lost."""
    lost = chance.randrange(len(events))
    return [one for place, one in enumerate(events) if place != lost]


def doubled(events: list[Any], chance: random.Random) -> list[Any]:
    """One event comes twice."""
    place = chance.randrange(len(events))
    return [*events[: place + 1], *events[place:]]


def swapped(events: list[Any], chance: random.Random) -> list[Any]:
    """Two events change places."""
    done = list(events)
    one, other = chance.randrange(len(done)), chance.randrange(len(done))
    done[one], done[other] = done[other], done[one]
    return done


def mistyped(events: list[Any], chance: random.Random) -> list[Any]:
    """One value is of another type."""
    done = json.loads(json.dumps(events))
    targets = [one["choices"][0] for one in done if isinstance(one, dict) and one["choices"]]
    choice = chance.choice(targets)
    wrong = chance.choice([7, True, [1], {"a": 1}])
    where = chance.choice(["content", "finish_reason", "tool_calls", "delta", "name", "arguments"])
    calls = choice["delta"].get("tool_calls")
    if where in ("name", "arguments"):
        (calls[0]["function"] if calls else choice["delta"])[where if calls else "content"] = wrong
    elif where in ("finish_reason", "delta"):
        choice[where] = wrong
    else:
        choice["delta"][where] = wrong
    return done


def cut(data: bytes, chance: random.Random) -> bytes:
    """The stream breaks off."""
    return data[: chance.randrange(len(data))]


def flipped(data: bytes, chance: random.Random) -> bytes:
    """One bit is another."""
    place = chance.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]


def no_text(data: bytes, chance: random.Random) -> bytes:
    """A byte that is no text stands somewhere."""
    place = chance.randrange(len(data))
    return data[:place] + chance.choice([b"\xff", b"\xc3", b"\xed\xa0\x80"]) + data[place:]


EVENTS: tuple[Callable[..., list[Any]], ...] = (without, doubled, swapped, mistyped)
BYTES: tuple[Callable[..., bytes], ...] = (cut, flipped, no_text)


def every_stream() -> Iterator[Stream]:
    """The recorded ones, 250 made by chance, and each of these damaged in two ways."""
    for name, data in RECORDED.items():
        yield Stream(name, data)
    for seed in range(250):
        chance = random.Random(f"damage {seed}")
        events = generated(seed)
        yield Stream(f"generated {seed}", framed(events, chance))
        change = EVENTS[seed % len(EVENTS)]
        yield Stream(f"{change.__name__} {seed}", framed(change(events, chance), chance))
        damage = BYTES[seed % len(BYTES)]
        yield Stream(f"{damage.__name__} {seed}", damage(framed(events, chance), chance))
