"""Standard input as text that comes in pieces: read without a thread, and without waiting for more than there is."""

from __future__ import annotations

import codecs
import os
import select
from contextlib import suppress

import anyio

__all__ = ["Keyboard"]

CHUNK_BYTES = 65_536


class Keyboard:
    """What comes in at *descriptor*. ``over`` tells that its end was read."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.over = False
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    async def wait(self) -> None:
        """Return when there is something to read. On cancel nothing is left behind."""
        with suppress(PermissionError):  # a regular file, which always can be read
            await anyio.wait_readable(self.descriptor)

    def ready(self) -> bool:
        """Tell whether something can be read at once, the end among it."""
        return bool(select.select((self.descriptor,), (), (), 0)[0])

    def read(self) -> str:
        """Return what is there; half a character waits for its rest. To be called when it is `ready`."""
        try:
            piece = os.read(self.descriptor, CHUNK_BYTES)
        except OSError:  # the terminal is gone
            piece = b""
        self.over = not piece
        return self._decoder.decode(piece, final=self.over)
