"""The tools of a product file: what is declared, and the function behind it.

A tool: ``name``, ``description``, ``use_not_for`` (a sentence that is put behind the description), ``access`` (read,
write, external) or ``effect`` (read_only, reversible_write, external_effect), ``authorities``, ``needs``,
``input_schema``, ``approval`` (never, each_call), ``annotations`` (readOnlyHint, destructiveHint, openWorldHint),
``run``, and ``definition_bytes`` where the definition itself is not public.

Rules:

- ``run`` names a `Tool` or an async function of the product's own package. A function gives description and schema
  where the file has none. A tool says everything itself; what the file says too must be the same.
- A tool without ``run`` is declared and connected nowhere: a call of it fails and says so.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from actors.errors import DefinitionError, ToolFault
from actors.grants import Access
from actors.tools import Approval, Tool, tool
from orchestrator.catalog.subject import Annotations, Declared
from orchestrator.products.callers import read_fields
from orchestrator.products.package import Package, Unreachable, attribute_at
from orchestrator.workflows.document import Mapping
from orchestrator.workflows.draft import check_name
from orchestrator.workflows.rights import read_authorities, read_one_of
from orchestrator.workflows.schema import canonical, read_schema
from orchestrator.workflows.section import Section, nearest, word_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from actors.tools import Arguments, Run, ToolContext
    from orchestrator.workflows.document import Node, Scalar
    from orchestrator.workflows.fault import FaultLog

__all__ = ["EFFECTS", "read_tools", "unconnected"]

TOOL_KEYS = (
    "name",
    "description",
    "use_not_for",
    "access",
    "effect",
    "authorities",
    "needs",
    "effect_key",
    "input_schema",
    "approval",
    "annotations",
    "run",
    "definition_bytes",
)
EFFECTS = {"read_only": Access.READ, "reversible_write": Access.WRITE, "external_effect": Access.EXTERNAL}
HINTS = ("readOnlyHint", "destructiveHint", "openWorldHint")
MAX_DEFINITION_BYTES = 10_000_000


@lru_cache(maxsize=4096)
def unconnected(name: str) -> Run:
    """Return the function of a tool that is only declared: the same one for the same name."""

    async def run(_context: ToolContext, _arguments: Arguments) -> Any:
        raise ToolFault(f"{name} is declared here and connected nowhere.", remedy="Go on without it.")

    return run


def read_tools(section: Section, package: Package | None) -> tuple[tuple[Declared, ...], frozenset[str]]:
    """Read the list ``tools`` of a product: those that are possible, and the names of all that there are."""
    body = section.sequence("tools", required=True)
    if body is None:
        return (), frozenset()
    faults = section.faults
    if not body.items:
        faults.add(body.mark, "'tools' is empty", "Declare a tool.")
    found: list[Declared] = []
    marks: dict[str, Scalar] = {}
    for number, node in enumerate(body.items, start=1):
        if not isinstance(node, Mapping):
            remedy = "Write a mapping that begins with '- name: NAME'."
            faults.add(node.mark, f"tool {number} is {word_of(node)}", remedy)
            continue
        reading = Reading(node, number, faults)
        name = reading.section.scalar("name", required=True)
        declared = reading.declared(name, package)
        if name is None:
            continue
        first = marks.setdefault(name.text, name)
        if first is not name:
            message = f"the tool {name.text!r} was declared on line {first.mark.line}"
            faults.add(name.mark, message, "Give every tool its own name.")
        elif declared is not None:
            found.append(declared)
    return tuple(found), frozenset(marks)


class Reading:
    """The reading of one tool; what is wrong goes to *faults*."""

    def __init__(self, node: Mapping, number: int, faults: FaultLog) -> None:
        """Read *node*, the file's *number*-th tool from 1."""
        named = node.get("name")
        text = getattr(named, "text", "")
        self.faults = faults
        self.section = Section(node, f"tool {text!r}" if text.strip() else f"tool {number}", faults)

    def declared(self, name: Scalar | None, package: Package | None) -> Declared | None:
        """Return the tool *name*, or None when anything about it is a fault."""
        before = len(self.faults.faults)
        section = self.section
        section.only(*TOOL_KEYS)
        given = self.given()
        annotations = self.annotations()
        size = section.count("definition_bytes", 0, MAX_DEFINITION_BYTES) or None
        run = section.scalar("run")
        behind = None
        if run is not None:
            try:
                behind = attribute_at(run.text, package)
            except Unreachable as error:
                self.faults.add(run.mark, error.message, error.remedy)
        if run is None:
            self.require(given, "description", "access")
        elif behind is not None and not isinstance(behind, Tool):
            self.require(given, "access")
        if name is None or len(self.faults.faults) > before:
            return None
        check_name(name, self.faults)
        try:
            made = self.made(name.text, given, behind)
        except DefinitionError as error:
            for fault in error.faults:
                self.faults.add(name.mark, f"{section.what}: {fault}", "Correct its declaration.")
            return None
        if len(self.faults.faults) > before:
            return None
        return Declared(made, annotations, size, connected=run is not None)

    def require(self, given: dict[str, Any], *keys: str) -> None:
        """Note each of *keys* that the file does not give, or gives as nothing but blanks."""
        if "description" in keys and "description" not in given:
            self.section.scalar("description", required=True)
        if "access" in keys and "access" not in given and not self.has_effect:
            self.section.find("access", ", ".join(Access), required=True)

    @property
    def has_effect(self) -> bool:
        """Whether the file has the key ``effect``."""
        return self.section.node.get("effect") is not None

    def given(self) -> dict[str, Any]:
        """Return the fields of `Tool` that the file gives, by name."""
        section = self.section
        given: dict[str, Any] = {}
        description = section.text("description").strip()
        not_for = section.text("use_not_for").strip()
        if description:
            given["description"] = f"{description} Not for {not_for.rstrip('.')}." if not_for else description
        elif not_for:
            mark = section.node.mark
            self.faults.add(mark, f"{section.what} has 'use_not_for' without 'description'", "Add 'description:'.")
        access = self.access()
        if access is not None:
            given["access"] = access
        if section.node.get("authorities") is not None:
            given["authorities"] = read_authorities(section, held=False)
        if section.node.get("needs") is not None:
            given["needs"] = read_fields(section, "needs")
        if section.node.get("effect_key") is not None:
            given["effect_key"] = tuple(word.text for word in section.words("effect_key"))
        schema = section.mapping("input_schema")
        if schema is not None:
            given["input_schema"] = canonical(read_schema(schema, self.faults))
        approval = read_one_of(section, "approval", Approval)
        if approval is not None:
            given["approval"] = approval
        return given

    def access(self) -> Access | None:
        """Return what ``access`` or ``effect`` says; both at once are a fault."""
        effect = self.section.scalar("effect")
        if effect is None:
            return read_one_of(self.section, "access", Access)
        if self.section.node.get("access") is not None:
            self.faults.add(effect.mark, f"{self.section.what} has 'access' and 'effect'", "Keep one of them.")
        if effect.text not in EFFECTS:
            self.faults.add(effect.mark, f"there is no effect {effect.text!r}", nearest(effect.text, EFFECTS))
        return EFFECTS.get(effect.text)

    def annotations(self) -> Annotations:
        """Return what ``annotations`` says; a hint that is not there says nothing."""
        body = self.section.mapping("annotations")
        if body is None:
            return Annotations()
        inner = Section(body, f"'annotations' of {self.section.what}", self.faults)
        inner.only(*HINTS)
        said = (inner.flag(key) if body.get(key) is not None else None for key in HINTS)
        return Annotations(*said)

    def made(self, name: str, given: dict[str, Any], behind: Tool | Callable[..., Awaitable[Any]] | None) -> Tool:
        """Return the tool of what is *given* and what is *behind* it. Raises `DefinitionError`."""
        if behind is None:
            fields = dict(given)
            return Tool(name, fields.pop("description"), **fields, run=unconnected(name))
        if isinstance(behind, Tool):
            self.compare(name, given, behind)
            return behind
        fields = {key: value for key, value in given.items() if key != "input_schema"}
        made = tool(name=name, **fields)(behind)
        if "input_schema" not in given:
            return made
        self.compare_schemas(given["input_schema"], made.input_schema)
        return Tool(name, made.description, given["input_schema"], **{**_rest(fields), "run": made.run})

    def compare(self, name: str, given: dict[str, Any], behind: Tool) -> None:
        """Note everything that the file says otherwise than the tool itself."""
        for key, value in {"name": name, **given}.items():
            own = getattr(behind, key)
            if own != value:
                node: Node = self.section.node.get(key) or self.section.node
                message = f"{self.section.what} has another {key!r} than the tool that 'run' names ({_shown(own)})"
                self.faults.add(node.mark, message, "Remove it here: the tool says it.")

    def compare_schemas(self, given: str, own: str) -> None:
        """Note arguments that the file's schema and the function's parameters do not share."""
        theirs, mine = (msgspec.json.decode(text) for text in (given, own))
        node = self.section.node.get("input_schema") or self.section.node
        has, takes = set(theirs.get("properties", {})), set(mine.get("properties", {}))
        for argument in sorted(has - takes):
            message = f"{self.section.what} has an argument {argument!r} that the function does not take"
            self.faults.add(node.mark, message, nearest(argument, takes))
        for argument in sorted(set(mine.get("required", ())) - set(theirs.get("required", ()))):
            message = f"{self.section.what} does not require {argument!r}, which the function needs"
            self.faults.add(node.mark, message, "Add it to 'required', or give the parameter a default.")


def _rest(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != "description"}


def _shown(value: Any) -> str:
    if isinstance(value, frozenset):
        return ", ".join(sorted(value)) or "none"
    return str(value)[:80]
