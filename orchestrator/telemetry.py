"""What the library tells operators: structured log lines by way of the standard ``logging``, under ``orchestrator``.

Nothing is configured here and nothing is printed: where the lines go, and from which level on, is the application's to
say. A line below that level costs a comparison, and structlog is loaded by the first one above it. Texts of people and
models are not logged, only who, what and which code.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import Any

__all__ = ["log"]

LOGGER = logging.getLogger("orchestrator")


@lru_cache(maxsize=1)
def _bound() -> Any:
    import structlog

    return structlog.wrap_logger(
        LOGGER,
        wrapper_class=structlog.stdlib.BoundLogger,
        processors=[structlog.contextvars.merge_contextvars, structlog.stdlib.render_to_log_kwargs],
        cache_logger_on_first_use=True,
    )


def log(level: int, event: str, **fields: object) -> None:
    """Log *event*, in the past tense, with short plain *fields*, at a *level* of the standard ``logging``."""
    if LOGGER.isEnabledFor(level):
        _bound().log(level, event, **fields)
