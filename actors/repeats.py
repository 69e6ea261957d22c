"""Whether a turn goes round: equal calls with equal results, counted. Pure.

Rules:

- Key order and blanks of the arguments make no difference; of a result the first characters are compared.
- Anything new in a step, a call or a result, starts the counts again: work that makes progress is no loop.
- Pairs are remembered for a while, so that A, B, A, B … is seen as well as A, A, A …
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.messages import ToolCall, ToolResult

__all__ = ["Pair", "Seen", "count_pairs"]

Pair = tuple[str, str, str]
Seen = tuple[tuple[Pair, int], ...]
REMEMBERED_PAIRS = 16
COMPARED_CHARACTERS = 500


def count_pairs(seen: Seen, calls: tuple[ToolCall, ...], results: tuple[ToolResult, ...]) -> tuple[Seen, int]:
    """Return the pairs of *seen* and of one step with their counts, and the highest count if nothing was new."""
    counts = dict(seen)
    pairs = dict.fromkeys(_pair(call, result, counts) for call, result in _answers(calls, results))
    if all(pair in counts for pair in pairs):
        for pair in pairs:
            counts[pair] += 1
        return tuple(counts.items()), max(counts.values())
    counts = dict.fromkeys((*counts, *pairs), 1)
    return tuple(counts.items())[-max(REMEMBERED_PAIRS, len(pairs)) :], 1


def _answers(calls: tuple[ToolCall, ...], results: tuple[ToolResult, ...]) -> Iterable[tuple[ToolCall, ToolResult]]:
    if len(results) == 1:
        return ((calls[0], results[0]),)
    by_id = {result.call_id: result for result in results}
    return ((call, by_id[call.id]) for call in calls)


def _pair(call: ToolCall, result: ToolResult, known: dict[Pair, int]) -> Pair:
    """Return what is compared of a call and its result; arguments equal to known ones but for form are those."""
    pair = (call.name, call.arguments, result.text[:COMPARED_CHARACTERS])
    if pair in known:
        return pair
    for other in known:
        if other[0] == pair[0] and other[2] == pair[2] and _same_text(other[1]) == _same_text(pair[1]):
            return other
    return pair


def _same_text(arguments: str) -> str:
    """Return *arguments* so that key order and blanks make no difference."""
    try:
        return msgspec.json.encode(msgspec.json.decode(arguments), order="sorted").decode()
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return arguments
