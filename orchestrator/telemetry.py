"""What the library tells operators: structured log lines by way of the standard ``logging``, under ``orchestrator``.

Nothing is configured here and nothing is printed: where the lines go, and from which level on, is the application's to
say. Lines below that level cost a comparison. Texts of people and models are not logged, only who, what and which code.
"""

from __future__ import annotations

import logging

import structlog

__all__ = ["log"]

log: structlog.stdlib.BoundLogger = structlog.wrap_logger(
    logging.getLogger("orchestrator"),
    wrapper_class=structlog.stdlib.BoundLogger,
    processors=[
        structlog.stdlib.filter_by_level,
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.render_to_log_kwargs,
    ],
    cache_logger_on_first_use=True,
)
"""The one logger. Events are past tense; fields are short and plain."""
