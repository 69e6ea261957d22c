"""JSON Schemas compiled, and values and answers judged by them: without files, without network, whatever one refers to.

Everything that is held to a schema is judged here: arguments and answers of tools, what people are asked, final
answers of agents and of workflow steps. What is said of a fault is bounded, however long the value.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import Any

import msgspec

from actors.answers import unfenced
from actors.messages import ModelReplied, ModelReply
from actors.text import clean, clip

__all__ = ["MAX_FAULT", "UnusableSchema", "answer_fault", "answer_faults", "compile_schema", "judged", "value_faults"]

MAX_FAULTS = 5
MAX_FAULT = 300
MAX_BEGIN = 100


class UnusableSchema(ValueError):
    """A schema that cannot be used. ``path`` leads to what is wrong in it, ``message`` says it in one line."""

    def __init__(self, text: str, message: str, path: tuple[str, ...] = ()) -> None:
        self.message = message
        self.path = path
        super().__init__(text)


def compile_schema(text: str) -> Any:
    """Return a validator of the JSON Schema *text*. It opens no file and no socket. Raises `UnusableSchema`."""
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(msgspec.json.decode(text), validate_formats=True, offline=True)
    except jsonschema_rs.ValidationError as error:
        raise UnusableSchema(str(error), error.message, tuple(map(str, error.instance_path))) from error
    except (ValueError, jsonschema_rs.ReferencingError, RecursionError) as error:
        raise UnusableSchema(str(error), str(error).partition("\n")[0]) from error


_compiled = lru_cache(maxsize=1024)(compile_schema)


def value_faults(schema: str, value: Any, whole: str = "the output") -> tuple[str, ...]:
    """Return why *value* is not what *schema* asks for, at most five bounded sentences; none when it is.

    Each begins with the place of the fault; *whole* is what the value itself is called. Raises `UnusableSchema`.
    """
    validator = _compiled(schema)
    try:
        found = list(islice(validator.iter_errors(value), MAX_FAULTS))
    except (ValueError, OverflowError, RecursionError) as error:
        return (clip(f"{whole} cannot be checked: {error}", MAX_FAULT),)
    return tuple(_ends(f"{'.'.join(map(str, e.instance_path)) or whole}: {e.message}") for e in found)


def _ends(text: str) -> str:
    """Return *text*, of a long one its two ends: it begins with the value, and the end says what is wrong with it."""
    return clean(text if len(text) <= MAX_FAULT else f"{text[:MAX_BEGIN]}…{text[MAX_BEGIN + 1 - MAX_FAULT :]}")


def answer_faults(schema: str, answer: str) -> tuple[str, ...]:
    """Return why the text *answer* is not the JSON that *schema* asks for, bounded as `value_faults`; none when it is.

    An empty *schema* asks for nothing. Raises `UnusableSchema`.
    """
    if not schema:
        return ()
    try:
        value = msgspec.json.decode(answer)
    except (ValueError, RecursionError) as error:
        shown = answer if len(answer) <= MAX_FAULT else f"{answer[:MAX_FAULT]}…"
        return (f"the answer is not the JSON that was asked for ({error}): {shown}",)
    return value_faults(schema, value)


def judged(schema: str, turn: str, reply: ModelReply) -> ModelReplied:
    """Return the final *reply* of *turn* as a fact that says how it stands to *schema*. Raises `UnusableSchema`."""
    answer = unfenced(reply.text)
    fault = "; ".join(answer_faults(schema, answer))
    return ModelReplied(turn, reply, fault, "" if answer == reply.text else answer)


def answer_fault(schema: str, value: str) -> str:
    """Return what is wrong with the JSON text *value* under *schema*; empty where nothing is or can be said."""
    try:
        return next(iter(value_faults(schema, msgspec.json.decode(value), "the answer")), "")
    except UnusableSchema:
        return ""
