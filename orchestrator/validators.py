"""JSON Schemas compiled to what checks values: without files, without network, whatever a schema refers to."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from actors.text import clip

__all__ = ["answer_fault", "compile_schema"]

MAX_FAULT = 300


def compile_schema(text: str) -> Any:
    """Return a validator of the JSON Schema *text*. It opens no file and no socket. Raises ValueError."""
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(msgspec.json.decode(text), validate_formats=True, offline=True)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, RecursionError) as error:
        raise ValueError(str(error)) from error


@lru_cache(maxsize=1024)
def _compiled(schema: str) -> Any:
    try:
        return compile_schema(schema)
    except ValueError:
        return None


def answer_fault(schema: str, value: str) -> str:
    """Return what is wrong with the JSON text *value* under *schema*; empty where nothing is or can be said."""
    validator = _compiled(schema)
    if validator is None:
        return ""
    fault = next(iter(validator.iter_errors(msgspec.json.decode(value))), None)
    return "" if fault is None else clip(str(fault.message), MAX_FAULT)
