"""Where `scripts/neighbours` has put the real servers, and how each is started."""

from __future__ import annotations

import subprocess
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from actors.grants import Access
from actors.sources import MCPSource

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PLACE", "SERVERS", "Neighbour", "filled", "site_of", "source"]

PLACE = Path(__file__).parents[2] / ".cache" / "neighbours"


@attrs.frozen
class Neighbour:
    """A server: its command, how many tools it lists, one call that it answers, and a part of the answer.

    ``{folder}`` in the command and the arguments is a folder of the test's own, ``{site}`` a web site of its files.
    """

    command: tuple[str, ...]
    tools: int
    call: tuple[str, dict[str, Any]]
    answer: str
    protocol: str


NODE = str(PLACE / "bin" / "node")
PACKAGES = PLACE / "node" / "node_modules" / "@modelcontextprotocol"


def node(package: str, *arguments: str) -> tuple[str, ...]:
    """The command of a server in Node."""
    return (NODE, str(PACKAGES / package / "dist" / "index.js"), *arguments)


def python(where: str, name: str, *arguments: str) -> tuple[str, ...]:
    """The command of a server in Python."""
    return (str(PLACE / where / "bin" / name), *arguments)


OLDER, NEWEST = "2025-11-25", "2026-07-28"
THOUGHT = {"thought": "one", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
SERVERS = {
    "everything": Neighbour(
        node("server-everything", "stdio"), 15, ("get-sum", {"a": 2, "b": 3}), "The sum of 2 and 3 is 5", OLDER
    ),
    "filesystem": Neighbour(
        node("server-filesystem", "{folder}"), 14, ("list_directory", {"path": "{folder}"}), "[FILE] a.txt", OLDER
    ),
    "memory": Neighbour(node("server-memory"), 9, ("read_graph", {}), '"entities"', OLDER),
    "thinking": Neighbour(
        node("server-sequential-thinking"), 1, ("sequentialthinking", THOUGHT), '"thoughtNumber": 1', OLDER
    ),
    "time": Neighbour(
        python("servers", "mcp-server-time"), 2, ("get_current_time", {"timezone": "UTC"}), '"timezone": "UTC"', NEWEST
    ),
    "git": Neighbour(
        python("servers", "mcp-server-git", "--repository", "{folder}"),
        12,
        ("git_log", {"repo_path": "{folder}"}),
        "first commit",
        NEWEST,
    ),
    "fetch": Neighbour(
        python("servers", "mcp-server-fetch", "--allow-private-ips"),
        1,
        ("fetch", {"url": "{site}/a.txt"}),
        "hello",
        NEWEST,
    ),
    "sqlite": Neighbour(
        python("older", "mcp-server-sqlite", "--db-path", "{folder}/x.db"), 6, ("list_tables", {}), "[]", OLDER
    ),
}


def source(name: str, folder: Path, **declared: Any) -> MCPSource:
    """The source of the server *name*, with a folder that has a file and one commit."""
    (folder / "a.txt").write_text("hello\n")
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    for words in (("init", "-q"), ("add", "a.txt"), (*identity, "commit", "-q", "-m", "first commit")):
        subprocess.run(("git", *words), cwd=folder, check=True, capture_output=True)
    command = tuple(part.replace("{folder}", str(folder)) for part in SERVERS[name].command)
    env = {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}
    more = {"access": Access.READ, "env": env, "start_s": 60.0, "call_s": 20.0, **declared}
    return MCPSource(name, command, **more)


def filled(value: Any, folder: Path, site: str) -> Any:
    """*value* with the folder and the address of the site filled in."""
    if isinstance(value, str):
        return value.replace("{folder}", str(folder)).replace("{site}", site)
    if isinstance(value, dict):
        return {key: filled(each, folder, site) for key, each in value.items()}
    return value


@contextmanager
def site_of(folder: Path) -> Iterator[str]:
    """Serve the files of *folder* for the time of the block; the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and prints nothing."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the standard library's name
        """Print nothing."""
