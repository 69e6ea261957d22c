"""An agent as one Markdown file: what it makes, and every fault of it in its place, at once."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.grants import Access
from actors.roles.role import Role
from actors.sources import MCPSource
from actors.tools import Approval
from orchestrator.formats.agent_file import load_agent_file
from orchestrator.workflows.fault import PlanError
from orchestrator.workspace.toolset import WORKSPACE_TOOLS

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.formats.agent_file import AgentFile

POOL = {tool.name: tool for tool in WORKSPACE_TOOLS}
WORKER = "---\nname: worker\nrole: child\n---\nDo the one thing.\n"


def put(folder: Path, **files: str) -> Path:
    """Write files, named without their ending; return the first one's path."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / f"{next(iter(files))}.md"


def read(folder: Path, **files: str) -> AgentFile:
    """Read the agent of the first of *files*."""
    return load_agent_file(put(folder, **files), POOL)


def told(folder: Path, **files: str) -> list[str]:
    """Return every fault, as ``file:line:column: message. remedy``."""
    path = put(folder, **files)
    with pytest.raises(PlanError) as refused:
        load_agent_file(path, POOL)
    return [str(fault).removeprefix(f"{folder}/") for fault in refused.value.faults]


def test_a_file_with_every_key_makes_the_agent_that_it_says(tmp_path: Path) -> None:
    file = read(
        tmp_path,
        boss="""\
---
name: boss
role: builder
description: Plans.
tools: [read_file, list_files]
skills: [skills/refund.md]
children: [workers/one.md]
mcp:
  files: {command: [server, "--root", "1"], tools: [look], access: read, cwd: data, env: {KEY: "${KEY}"}}
  far: {url: "http://localhost:1/mcp", approval: each_call, optional: true, prefix: "", authorities: [shop.read]}
model: wire:big
output: {type: object, required: [answer]}
---

# How to plan

Look first.
""",
        skills__refund="---\nname: refund\ndescription: How to refund.\ntools: [read_file]\n---\nRead it twice.\n",
        workers__one="---\nname: one\nrole: run\nchildren: [deep/two.md]\n---\nWork.\n",
        workers__deep__two=WORKER,
    )
    agent = file.definition
    assert (agent.name, agent.role) == ("boss", Role.BUILDER)
    assert agent.instructions == "Plans.\n\n# How to plan\n\nLook first."
    assert [tool.name for tool in agent.tools.direct] == ["read_file", "list_files"]
    assert [(skill.name, skill.text, skill.tools) for skill in agent.skills] == [
        ("refund", "Read it twice.", ("read_file",))
    ]
    assert agent.tools.mcp == (
        MCPSource(
            "files",
            command=("server", "--root", "1"),
            tools=("look",),
            access=Access.READ,
            cwd=f"{tmp_path}/data",
            env={"KEY": "${KEY}"},
        ),
        MCPSource(
            "far",
            url="http://localhost:1/mcp",
            required=False,
            prefix="",
            approval=Approval.EACH_CALL,
            authorities={"shop.read"},
        ),
    )
    assert agent.output == '{"required":["answer"],"type":"object"}'
    assert [child.name for child in agent.children] == ["one"]
    assert [child.name for child in agent.children[0].children] == ["worker"]
    assert file.models == (("boss", "wire:big"), ("one", "wire:big"), ("worker", "wire:big"))


def test_a_file_with_the_two_keys_it_needs_has_no_tools_of_its_own(tmp_path: Path) -> None:
    file = read(tmp_path, worker=WORKER)
    assert file.definition.tools.direct == ()
    assert file.models == ()


def test_a_childs_own_model_counts_for_it_and_below_it(tmp_path: Path) -> None:
    file = read(
        tmp_path,
        boss="---\nname: boss\nrole: builder\nmodel: wire:a\nchildren: [one.md, worker.md]\n---\nx\n",
        one="---\nname: one\nrole: run\nmodel: wire:b\nchildren: [two.md]\n---\nx\n",
        two="---\nname: two\nrole: child\n---\nx\n",
        worker=WORKER,
    )
    assert dict(file.models) == {"boss": "wire:a", "one": "wire:b", "two": "wire:b", "worker": "wire:a"}


def test_a_playbook_is_looked_for_beside_the_file_that_names_it(tmp_path: Path) -> None:
    file = read(
        tmp_path,
        boss="---\nname: boss\nrole: builder\nchildren: [in/one.md]\n---\nx\n",
        in__one="---\nname: one\nrole: run\nmodel: playbook:plays.py\n---\nx\n",
    )
    assert file.models == (("one", f"playbook:{tmp_path}/in/plays.py"),)


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    plain = read(tmp_path, worker=WORKER)
    (tmp_path / "other.md").write_bytes(b"\xef\xbb\xbf" + WORKER.replace("\n", "\r\n").encode())
    assert load_agent_file(tmp_path / "other.md", POOL) == plain


@pytest.mark.requirement("B84")
def test_every_fault_of_every_file_is_told_at_once_in_its_place(tmp_path: Path) -> None:
    assert told(
        tmp_path,
        boss="""\
---
name: boss
rol: builder
tools: [read_fil, bash]
children: [one.md, missing.md]
mcp: {files: {comand: [x]}}
model: gpt
---
""",
        one="---\nname: one\nrole: chld\nmodle: x\n---\nWork.\n",
    ) == [
        "boss.md:2:1: the agent lacks the key 'role'. Add 'role:' with text.",
        "boss.md:3:1: the agent has no key 'rol'. Did you mean 'role'?",
        "boss.md:4:9: there is no tool 'read_fil'. Did you mean 'read_file'?",
        "boss.md:4:19: there is no tool 'bash'. Known are: diff_patch_workspace_file, list_files, read_file.",
        f"boss.md:5:20: {tmp_path}/missing.md cannot be read: no such file. Name a Markdown file of at most 1 MiB.",
        "boss.md:6:14: MCP server 'files' needs a command or a url. Give one of the two.",
        "boss.md:6:15: MCP server 'files' has no key 'comand'. Did you mean 'command'?",
        "boss.md:7:8: 'gpt' is not a model. Write it like provider:model.",
        "boss.md:9:1: the agent has no instructions. Write them below the front matter.",
        "one.md:3:7: there is no role 'chld'. Did you mean 'child'?",
        "one.md:4:1: the agent has no key 'modle'. Did you mean 'model'?",
    ]


