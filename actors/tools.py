"""A tool: its description, its schema, its declared effects, and the function that does it.

Rules:

- A tool's declaration is a frozen value and takes part in its definition's fingerprint; its functions do not.
- The schema is JSON text in canonical form (keys sorted, no blanks), so that it can be hashed and compared.
- A schema refers only to itself: a ``$ref`` that leaves the document is refused here, long before any call.
- ``@tool`` reads the schema from the type hints, the text from the docstring (Google, NumPy or Sphinx style);
  a parameter annotated `ToolContext` is handed in by the bridge and is no part of the schema.
"""

from __future__ import annotations

import enum
import inspect
import re
import typing
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import docstring_parser

from actors.errors import DefinitionError
from actors.grants import Access, covers
from actors.reshape import Reshape
from actors.schema import EMPTY_SCHEMA, schema_faults, struct_schema
from actors.signature import arguments_of, runner_of

if TYPE_CHECKING:
    from actors.grants import Grants

__all__ = ["Approval", "Reconciled", "Tool", "ToolContext", "tool"]

TOOL_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")

Arguments = Mapping[str, Any]
Run = Callable[["ToolContext", Arguments], Awaitable[Any]]


class Approval(enum.StrEnum):
    """When a person must say yes: never, or for each call."""

    NEVER = "never"
    EACH_CALL = "each_call"


class Reconciled(enum.StrEnum):
    """What a tool's ``reconcile`` found out about a call whose outcome nobody recorded."""

    HAPPENED = "happened"
    DID_NOT_HAPPEN = "did_not_happen"
    UNKNOWN = "unknown"


class ToolContext(Protocol):
    """What the bridge tells a tool about the call it serves. Identity comes from here, never from arguments."""

    @property
    def session(self) -> str:
        """The id of the session."""

    @property
    def actor(self) -> str:
        """The path of the calling actor, root first: ``builder/run/mender-0003``."""

    @property
    def turn(self) -> str:
        """The id of the turn that made the call."""

    @property
    def call_id(self) -> str:
        """The id of the call, unique in the actor's whole history."""

    @property
    def principal(self) -> str:
        """Whose authority the call is made under."""

    @property
    def owner(self) -> str:
        """Whose things the session works on; who acts is ``principal``."""

    @property
    def grants(self) -> Grants:
        """The caller's authority at the moment of the decision."""

    @property
    def workspace(self) -> Any:
        """The session's workspace, or ``None`` when the session has none."""

    @property
    def record(self) -> Any:
        """The session's record of findings and fixes, to read: ``fix(number)`` and ``finding(number)``."""

    @property
    def idempotency_key(self) -> str:
        """The same text for every attempt at this one call, and for no other call."""


Reconcile = Callable[[ToolContext, Arguments], Awaitable[Reconciled]]


def _names(value: typing.Iterable[str]) -> frozenset[str]:
    if isinstance(value, str):
        msg = f"expected a collection of names, got the string {value!r}; write ({value!r},)"
        raise TypeError(msg)
    return frozenset(value)


@attrs.frozen
class Tool:
    """One tool as a definition declares it.

    ``input_schema`` is a JSON Schema for an object, as canonical text. ``needs`` names the context fields a call must
    find present. ``timeout_s`` is in seconds, ``None`` for no limit. ``parallel_safe`` lets calls of one step overlap
    although they write. ``effect_key`` names the arguments that make two calls the same effect (``None``: all of
    them), and so what a person is shown as the target of a call without paths. ``idempotency_key`` names the argument
    by which the tool's target itself drops a repeat. ``targets`` names the arguments that hold workspace paths.
    ``output_limit_bytes`` bounds what the model is shown. ``reshape`` is set by `reshaped`.

    Raises `DefinitionError` listing every fault.
    """

    name: str
    description: str
    input_schema: str = EMPTY_SCHEMA
    access: Access = attrs.field(default=Access.READ, converter=Access, kw_only=True)
    authorities: frozenset[str] = attrs.field(default=frozenset(), converter=_names, kw_only=True)
    needs: frozenset[str] = attrs.field(default=frozenset(), converter=_names, kw_only=True)
    targets: frozenset[str] = attrs.field(default=frozenset(), converter=_names, kw_only=True)
    timeout_s: float | None = attrs.field(default=60.0, kw_only=True)
    parallel_safe: bool = attrs.field(default=False, kw_only=True)
    idempotency_key: str | None = attrs.field(default=None, kw_only=True)
    effect_key: tuple[str, ...] | None = attrs.field(default=None, kw_only=True)
    approval: Approval = attrs.field(default=Approval.NEVER, converter=Approval, kw_only=True)
    output_limit_bytes: int = attrs.field(default=65_536, kw_only=True)
    version: str = attrs.field(default="1", kw_only=True)
    source: str = attrs.field(default="direct", kw_only=True)
    reshape: Reshape | None = attrs.field(default=None, kw_only=True)
    run: Run | None = attrs.field(default=None, kw_only=True, eq=False, repr=False)
    reconcile: Reconcile | None = attrs.field(default=None, kw_only=True, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        faults = tuple(_faults(self))
        if faults:
            raise DefinitionError(f"tool {self.name!r}", faults)

    def declaration(self) -> dict[str, Any]:
        """Return everything that takes part in a fingerprint, as plain data."""
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema,
            "access": self.access.value,
            "authorities": sorted(self.authorities),
            "needs": sorted(self.needs),
            "targets": sorted(self.targets),
            "timeout_s": self.timeout_s,
            "parallel_safe": self.parallel_safe,
            "idempotency_key": self.idempotency_key,
            "effect_key": None if self.effect_key is None else list(self.effect_key),
            "reconciles": self.reconcile is not None,
            "approval": self.approval.value,
            "output_limit_bytes": self.output_limit_bytes,
            "version": self.version,
            "source": self.source,
            **({} if self.reshape is None else {"reshape": attrs.asdict(self.reshape)}),
        }

    def reshaped(self, reshape: Reshape) -> Tool:
        """Return this tool with some arguments filled in or renamed: callers see the outer schema, its code the inner.

        Raises `DefinitionError` for a transform that does not fit, or of a tool that has one.
        """
        faults = tuple(reshape.faults(self.input_schema))
        if self.reshape is not None:
            faults = ("it has a transform already; put both into one", *faults)
        if faults:
            raise DefinitionError(f"the transform of tool {self.name!r}", faults)
        return attrs.evolve(self, input_schema=reshape.outer(self.input_schema), reshape=reshape)


