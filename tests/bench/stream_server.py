"""The server of the figure ``models``: one streamed reply of 50 chunks, whatever is asked.

Below ``/paced`` the chunks come one by one, each with a pause before the next; else as fast as they can be written.

``python -m tests.bench.stream_server`` prints its port and serves until its input ends. It runs in a process of its
own, so that the CPU of the clients is theirs alone.
"""

from __future__ import annotations

import asyncio
import sys

import msgspec

CHUNKS = 50
PACE_S = 0.0004
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def framed(data: bytes) -> bytes:
    """Return *data* as one piece of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(**fields: object) -> bytes:
    """Return one chunk of the stream as OpenAI sends it."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_790_000_000, "model": "bench"}
    return framed(b"data: " + msgspec.json.encode({**head, "system_fingerprint": "fp_1", **fields}) + b"\n\n")


def choice(delta: dict[str, object], finish: str | None = None) -> list[dict[str, object]]:
    """Return the one choice of a chunk."""
    return [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]


COUNTS = {"prompt_tokens": 900, "completion_tokens": 48, "total_tokens": 948}
PIECES = [
    event(choices=choice({"role": "assistant", "content": "", "refusal": None}), usage=None),
    *(event(choices=choice({"content": f" word{number}"}), usage=None) for number in range(CHUNKS - 3)),
    event(choices=choice({}, "stop"), usage=None),
    event(choices=[], usage={**COUNTS, "prompt_tokens_details": {"cached_tokens": 512}}),
]
LAST = framed(b"data: [DONE]\n\n") + b"0\r\n\r\n"


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer every request of one connection."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.partition(b":")[2]))
            pause = PACE_S if b" /paced/" in head else 0
            writer.write(HEAD)
            for piece in PIECES:
                writer.write(piece)
                await asyncio.sleep(pause)
            writer.write(LAST)
    except asyncio.IncompleteReadError:
        pass
    finally:
        writer.close()


async def main() -> None:
    """Serve until the input ends."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
