"""What a server answers, as text for a model. Pure.

Text stays text. What is no text is told by its kind and size, never put into the conversation as bytes. An answer that
breaks the schema its own tool declared is a fault.
"""

from __future__ import annotations

from typing import Any

import msgspec

from actors.text import clean

__all__ = ["as_answer", "as_json", "resource", "shown"]


def shown(block: Any) -> str:
    """Return one content block as text."""
    kind = getattr(block, "type", "")
    if kind == "text":
        return clean(block.text)
    if kind in ("image", "audio"):
        return f"[{kind} {block.mime_type}, {_bytes(block.data)} bytes]"
    if kind == "resource_link":
        return f"[resource {block.uri}{f': {block.description}' if block.description else ''}]"
    if kind == "resource":
        return resource(block.resource)
    return f"[{kind or 'content'} of an unknown kind]"


def resource(item: Any) -> str:
    """Return the contents of one resource as text."""
    text = getattr(item, "text", None)
    if text is not None:
        return clean(text)
    return f"[{item.mime_type or 'binary'} {item.uri}, {_bytes(getattr(item, 'blob', ''))} bytes]"


def _bytes(data: str) -> int:
    """Return how many bytes *data* in base 64 stands for."""
    return len(data) * 3 // 4 - data[-2:].count("=")


def as_answer(result: Any) -> str:
    """Return the whole answer of a tool as text: its blocks, or its structured value where there are none."""
    text = "\n".join(shown(block) for block in result.content)
    if not text and result.structured_content is not None:
        return as_json(result.structured_content) or "[a value that cannot be written down]"
    return text


def as_json(value: Any) -> str:
    """Return a structured answer as JSON; an empty text where it is nested too deeply for that."""
    try:
        return msgspec.json.encode(value).decode()
    except (RecursionError, OverflowError, ValueError, TypeError):
        return ""