def _faults(item: Tool) -> typing.Iterator[str]:
    if not TOOL_NAME.fullmatch(item.name):
        yield f"name {item.name!r} is not 1 to 128 of letters, digits, '.', '_' and '-'"
    if not item.description.strip():
        yield "description is blank; say what the tool does, and when not to use it"
    for authority in sorted(item.authorities):
        if not re.fullmatch(r"[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)+", authority):
            yield f"authority {authority!r} is not of the form namespace.verb"
    if item.timeout_s is not None and not item.timeout_s > 0:
        yield f"timeout_s is {item.timeout_s!r}; give seconds above 0, or None for no limit"
    if item.output_limit_bytes < 1:
        yield f"output_limit_bytes is {item.output_limit_bytes}; give at least 1"
    named = set(item.targets) | set(item.effect_key or ()) | ({item.idempotency_key} if item.idempotency_key else set())
    yield from schema_faults(item.input_schema, named)


def allowed_by(item: Tool, grants: Grants) -> bool:
    """Tell whether *grants* hold what the tool's declaration requires: authorities and access."""
    return item.access.level <= grants.access.level and all(covers(grants.authorities, a) for a in item.authorities)


@typing.overload
def tool(function: Callable[..., Awaitable[Any]], /) -> Tool: ...


@typing.overload
def tool(*, access: Access = Access.READ, **declared: Any) -> Callable[[Callable[..., Awaitable[Any]]], Tool]: ...


def tool(
    function: Callable[..., Awaitable[Any]] | None = None, /, *, access: Access = Access.READ, **declared: Any
) -> Any:
    """Make a `Tool` of an async function; ``declared`` are further fields of `Tool` (``name`` and ``description`` too).

    The schema comes from the type hints, the texts from the docstring. Every parameter needs a hint; none may be
    positional-only or variadic. Raises `DefinitionError` with every fault.
    """
    if function is None:
        return lambda decorated: _from_function(decorated, access, declared)
    return _from_function(function, access, declared)


def _from_function(function: Callable[..., Awaitable[Any]], access: Access, declared: dict[str, Any]) -> Tool:
    fields = dict(declared)
    name = fields.pop("name", function.__name__)
    documentation = docstring_parser.parse(inspect.getdoc(function) or "")
    faults: list[str] = []
    if not inspect.iscoroutinefunction(function):
        faults.append("it is not an async function; write 'async def', and hop to a thread inside for blocking work")
    texts = {param.arg_name: param.description or "" for param in documentation.params}
    struct, context = arguments_of(function, name, texts, faults, ToolContext)
    if faults:
        raise DefinitionError(f"tool {name!r}", tuple(faults))
    summary = "\n\n".join(filter(None, (documentation.short_description, documentation.long_description)))
    description = fields.pop("description", summary)
    try:
        schema = struct_schema(struct)
    except (TypeError, ValueError) as error:
        raise DefinitionError(f"tool {name!r}", (f"a parameter's type has no JSON form: {error}",)) from error
    return Tool(name, description, schema, access=access, run=runner_of(function, struct, context), **fields)