@pytest.mark.requirement("B84")
@pytest.mark.parametrize(
    "text, fault",
    [
        ("", "1:1: the file has no front matter. Begin with '---', then name, role, then '---'."),
        ("# Boss\n", "1:1: the file has no front matter. Begin with '---', then name, role, then '---'."),
        ("---\nname: boss\nrole: run\nx\n", "1:1: the front matter has no end. Put a line '---' below its last key."),
        ("---\n# nothing\n\n---\nx", "1:1: the front matter is empty. Write keys such as name, role."),
        ("---\n- name\n---\nx", "2:1: the file is a list. Write a mapping with name, role."),
        ("---\nname: a: b\nrole: run\n---\nx", "2:8: this is not YAML"),
        ("---\nname: boss\nname: b\nrole: run\n---\nx", "3:1: the key 'name' was given on line 2"),
        ("---\nname: boss\nrole: run\ntools: read_file\n---\nx", "4:8: 'tools' of the agent is text 'read_file'"),
        ("---\nname: boss\nrole: run\noutput: {type: no}\n---\nx", "4:16: this is not a valid JSON Schema"),
        ("---\nname: boss\nrole: run\nmcp: {a: x}\n---\nx", "4:10: MCP server 'a' is text"),
        ("---\nname: boss\nrole: run\nmcp: {a: {command: [[x]]}}\n---\nx", "4:20: 'command' of MCP server 'a' is not"),
        ("---\nname: boss\nrole: run\nmcp: {a: {command: [x], url: y}}\n---\nx", "4:10: MCP server 'a' needs"),
        ("---\nname: boss\nrole: run\nmcp: {a__b: {url: 'http://y'}}\n---\nx", "2:7: agent 'boss': MCP source 'a__b'"),
        ("---\nname: boss\nrole: run\nmcp: {a: {url: 'http://y', access: rea}}\n---\nx", "4:36: there is no access"),
        ("---\nname: boss\nrole: run\nmcp: {a: {url: 'http://y', env: {A: [1]}}}\n---\nx", "4:37: 'env.A' of MCP"),
        ('---\nname: "  "\nrole: run\n---\nx', "2:7: 'name' of the agent is empty"),
        ("---\nname: boss\nrole: reviewer\ntools: [diff_patch_workspace_file]\n---\nx", "2:7: agent 'boss': tool"),
    ],
)
def test_a_file_with_a_fault_makes_no_agent_and_names_the_place(tmp_path: Path, text: str, fault: str) -> None:
    assert told(tmp_path, boss=text)[0].startswith(f"boss.md:{fault}")


@pytest.mark.parametrize("child", ["../up.md", "/etc/passwd", "in/../../up.md"])
def test_a_child_is_looked_for_beneath_the_first_files_folder_only(tmp_path: Path, child: str) -> None:
    put(tmp_path, up=WORKER)
    inside = tmp_path / "inside"
    inside.mkdir()
    (fault,) = told(inside, boss=f"---\nname: boss\nrole: run\nchildren: ['{child}']\n---\nx\n")
    assert fault.startswith("boss.md:4:12: ")


def test_agent_files_that_are_each_others_children_are_named_as_a_chain(tmp_path: Path) -> None:
    faults = told(
        tmp_path,
        a="---\nname: a\nrole: child\nchildren: [b.md]\n---\nx\n",
        b="---\nname: b\nrole: child\nchildren: [a.md]\n---\nx\n",
    )
    assert faults == ["b.md:4:12: agent files are each other's children: a.md -> b.md -> a.md. Take one of them out."]


def test_a_child_that_the_role_may_not_start_is_a_fault_of_the_parent(tmp_path: Path) -> None:
    faults = told(
        tmp_path,
        a="---\nname: a\nrole: child\nchildren: [b.md]\n---\nx\n",
        b="---\nname: b\nrole: builder\n---\nx\n",
    )
    assert faults == [
        "a.md:2:7: agent 'a': child 'b' is a builder; a child may start child. Change its role, tools or children."
    ]


def test_two_agents_of_one_name_have_one_model(tmp_path: Path) -> None:
    faults = told(
        tmp_path,
        a="---\nname: a\nrole: builder\nmodel: w:1\nchildren: [b.md, c.md]\n---\nx\n",
        b="---\nname: b\nrole: run\nchildren: [d.md]\n---\nx\n",
        c="---\nname: c\nrole: run\nmodel: w:2\nchildren: [e.md]\n---\nx\n",
        d="---\nname: d\nrole: child\n---\nx\n",
        e="---\nname: d\nrole: child\n---\ny\n",
    )
    assert faults == ["e.md:2:7: there are two agents 'd', of two models. Give one another name."]


@given(st.text(max_size=200))
def test_whatever_a_file_holds_it_is_an_agent_or_has_faults(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    folder = tmp_path_factory.mktemp("agents")
    (folder / "boss.md").write_bytes(f"---\nname: boss\nrole: run\n{text}".encode("utf-8", "surrogatepass"))
    with suppress(PlanError):
        assert load_agent_file(folder / "boss.md", POOL).definition.tools.direct == ()
