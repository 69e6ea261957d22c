"""What a server lists: its tools over all pages, and the data beside them. Bounded, whatever the server does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from actors.errors import ToolFault
from actors.text import clip
from orchestrator.sources.content import resource, shown
from orchestrator.sources.pins import pin_of
from orchestrator.sources.sieve import BAD, RAW

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.journal.source import Pin

    Listed = tuple[tuple[Pin, ...], tuple[str, ...]]

__all__ = ["list_tools", "read_data"]

MAX_PAGES = 100
MAX_TOOLS = 2000
MAX_TOOL = 256 * 1024
"""Characters of one tool: its name, its text, its schemas."""
MAX_FAULTS = 50
MAX_LINE = 800


async def list_tools(sdk: Any) -> Listed:
    """Return the pin of every tool, over all pages, and what is wrong with the entries that were left out.

    Raises `ToolFault` for a listing that does not end, and what the SDK raises.
    """
    pins: dict[str, Pin] = {}
    bad: list[str] = []
    cursor, seen = None, set()
    for _ in range(MAX_PAGES):
        page = await _page(sdk, cursor)
        if page is None:
            return (), ()
        bad += (page.meta or {}).get(BAD, ())
        for tool in page.tools:
            _pin((tool.meta or {})[RAW], pins, bad)
        cursor = page.next_cursor
        if not cursor:
            return tuple(pins.values()), tuple(bad[:MAX_FAULTS])
        if cursor in seen:
            raise ToolFault(f"its listing of tools goes round: the cursor {clip(cursor, 80)!r} came twice")
        seen.add(cursor)
    raise ToolFault(f"its listing of tools has more than {MAX_PAGES} pages")


async def _page(sdk: Any, cursor: str | None) -> Any:
    """Return one page of tools; ``None`` from a server that has none at all."""
    from mcp import MCPError
    from mcp_types import METHOD_NOT_FOUND

    try:
        return await sdk.list_tools(cursor=cursor)
    except MCPError as error:
        if error.code == METHOD_NOT_FOUND and cursor is None:
            return None
        raise


def _pin(entry: Mapping[str, Any], pins: dict[str, Pin], bad: list[str]) -> None:
    name = clip(entry["name"], 80)
    try:
        pin = pin_of(entry)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        bad.append(f"tool {name!r}: it cannot be written down: {clip(str(error), 200)}")
        return
    size = len(pin.name) + len(pin.description) + len(pin.schema) + len(pin.output)
    if size > MAX_TOOL:
        bad.append(f"tool {name!r}: it is described by {size} characters; the limit is {MAX_TOOL}")
    elif pin.name in pins:
        bad.append(f"tool {name!r}: it is listed twice; the first one counts")
    elif len(pins) >= MAX_TOOLS:
        bad.append(f"tool {name!r}: it is beyond the first {MAX_TOOLS}")
    else:
        pins[pin.name] = pin


async def read_data(sdk: Any, uri: str, prompt: str, arguments: Mapping[str, str]) -> str:
    """Return a resource, a prompt, or the list of both, as text. Raises what the SDK raises."""
    if uri:
        read = await sdk.read_resource(uri)
        return "\n".join(resource(item) for item in read.contents)
    if prompt:
        got = await sdk.get_prompt(prompt, dict(arguments))
        return "\n".join(f"{message.role}: {shown(message.content)}" for message in got.messages)
    lines = [f"resource {item.uri}: {item.description or item.name}" for item in await _all(sdk, "resources")]
    lines += [
        f"resource {item.uri_template}: {item.description or item.name}"
        for item in await _all(sdk, "resource_templates")
    ]
    lines += [_prompt(item) for item in await _all(sdk, "prompts")]
    return "\n".join(clip(line, MAX_LINE) for line in lines) or "It offers no resources and no prompts."


async def _all(sdk: Any, what: str) -> list[Any]:
    """Return every item of one listing, over all pages; none from a server that does not have it."""
    from mcp import MCPError
    from mcp_types import METHOD_NOT_FOUND

    found: list[Any] = []
    cursor: str | None = None
    seen: set[str | None] = set()
    while cursor not in seen and len(seen) < MAX_PAGES:
        seen.add(cursor)
        try:
            page = await getattr(sdk, f"list_{what}")(cursor=cursor)
        except MCPError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            break
        found += getattr(page, what)
        cursor = page.next_cursor or None
    return found


def _prompt(prompt: Any) -> str:
    """Return a line about a prompt: its name, its arguments, its text."""
    names = ", ".join(f"{each.name}{'' if each.required else '?'}" for each in prompt.arguments or ())
    return f"prompt {prompt.name}({names}): {prompt.description or ''}".rstrip(": ")
