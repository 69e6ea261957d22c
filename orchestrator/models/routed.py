"""Several models behind one: each agent has its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.ports import ModelError
from orchestrator.models.opening import close_model

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from actors.messages import ModelReply, Note
    from actors.ports import Model, ModelRequest

__all__ = ["RoutedModel"]


class RoutedModel:
    """Asks the model of the request's agent (by definition name). Raises `ModelError` for an agent without one."""

    def __init__(self, models: Mapping[str, Model]) -> None:
        self._models = dict(models)

    async def reply(self, request: ModelRequest, delta: Callable[[str | Note], None]) -> ModelReply:
        """Return what the agent's own model answers. On cancel that request is given up."""
        model = self._models.get(request.agent)
        if model is None:
            msg = f"no model was named for the agent {request.agent!r}; name one in its file, or give --model"
            raise ModelError(msg)
        return await model.reply(request, delta)

    async def close(self) -> None:
        """Close every model that can be closed, each once."""
        for model in self._each():
            await close_model(model)

    def tool_schema(self, schema: str) -> str:
        """Return a tool's schema as every one of the models takes it. Raises ValueError for one that some do not."""
        for model in self._each():
            adapt = getattr(model, "tool_schema", None)
            schema = schema if adapt is None else adapt(schema)
        return schema

    def _each(self) -> tuple[Model, ...]:
        return tuple({id(model): model for model in self._models.values()}.values())
