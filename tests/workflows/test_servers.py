"""MCP servers as a file declares them."""

from __future__ import annotations

import pytest

from actors.grants import Access
from actors.reshape import Reshape
from actors.sources import MCPSource, ToolRule
from actors.tools import Approval
from orchestrator.workflows.document import Mapping, read_document
from orchestrator.workflows.fault import FaultLog
from orchestrator.workflows.section import Section
from orchestrator.workflows.servers import read_servers

WHOLE = """
mcp:
  git:
    command: [mcp-server-git, --repository, .]
    cwd: src
    env: {HOME: /tmp, TOKEN: "${GIT_TOKEN}"}
    tools:
      git_log: {access: read, fixed: {repo_path: ".", n: 3}, renamed: {limit: max_count}}
      git_commit: {access: write, approval: each_call, authorities: [workspace.write]}
    access: external
    approval: each_call
    authorities: [net.use]
    trusted: true
    data: true
    optional: true
    prefix: ""
    start_s: 5
    call_s: 0.5
  web: {url: "https://example.org/mcp", headers: {Authorization: "Bearer ${T}"}, tools: [search]}
"""


def read(text: str) -> tuple[list[MCPSource], list[str]]:
    """The servers of a file, and its faults, each as place and text."""
    faults = FaultLog()
    root = read_document(text, "f.yaml", faults)
    assert isinstance(root, Mapping)
    servers = list(read_servers(Section(root, "the file", faults)))
    return servers, sorted(f"{each.line}:{each.column}: {each.message}" for each in faults.faults)


def test_everything_that_a_source_can_say_can_be_written() -> None:
    servers, faults = read(WHOLE)
    assert faults == []
    assert servers == [
        MCPSource(
            "git",
            ("mcp-server-git", "--repository", "."),
            tools=("git_log", "git_commit"),
            required=False,
            prefix="",
            env={"HOME": "/tmp", "TOKEN": "${GIT_TOKEN}"},
            cwd="src",
            access=Access.EXTERNAL,
            approval=Approval.EACH_CALL,
            authorities={"net.use"},
            rules=(
                ToolRule(
                    "git_log",
                    access="read",
                    reshape=Reshape({"repo_path": '"."', "n": "3"}, {"limit": "max_count"}),
                ),
                ToolRule("git_commit", access="write", approval="each_call", authorities={"workspace.write"}),
            ),
            trusted=True,
            data=True,
            start_s=5.0,
            call_s=0.5,
        ),
        MCPSource("web", url="https://example.org/mcp", headers={"Authorization": "Bearer ${T}"}, tools=("search",)),
    ]


def test_what_is_left_out_is_as_a_source_has_it() -> None:
    assert read("mcp: {a: {command: [x]}}") == ([MCPSource("a", ("x",))], [])
    assert read("other: 1") == ([], [])


@pytest.mark.parametrize(
    "text, fault",
    [
        ("mcp: {a: x}", "1:10: MCP server 'a' is text"),
        ("mcp: {a: {comand: [x], url: y}}", "1:11: MCP server 'a' has no key 'comand'"),
        ("mcp: {a: {tools: [x]}}", "1:10: MCP server 'a' needs a command or a url"),
        ("mcp: {a: {command: [x], url: y}}", "1:10: MCP server 'a' needs a command or a url"),
        ("mcp: {a: {command: [[x]]}}", "1:20: 'command' of MCP server 'a' is not a list of texts"),
        ("mcp: {a: {command: []}}", "1:20: 'command' of MCP server 'a' is not a list of texts"),
        ("mcp: {a: {url: y, env: [x]}}", "1:24: 'env' of MCP server 'a' is a list"),
        ("mcp: {a: {url: y, env: {A: [x]}}}", "1:28: 'env.A' of MCP server 'a' is a list"),
        ("mcp: {a: {url: y, access: reed}}", "1:27: there is no access 'reed'"),
        ("mcp: {a: {url: y, approval: always}}", "1:29: there is no approval 'always'"),
        ("mcp: {a: {url: y, authorities: [X]}}", "1:33: 'X' is not an authority"),
        ("mcp: {a: {url: y, authorities: [a.*]}}", "1:33: 'a.*' is not an authority"),
        ("mcp: {a: {url: y, start_s: 0}}", "1:28: 'start_s' of MCP server 'a' is text '0'"),
        ("mcp: {a: {url: y, call_s: 1e9}}", "1:27: 'call_s' of MCP server 'a' is text '1e9'"),
        ("mcp: {a: {url: y, trusted: yes}}", "1:28: 'trusted' of MCP server 'a' is text 'yes'"),
        ("mcp: {a: {url: y, tools: x}}", "1:26: 'tools' of MCP server 'a' is text 'x'"),
        ("mcp: {a: {url: y, tools: {t: x}}}", "1:30: the tool 't' of MCP server 'a' is text"),
        ("mcp: {a: {url: y, tools: {t: {acess: read}}}}", "1:31: the tool 't' of MCP server 'a' has no key 'acess'"),
        ("mcp: {a: {url: y, tools: {t: {renamed: {x: [y]}}}}}", "1:44: 'renamed.x' of the tool 't'"),
        ("mcp: [a]", "1:6: 'mcp' of the file is a list"),
    ],
)
def test_a_fault_is_told_at_its_place(text: str, fault: str) -> None:
    (told,) = read(text)[1]
    assert told.startswith(fault)
