"""A server on standard input and output, as a transport of the MCP SDK.

Ours instead of the SDK's, because a server must not be able to hurt by what it prints: bytes that are no message are
counted and dropped, a message may have any size up to a limit, and the error output is kept, bounded, for diagnosis.

On leaving: standard input is closed, the server may end by itself for a while, then everything it started is ended.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from orchestrator.sources.processes import MARK, end, end_group, findable, group_of, marked

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from anyio.abc import ByteReceiveStream, Process

    from orchestrator.sources.diagnosis import Diagnosis

__all__ = ["INHERITED", "MAX_FRAME_BYTES", "environment", "stdio"]

MAX_FRAME_BYTES = 16 * 1024 * 1024
PIECE_BYTES = 256 * 1024
LEAVE_S = 1.0
ANSWERED = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\s*,(?!\s*"method")')
"""How a line begins that answers a request of ours."""
INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR")


def environment(declared: Mapping[str, str], mark: str) -> dict[str, str]:
    """Return the environment of a server: a few names of ours, what was declared for it, and its mark."""
    own = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return own | dict(declared) | {MARK: mark}


@asynccontextmanager
async def stdio(
    command: tuple[str, ...],
    env: Mapping[str, str],
    cwd: str,
    mark: str,
    diagnosis: Diagnosis,
    running: Callable[[int], None],
) -> AsyncIterator[tuple[Any, Any]]:
    """Start *command* and yield the two streams that the SDK wants. On leaving nothing of it is left running.

    *running* hears the number of its process. Raises OSError when it cannot be started.
    """
    process = await anyio.open_process(
        list(command), env=environment(env, mark), cwd=cwd or None, start_new_session=True
    )
    incoming, read = anyio.create_memory_object_stream[Any](0)
    write, outgoing = anyio.create_memory_object_stream[Any](0)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_read, process, incoming, diagnosis)
            group.start_soon(_write, process, outgoing, incoming)
            group.start_soon(_keep, process.stderr, diagnosis)
            try:
                running(process.pid)
                yield read, write
            finally:
                with anyio.CancelScope(shield=True):
                    await _leave(process, mark)
                group.cancel_scope.cancel()
    finally:
        for stream in (incoming, read, write, outgoing):
            stream.close()
        with anyio.CancelScope(shield=True):
            await process.aclose()


async def _leave(process: Process, mark: str) -> None:
    """Close the server's input, let it end by itself, then end what is left of it."""

    def left() -> tuple[int, ...]:
        return tuple({*marked(mark), *group_of(process.pid)})

    assert process.stdin is not None
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.stdin.aclose()
    with anyio.move_on_after(LEAVE_S):
        await process.wait()
    if not findable() or not await end(left):
        await end_group(process.pid)


async def _read(process: Process, incoming: Any, diagnosis: Diagnosis) -> None:
    """Hand every message on; when the output ends, so does the stream."""
    from mcp.shared.message import SessionMessage

    assert process.stdout is not None
    with incoming, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for line in _lines(process.stdout, diagnosis):
            message = message_of(line, diagnosis)
            if message is None:
                await anyio.lowlevel.checkpoint()
            else:
                await incoming.send(SessionMessage(message))


def message_of(line: bytes, diagnosis: Diagnosis) -> Any:
    """Return the message that *line* is, or ``None``.

    A line that seems to answer a request and is no message becomes an error of that request, so that nobody waits for
    an answer that has come.
    """
    import mcp_types
    from pydantic import ValidationError

    if line.lstrip().startswith(b"{"):
        read = mcp_types.jsonrpc_message_adapter
        with suppress(ValidationError):
            return read.validate_json(line, by_name=False)
        with suppress(ValueError, RecursionError):
            return read.validate_python(json.loads(line), by_name=False)
    diagnosis.junk(line)
    answered = ANSWERED.match(line)
    if answered is None:
        return None
    error = mcp_types.ErrorData(code=mcp_types.PARSE_ERROR, message="it is no message")
    return mcp_types.JSONRPCError(jsonrpc="2.0", id=int(answered.group(1)), error=error)


async def _lines(stream: ByteReceiveStream, diagnosis: Diagnosis) -> AsyncIterator[bytes]:
    """Yield the lines of *stream* that hold anything; one that is too long is dropped as it comes."""
    pieces: list[bytes] = []
    size, dropping = 0, False
    with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
        while True:
            *ended, rest = (await stream.receive(PIECE_BYTES)).split(b"\n")
            for part in ended:
                line = b"".join((*pieces, part))
                pieces, size = [], 0
                if dropping:
                    dropping = False
                elif line.strip():
                    yield line
            size += len(rest)
            if size > MAX_FRAME_BYTES and not dropping:
                diagnosis.junk(b"".join(pieces)[:PIECE_BYTES], f"a line of over {MAX_FRAME_BYTES} bytes")
                dropping = True
            pieces = [] if dropping else [*pieces, rest]
    if pieces and not dropping and b"".join(pieces).strip():
        diagnosis.junk(b"".join(pieces))


async def _write(process: Process, outgoing: Any, incoming: Any) -> None:
    """Send every message; when the server takes none any more, the stream of answers ends as well."""
    assert process.stdin is not None
    try:
        async with outgoing:
            async for item in outgoing:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.stdin.send(text.encode() + b"\n")
    except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        incoming.close()


async def _keep(stream: ByteReceiveStream | None, diagnosis: Diagnosis) -> None:
    """Keep the end of what the server says on its error output."""
    if stream is not None:
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            while True:
                diagnosis.said(await stream.receive(PIECE_BYTES))
