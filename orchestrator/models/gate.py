"""A limit of model requests in flight, held for each request and never for an actor's life."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.messages import ModelReply, Note
    from actors.ports import Model, ModelRequest

__all__ = ["gated"]


class GatedModel:
    """A model with at most *limit* requests in flight; the others wait their turn."""

    def __init__(self, model: Model, limit: int) -> None:
        self._model = model
        self._slots = asyncio.Semaphore(limit)

    async def reply(self, request: ModelRequest, delta: Callable[[str | Note], None]) -> ModelReply:
        """Ask when a slot is free. On cancel the slot is free again."""
        async with self._slots:
            return await self._model.reply(request, delta)


def gated(model: Model, limit: int | None) -> Model:
    """Return *model* under a *limit* of requests in flight; ``None``: the model itself."""
    return model if limit is None else GatedModel(model, limit)
