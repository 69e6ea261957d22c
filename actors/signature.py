"""What a function takes, as a struct: from its type hints to the arguments of a tool, and back to a call of it."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

__all__ = ["arguments_of", "runner_of"]

Run = Callable[[Any, Mapping[str, Any]], Awaitable[Any]]


def arguments_of(
    function: Callable[..., Awaitable[Any]], name: str, texts: dict[str, str], faults: list[str], handed: type
) -> tuple[type[msgspec.Struct], str | None]:
    """Return the struct of *function*'s parameters, and the name of the one that is of the type *handed*, if any is.

    *texts* describe parameters by name. What is wrong goes to *faults*.
    """
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        faults.append(f"a type hint cannot be resolved ({error}); import its name where the tool is defined")
        hints = {}
    fields: list[Any] = []
    context: str | None = None
    for parameter in inspect.signature(function).parameters.values():
        hint = hints.get(parameter.name)
        if hint is handed:
            context = parameter.name
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            faults.append(f"parameter {parameter.name!r} is positional-only or variadic; name each parameter")
        elif hint is None:
            faults.append(f"parameter {parameter.name!r} has no type hint that can be resolved")
        else:
            text = texts.get(parameter.name)
            described = typing.Annotated[hint, msgspec.Meta(description=text)] if text else hint
            default = () if parameter.default is parameter.empty else (_default(parameter.default),)
            fields.append((parameter.name, described, *default))
    if faults:
        return msgspec.Struct, context
    return msgspec.defstruct(
        name.replace("-", "_").replace(".", "_"), fields, kw_only=True, forbid_unknown_fields=True
    ), context


def _default(value: Any) -> Any:
    if isinstance(value, (list, dict, set)) and value:
        return msgspec.field(default_factory=lambda: type(value)(value))
    return value


PLAIN = frozenset({str, int, float, bool, type(None), Any, list, dict})


def _is_plain(hint: Any) -> bool:
    """Tell whether JSON decodes straight to *hint*, so that no conversion is needed."""
    if hint in PLAIN:
        return True
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return _is_plain(typing.get_args(hint)[0])
    if origin is typing.Literal:
        return True
    if origin in (list, dict, typing.Union, types.UnionType):
        return all(_is_plain(part) for part in typing.get_args(hint))
    return False


def runner_of(function: Callable[..., Awaitable[Any]], struct: type[msgspec.Struct], context: str | None) -> Run:
    """Return what calls *function* with decoded arguments, converted where its hints want more than JSON holds."""
    plain = all(_is_plain(field.type) for field in msgspec.structs.fields(struct))

    def run(ctx: Any, arguments: Mapping[str, Any]) -> Awaitable[Any]:
        values: Mapping[str, Any] = arguments
        if not plain:
            converted = msgspec.convert(arguments, struct)
            values = {key: getattr(converted, key) for key in arguments}
        if context is None:
            return function(**values)
        return function(**values, **{context: ctx})

    return run
