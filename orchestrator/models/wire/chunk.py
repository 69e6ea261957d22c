"""What a Chat Completions server sends, typed: the fields we read, each of which a real server may leave out.

Rules:

- A field that we do not read may hold anything. One that we read and that has another type makes the chunk damaged.
  So does the lack of ``choices``, except in the counts that follow a whole reply.
- ``reasoning_content`` (DeepSeek, vLLM, llama.cpp) and ``reasoning`` (OpenRouter, Ollama, newer vLLM) are one thing.
- A whole reply that is not streamed has a ``message`` where a chunk has a ``delta``.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

__all__ = ["CallPiece", "Choice", "Chunk", "Counts", "Piece", "decode_chunk"]


class FunctionPiece(msgspec.Struct, gc=False):
    """A piece of a call: its name, usually whole, and the next letters of its arguments."""

    name: str | None = None
    arguments: str | None = None


class CallPiece(msgspec.Struct, gc=False):
    """A piece of the call at *index*."""

    index: int | None = None
    id: str | None = None
    function: FunctionPiece | None = None


class Part(msgspec.Struct, gc=False):
    """A part of a content that is no plain text; only texts count."""

    type: str | None = None
    text: str | None = None


class Piece(msgspec.Struct, gc=False):
    """What a chunk adds to the reply."""

    content: str | list[Part] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[CallPiece] | None = None


class Choice(msgspec.Struct, gc=False):
    """One of the replies that were asked for; ours is the first."""

    index: int | None = None
    delta: Piece | None = None
    message: Piece | None = None
    finish_reason: str | None = None


class Details(msgspec.Struct, gc=False):
    """How many of the input tokens came from a cache."""

    cached_tokens: int | None = None


class Counts(msgspec.Struct, gc=False):
    """Tokens spent so far: cumulative, so that a later count replaces an earlier one."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: Details | None = None
    prompt_cache_hit_tokens: int | None = None

    @property
    def cached(self) -> int | None:
        """Input tokens from a cache, where the server says so."""
        details = self.prompt_tokens_details
        if details is not None and details.cached_tokens is not None:
            return details.cached_tokens
        return self.prompt_cache_hit_tokens


class Chunk(msgspec.Struct, gc=False):
    """One event of a stream, or a whole reply, or an error."""

    choices: list[Choice] | None = None
    usage: Counts | None = None
    error: Any = None


DECODER = msgspec.json.Decoder(Chunk)


def decode_chunk(data: bytes) -> Chunk:
    """Return the chunk that *data* encodes. Raises ValueError where it is none.

    Half surrogate pairs, which some servers send in two chunks, are let through: whoever joins the texts mends them.
    """
    try:
        return DECODER.decode(data)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        return msgspec.convert(_loose(data), Chunk)


def _loose(data: bytes) -> Any:
    """Return the JSON value of *data* with half surrogate pairs. Raises ValueError."""
    try:
        return json.loads(data.decode(), parse_constant=_no_constant)
    except RecursionError as error:
        msg = "nested too deep"
        raise ValueError(msg) from error


def _no_constant(name: str) -> Any:
    msg = f"{name} is not JSON"
    raise ValueError(msg)
