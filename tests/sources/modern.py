"""A server made with the SDK, of the newest protocol: ``python modern.py stdio | http PORT``.

Its tools: ``add``, ``greet`` (asks for a name), ``crawl`` (tells its progress), ``wait`` (until cancelled, which it
writes to the file LEDGER), ``grow`` (adds a tool and says so), ``die``.
"""

import os
import sys
from typing import Annotated

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel

server = MCPServer("modern", version="1")


class Name(BaseModel):
    name: str


async def whom() -> Elicit[Name]:
    return Elicit("Whom shall I greet?", Name)


@server.tool()
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def greet(who: Annotated[Name, Resolve(whom)]) -> str:
    """Greet somebody."""
    return f"Hello, {who.name}."


@server.tool()
async def crawl(context: Context) -> str:
    """Crawl."""
    for number in range(4):
        await context.report_progress(number + 1, 4, f"page {number + 1}")
        await anyio.sleep(0.02)
    return "crawled"


@server.tool()
async def wait() -> str:
    """Wait."""
    try:
        with open(os.environ["LEDGER"], "a") as file:
            file.write("waiting\n")
        await anyio.sleep(60)
    except anyio.get_cancelled_exc_class():
        with open(os.environ["LEDGER"], "a") as file:
            file.write("cancelled\n")
        raise
    return "waited"


@server.tool()
async def die() -> str:
    """Die."""
    os._exit(3)


@server.resource("note://one")
def note() -> str:
    """A note."""
    return "the note"


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run()
    else:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
