"""Asking a model in tests: a request, what was heard meanwhile, and waits that take no time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self

from actors.messages import Note, Said
from actors.ports import ModelRequest, OfferedTool
from orchestrator.models.provider import find_provider
from orchestrator.models.retry import RetryPolicy, Waiting
from orchestrator.models.wire.answer import Server
from orchestrator.models.wire.chat import ChatModel
from orchestrator.models.wire.client import Endpoint, WireLimits
from orchestrator.models.wire.request import Form

if TYPE_CHECKING:
    from actors.messages import Item, ModelReply

KEY = "sk-test-4f9a-never-shown"
SCHEMA = '{"properties":{"a":{"type":"integer"}},"type":"object"}'


def request(*history: Item, tools: tuple[OfferedTool, ...] = (), instructions: str = "Be brief.") -> ModelRequest:
    """A request with this history, by default one question."""
    return ModelRequest("worker", "worker", "t0001", instructions, history or (Said("Hello?"),), tools)


def tool(name: str, schema: str = SCHEMA) -> OfferedTool:
    """A tool on offer."""
    return OfferedTool(name, f"Does {name}.", schema)


class Waits:
    """Waits that take no time, and are kept; ``held`` ones last until they are cancelled."""

    def __init__(self, part: float = 0.5, *, held: bool = False) -> None:
        self.begun = asyncio.Event()
        self.held = held
        self.slept: list[float] = []
        self.at = 0.0
        self.waiting = Waiting(self.sleep, lambda: part, lambda: self.at, lambda: 1_800_000_000.0)

    async def sleep(self, seconds: float) -> None:
        """Let the time pass at once, or never."""
        self.slept.append(seconds)
        self.begun.set()
        if self.held:
            await asyncio.Event().wait()
        self.at += seconds


class Heard:
    """What a model told while it answered."""

    def __init__(self) -> None:
        self.told: list[str | Note] = []

    def __call__(self, piece: str | Note) -> None:
        self.told.append(piece)

    @property
    def text(self) -> str:
        """All text that was shown."""
        return "".join(piece for piece in self.told if isinstance(piece, str))

    @property
    def notes(self) -> list[Note]:
        """All notes."""
        return [piece for piece in self.told if isinstance(piece, Note)]


class Asking:
    """A model of the wire at *base_url*; ``async with`` it, so that it is closed."""

    def __init__(self, base_url: str, *, waits: Waits | None = None, key: str = KEY, **more: Any) -> None:
        self.waits = waits or Waits()
        self.heard = Heard()
        provider = find_provider("openai")
        assert provider is not None
        limits = more.pop("limits", WireLimits(first_byte_s=20, idle_s=20, tail_s=0.2))
        retry = more.pop("retry", RetryPolicy())
        server = Server("openai:fake", base_url, provider.key_name)
        form = more.pop("form", Form("fake"))
        self.model = ChatModel(
            server, Endpoint(base_url, key), form, limits=limits, retry=retry, waiting=self.waits.waiting
        )

    async def ask(self, asked: ModelRequest | None = None) -> ModelReply:
        """Ask, and keep what is heard."""
        return await self.model.reply(asked or request(), self.heard)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.model.close()
