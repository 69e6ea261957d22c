"""The intrinsic tools that read an actor's own things and write the session's own record."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import msgspec

from actors.messages import Denial
from actors.text import clip, listed
from orchestrator.context import Delivered
from orchestrator.denials import MAX_NAME
from orchestrator.discovery import Snapshot, discover, find
from orchestrator.facts import NeedsApproval
from orchestrator.journal.work import FindingRecorded, FixRecorded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from actors.messages import ToolCall
    from actors.sources import MCPSource
    from orchestrator.capability import Capability
    from orchestrator.facts import Verdict
    from orchestrator.journal.journal import Journal
    from orchestrator.registry import Registered

__all__ = ["Desk"]

DEFAULT_PIECE = 16_384
MAX_LINES = 200
MAX_UNKNOWN = 20


class Desk:
    """The executors of ``read_skill``, ``get_api_spec``, ``read_output``, ``search_output``, ``record_*``."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def tools(self) -> dict[str, Callable[[Capability, ToolCall, Mapping[str, Any]], Any]]:
        """Return the executors by tool name."""
        return {
            "read_skill": self.read_skill,
            "get_api_spec": self.get_api_spec,
            "find_tools": self.find_tools,
            "read_source": read_source,
            "read_output": self.read_output,
            "search_output": self.search_output,
            "record_finding": self.record_finding,
            "record_fix": self.record_fix,
            "ask_person": self.ask_person,
        }

    async def read_skill(self, capability: Capability, _: ToolCall, arguments: Mapping[str, Any]) -> Any:
        """Return the text of a skill of the actor's own definition."""
        skills = capability.member.resolved.definition.skills
        for skill in skills:
            if skill.name == arguments["name"]:
                return skill.text
        names = listed(skill.name for skill in skills)
        return Delivered(f"You have no skill {clip(arguments['name'], MAX_NAME)!r}. Yours: {names}.", failed=True)

    async def get_api_spec(self, capability: Capability, _: ToolCall, arguments: Mapping[str, Any]) -> Any:
        """Return each named tool's description, schema and verdict; one bad name fails the whole call."""
        wanted = _names(arguments.get("tool_name"))
        if not wanted or not all(name.strip() for name in wanted):
            return Delivered("tool_name is required: a tool's name, or a list of names.", failed=True)
        catalog = {item.tool.name: (item, verdict) for item, verdict in capability.catalog()}
        wanted = tuple(_known(name, catalog) for name in wanted)
        unknown = [name for name in wanted if name not in catalog]
        absent = [source.name for source in capability.member.resolved.absent if _of(source, unknown)]
        if absent:
            text = f"server_unavailable=[{', '.join(absent)}] requested=[{listed(clip(n, MAX_NAME) for n in unknown)}]."
            return Delivered(f"{text} Asking again will not help in this session; go on without them.", failed=True)
        if unknown:
            shown = ", ".join(clip(name, MAX_NAME) for name in unknown[:MAX_UNKNOWN])
            close = {near for name in unknown for near in get_close_matches(name[:MAX_NAME], catalog, n=3)}
            hint = f" Close names: {', '.join(sorted(close))}." if close else ""
            return Delivered(f"unknown=[{shown}].{hint} Your tools: {listed(catalog)}.", failed=True)
        return [spec(*catalog[name]) for name in sorted(set(wanted))]

    async def find_tools(self, capability: Capability, _: ToolCall, arguments: Mapping[str, Any]) -> Any:
        """Return the tools of the turn's catalog that pass every filter, or the one that a reference names."""
        selector = capability.member.resolved.definition.tools.selector
        snapshot = Snapshot.of(capability.catalog(), dict(selector.tags) if selector is not None else {})
        reference = arguments.get("reference")
        return discover(snapshot, arguments.get("filters")) if reference is None else find(snapshot, reference)

    async def read_output(self, capability: Capability, _: ToolCall, arguments: Mapping[str, Any]) -> Any:
        """Return a piece of a stored output; offsets count characters."""
        text = self._output(capability, arguments["handle"])
        if text is None:
            return Delivered(f"You have no stored output {clip(arguments['handle'], MAX_NAME)!r}.", failed=True)
        start = arguments.get("offset", 0)
        end = min(len(text), start + min(arguments.get("limit", DEFAULT_PIECE), DEFAULT_PIECE))
        return f"characters {start} to {end} of {len(text)}:\n{text[start:end]}"

    async def search_output(self, capability: Capability, _: ToolCall, arguments: Mapping[str, Any]) -> Any:
        """Return the lines of a stored output that contain a text, with their numbers."""
        text = self._output(capability, arguments["handle"])
        if text is None:
            return Delivered(f"You have no stored output {clip(arguments['handle'], MAX_NAME)!r}.", failed=True)
        found = [(n, line[:500]) for n, line in enumerate(text.splitlines(), 1) if arguments["text"] in line]
        shown = "\n".join(f"{number}: {line}" for number, line in found[:MAX_LINES])
        return f"{len(found)} lines contain it.\n{shown}"

    async def ask_person(self, capability: Capability, call: ToolCall, _: Mapping[str, Any]) -> Any:
        """Return what the person said; the call has waited for it as for any other approval."""
        state = self._journal.state
        approval = state.approvals.get(state.asked_for.get((capability.member.path, call.id), ""))
        answered = None if approval is None else approval.answered
        return (answered.reason if answered is not None else "") or "The person said yes, and nothing else."

    def _output(self, capability: Capability, handle: str) -> str | None:
        owner, text = self._journal.state.outputs.get(handle, ("", ""))
        return text if owner == capability.member.path else None

    async def record_finding(self, capability: Capability, _: ToolCall, arguments: Mapping[str, Any]) -> Any:
        """Put a finding, or a verdict on one, on the session's record."""
        number = len(self._journal.state.findings) + 1
        record = FindingRecorded(
            number,
            arguments["subject"],
            arguments["message"],
            arguments.get("place", ""),
            arguments.get("verdict", "open"),
        )
        self._journal.append(capability.member.path, record)
        return f"finding {number} is on record"

    async def record_fix(self, capability: Capability, _: ToolCall, arguments: Mapping[str, Any]) -> Any:
        """Put a proposed change on the session's record."""
        number = len(self._journal.state.fixes) + 1
        record = FixRecorded(number, arguments["path"], arguments["diff"], arguments.get("reason", ""))
        self._journal.append(capability.member.path, record)
        return f"fix {number} is on record"


