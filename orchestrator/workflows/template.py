"""Prompts with places to fill in: ``{item}``, ``{item.field}``, ``{steps.plan}``, ``{steps.plan.files}``. Pure.

``{{`` and ``}}`` are literal braces. What is filled in is never read as a template again.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ITEM",
    "Reference",
    "ReferenceMissing",
    "TemplateFault",
    "parse_template",
    "part_of",
    "render",
    "select",
    "tokens",
]

ITEM = ""
TOKEN = re.compile(r"\{\{|\}\}|\{[^{}]*\}|[{}]")
NAME = re.compile(r"[A-Za-z0-9_-]+")
MAX_SHOWN = 60


class Reference(msgspec.Struct, frozen=True):
    """A place to fill in. *text* is how it is written; *step* is :data:`ITEM` when it speaks of the item."""

    text: str
    step: str
    path: tuple[str, ...]


class TemplateFault(msgspec.Struct, frozen=True):
    """Something in a template that is no place to fill in. *text* is how it is written."""

    text: str
    message: str
    remedy: str


class ReferenceMissing(Exception):
    """A place could not be filled in: the value it speaks of is not there.

    :ivar reference: the place as written.
    :ivar fault: how far it led.
    """

    def __init__(self, reference: str, fault: str) -> None:
        """Keep both as fields."""
        super().__init__(reference, fault)
        self.reference = reference
        self.fault = fault

    def __str__(self) -> str:
        """Return both in a sentence."""
        return f"{self.reference} cannot be filled in: {self.fault}"


Part: TypeAlias = str | Reference | TemplateFault


def tokens(template: str) -> tuple[tuple[int, str], ...]:
    """Return everything in *template* that braces make special, each with the index where it stands."""
    return tuple((token.start(), token.group()) for token in TOKEN.finditer(template))


def parse_template(template: str) -> tuple[Part, ...]:
    """Return *template* as literal text, references, and what is neither, in order."""
    parts: list[Part] = []
    end = 0
    for start, token in tokens(template):
        parts += (template[end:start], part_of(token))
        end = start + len(token)
    parts.append(template[end:])
    return tuple(part for part in parts if part != "")


def part_of(text: str) -> Part:
    """Return what the token *text* stands for."""
    if text in {"{{", "}}"}:
        return text[0]
    if text in {"{", "}"}:
        return TemplateFault(text, f"a lone {text!r} stands in the prompt", f"Write {text * 2} for a literal brace.")
    head, *path = text[1:-1].split(".")
    if head == "steps" and path and all(map(NAME.fullmatch, path)):
        return Reference(text, path[0], tuple(path[1:]))
    if head == "item" and all(map(NAME.fullmatch, path)):
        return Reference(text, ITEM, tuple(path))
    shown = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
    remedy = "Write {item}, {item.field}, {steps.ID} or {steps.ID.field}, and {{ }} for literal braces."
    return TemplateFault(text, f"{shown!r} is no place that can be filled in", remedy)


def render(template: str, item: object, outputs: Mapping[str, object]) -> str:
    """Return *template* filled in: text as it is, every other value as JSON.

    :param item: the value of ``{item}``; not looked at when the template does not speak of it.
    :param outputs: step id → its output, decoded when it is JSON.
    :raises ReferenceMissing: a step, field or index is not there, or the template is not valid.
    """
    return "".join(filled(part, item, outputs) for part in parse_template(template))


def filled(part: Part, item: object, outputs: Mapping[str, object]) -> str:
    """Return the text for *part*."""
    if isinstance(part, str):
        return part
    if isinstance(part, TemplateFault):
        raise ReferenceMissing(part.text, part.message)
    if part.step == ITEM:
        value = item
    elif part.step in outputs:
        value = outputs[part.step]
    else:
        raise ReferenceMissing(part.text, f"step {part.step!r} has no output")
    try:
        value = select(value, part.path)
    except LookupError as error:
        raise ReferenceMissing(part.text, str(error.args[0])) from None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def select(value: object, path: tuple[str, ...]) -> object:
    """Return what *path* leads to in the JSON value *value*; digits lead into arrays, from 0.

    :raises LookupError: it leads nowhere; the text says where it ends.
    """
    for at, key in enumerate(path):
        where = ".".join(path[:at]) or "the value"
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, (list, tuple)) and key.isascii() and key.isdigit() and int(key[:9]) < len(value):
            value = value[int(key[:9])]
        else:
            raise LookupError(f"{where} has no {key!r}")
    return value
