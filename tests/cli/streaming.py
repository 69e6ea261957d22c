"""``orchestrator`` with a model that streams: ``python -m tests.cli.streaming WORDS``. It says when it is closed."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from actors.messages import ModelReply
from orchestrator.cli import chat, main

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.ports import ModelRequest


class Streaming:
    """Streams four words, the last two once the gate is opened, and answers with all of them."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def reply(self, _: ModelRequest, delta: Callable[[str], None]) -> ModelReply:
        """Answer; on cancel the text stands as far as it came."""
        for word in ("one", " two"):
            delta(word)
            await asyncio.sleep(0)
        gate = os.open("gate", os.O_RDONLY | os.O_NONBLOCK)
        waiting = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(gate, waiting.set_result, None)
        try:
            await waiting
        finally:
            asyncio.get_running_loop().remove_reader(gate)
            os.close(gate)
        for word in (" three\x1b[2J", "\nfour"):
            delta(word)
        return ModelReply("one two three\x1b[2J\nfour")

    async def close(self) -> None:
        """Leave a note."""
        await asyncio.to_thread(Path("closed").write_text, self.name)


if __name__ == "__main__":
    chat.open_model = Streaming  # type: ignore[assignment]
    sys.exit(main.call())
