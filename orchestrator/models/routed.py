"""Several models behind one: each agent has its own. And closing whatever a model holds open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.ports import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from actors.messages import ModelReply
    from actors.ports import Model, ModelRequest

__all__ = ["RoutedModel", "close_model"]


async def close_model(model: Model) -> None:
    """Let go of what *model* holds open, where it has a ``close`` to await. Closing twice is the model's to allow."""
    close = getattr(model, "close", None)
    if close is not None:
        await close()


class RoutedModel:
    """Asks the model of the request's agent (by definition name). Raises `ModelError` for an agent without one."""

    def __init__(self, models: Mapping[str, Model]) -> None:
        self._models = dict(models)

    async def reply(self, request: ModelRequest, delta: Callable[[str], None]) -> ModelReply:
        """Return what the agent's own model answers. On cancel that request is given up."""
        model = self._models.get(request.agent)
        if model is None:
            msg = f"no model was named for the agent {request.agent!r}; name one in its file, or give --model"
            raise ModelError(msg)
        return await model.reply(request, delta)

    async def close(self) -> None:
        """Close every model that can be closed, each once."""
        for model in {id(model): model for model in self._models.values()}.values():
            await close_model(model)