async def read_source(capability: Capability, _: ToolCall, arguments: Mapping[str, Any]) -> Any:
    """Return what a server offers beside its tools, or the list of it."""
    name = arguments["source"]
    uri, prompt, given = arguments.get("uri", ""), arguments.get("prompt", ""), arguments.get("arguments", {})
    readable = capability.member.resolved.readable()
    if name not in readable:
        return Delivered(f"You can read nothing of {clip(name, MAX_NAME)!r}, only of: {listed(readable)}.", failed=True)
    source, connection = readable[name]
    return await connection.read(lambda client: client.read_data(uri, prompt, given), source.call_s)


def _known(name: str, catalog: Mapping[str, tuple[Registered, Verdict]]) -> str:
    """Return the tool that *name* means: itself, or the only one that its server calls so."""
    if name in catalog:
        return name
    meant = [each for each, (item, _) in catalog.items() if item.origin is not None and item.origin.pin.name == name]
    return meant[0] if len(meant) == 1 else name


def _of(source: MCPSource, names: list[str]) -> bool:
    """Tell whether one of *names* is the server *source*, or could be a tool of it."""
    return any(name == source.name or name.startswith(source.lead) for name in names)


def _names(value: Any) -> tuple[str, ...]:
    """Return the names asked for: one, a list, or a list written as text."""
    if isinstance(value, str):
        try:
            decoded = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            decoded = None
        listed = isinstance(decoded, list) and decoded and all(isinstance(n, str) and n.strip() for n in decoded)
        return tuple(decoded) if listed else ((value,) if value.strip() else ())
    return tuple(value) if isinstance(value, list) else ()


def spec(item: Registered, verdict: Verdict) -> dict[str, Any]:
    """Return one tool's entry as ``get_api_spec`` shows it."""
    shown: dict[str, Any] = {
        "name": item.tool.name,
        "version": item.tool.version,
        "description": item.tool.description,
        "input_schema": msgspec.Raw(item.tool.input_schema.encode()),
        "access": item.tool.access.value,
        "verdict": "permitted",
    }
    if item.difference:
        shown["changed"] = item.difference
    if isinstance(verdict, NeedsApproval):
        shown["verdict"] = "needs_approval"
    elif isinstance(verdict, Denial):
        shown.update(verdict="denied", code=verdict.code, message=verdict.message, remedy=verdict.remedy)
    return shown
