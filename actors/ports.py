"""The ports of an actor: the only things outside itself that it can name.

An actor holds a `Model` to ask, a `Toolbox` for the turn in flight, and an `Owner` it reports to. It can name neither a
bridge, nor a registry, nor a policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec.structs import replace

from actors.messages import Item, ToolCall
from actors.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.actor import Actor
    from actors.messages import EndTurn, Fact, ModelReplied, ModelReply, Note, ToolResult

__all__ = ["Model", "ModelError", "ModelRequest", "Offer", "OfferedTool", "Owner", "Toolbox", "clean_reply"]


class ModelError(Exception):
    """A model could not answer. ``text`` says why and what would help; the turn ends as failed, the actor lives on."""


class OfferedTool(msgspec.Struct, frozen=True):
    """One tool as a model is told of it: name, description, JSON Schema as text."""

    name: str
    description: str
    input_schema: str


class Offer(msgspec.Struct, frozen=True):
    """The tools offered for one model request, in the definition's order, and the definition they come from."""

    fingerprint: str
    tools: tuple[OfferedTool, ...]
    names: tuple[str, ...]


class ModelRequest(msgspec.Struct, frozen=True):
    """What a model is asked: instructions, the whole history, the tools offered, for which actor and turn.

    ``agent`` is the name of the definition, ``actor`` the path of the running actor.
    """

    agent: str
    actor: str
    turn: str
    instructions: str
    history: tuple[Item, ...]
    tools: tuple[OfferedTool, ...]


class Model(Protocol):
    """Something that answers a request. Safe to use from many actors at once."""

    async def reply(self, request: ModelRequest, delta: Callable[[str | Note], None]) -> ModelReply:
        """Return the whole reply; call *delta* with pieces of its text as they come.

        A model that has more to tell those who watch, such as that it asks again, calls *delta* with a `Note`; one
        that has not may declare that it takes a function of texts. Raises `ModelError`. On cancel the request is given
        up at once and nothing is left open.
        """


class Toolbox(Protocol):
    """An actor's end of the bridge for one turn."""

    def manifest(self) -> Offer:
        """Return the tools to offer in the next model request."""

    def concurrent(self, calls: tuple[ToolCall, ...]) -> bool:
        """Tell whether *calls* may run at the same time."""

    async def call(self, call: ToolCall) -> ToolResult | None:
        """Run one call and return its result, already recorded; ``None`` when it waits for a person.

        Raises nothing but CancelledError.
        """


class Owner(Protocol):
    """What an actor reports to. It records facts, hands out the toolbox of a turn, and hears of its end."""

    def opened(self, actor: Actor, turn: str) -> Toolbox:
        """A turn begins or goes on after a resume: return its toolbox."""

    def recorded(self, actor: Actor, fact: Fact) -> None:
        """A fact is about to be applied: record it."""

    def judged(self, schema: str, turn: str, reply: ModelReply) -> ModelReplied:
        """A reply without calls came in for *turn*, and *schema* is asked for: return it as a fact that says its fault.

        Never waits, never raises.
        """

    def offered(self, actor: Actor, offer: Offer) -> None:
        """A model request with this offer is about to be sent."""

    def noted(self, actor: Actor, note: Note) -> None:
        """Something that subscribers should see."""

    def delta(self, actor: Actor, text: str) -> None:
        """A piece of the model's text came in."""

    async def parked(self, actor: Actor) -> None:
        """The turn in flight waits for a person; the actor does nothing until it is woken."""

    async def ended(self, actor: Actor, end: EndTurn) -> None:
        """The turn is over; returns when its end is durable."""


def clean_reply(reply: ModelReply) -> ModelReply:
    """Return *reply* with every text in it valid UTF-8, and an empty id where a model gave none at all."""
    calls = tuple(map(_clean_call, reply.calls))
    if reply.text.isascii() and reply.reasoning.isascii() and calls == reply.calls:
        return reply
    return replace(reply, text=clean(reply.text), reasoning=clean(reply.reasoning), calls=calls)


def _clean_call(call: ToolCall) -> ToolCall:
    known = call.id or ""
    if known is call.id and known.isascii() and call.name.isascii() and call.arguments.isascii():
        return call
    return ToolCall(clean(known), clean(call.name), clean(call.arguments))
