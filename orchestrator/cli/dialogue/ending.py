"""How a conversation ends: once, with an exit code or an error, and with nothing of it left running."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Coroutine

__all__ = ["Ending"]


class Ending:
    """The end that is waited for, and the tasks that run until then."""

    def __init__(self) -> None:
        self._over: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def over(self) -> bool:
        """Whether the end has come."""
        return self._over.done()

    def end(self, code: int) -> None:
        """End with this exit code, unless it has ended."""
        if not self._over.done():
            self._over.set_result(code)

    def run(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do *work* meanwhile; what it raises ends the conversation."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ran)

    async def wait(self, fault: asyncio.Future[Any]) -> int:
        """Return the exit code, or raise what ended it, *fault* among that; then nothing of `run` runs any more."""
        ends: tuple[asyncio.Future[Any], ...] = (self._over, fault)
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if fault.done():
                fault.result()
            return self._over.result()
        finally:
            self.end(0)
            tasks = tuple(self._tasks)
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    def _ran(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not self._over.done():
            self._over.set_exception(error)
