"""How large a tool's definition is for a model, in bytes as encoded and in estimated tokens. Pure.

Rules:

- The bytes are those of the tool as a model is told of it: compact JSON with name, description and schema.
- A size that the owners of a definition measured themselves counts instead, where the definition is not public.
- Tokens are estimated as bytes / 4, rounded up. It is a rule of thumb for English and JSON, not a count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.ports import OfferedTool

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.tools import Tool
    from orchestrator.catalog.subject import Declared

    Encode = Callable[[OfferedTool], bytes]

__all__ = ["BYTES_PER_TOKEN", "DEFAULT_BUDGET_BYTES", "encoded", "estimated_tokens", "measured", "size_of"]

DEFAULT_BUDGET_BYTES = 24_000
BYTES_PER_TOKEN = 4


def encoded(offered: OfferedTool) -> bytes:
    """Return *offered* as compact JSON, its schema as an object in it."""
    schema = msgspec.Raw(offered.input_schema.encode())
    return msgspec.json.encode({"name": offered.name, "description": offered.description, "input_schema": schema})


def measured(tool: Tool, encode: Encode = encoded) -> int:
    """Return how many bytes *encode* makes of *tool*."""
    return len(encode(OfferedTool(tool.name, tool.description, tool.input_schema)))


def size_of(declared: Declared, encode: Encode = encoded) -> int:
    """Return the size of a declared tool in bytes: the size its owners give, or what is measured."""
    return measured(declared.tool, encode) if declared.definition_bytes is None else declared.definition_bytes


def estimated_tokens(size_bytes: int) -> int:
    """Return how many tokens that many bytes are, by estimate."""
    return -(-size_bytes // BYTES_PER_TOKEN)
