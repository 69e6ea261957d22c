"""What the workspace tools tell a model, and what they leave on disk."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING

import pytest

from orchestrator.workspace import tools
from orchestrator.workspace.patch import make
from orchestrator.workspace.refusal import WorkspaceRefused
from orchestrator.workspace.roots import Workspace
from orchestrator.workspace.tools import diff_patch_workspace_file, list_files, patch_state, read_file

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def put(ws: Workspace, path: str, data: bytes | str) -> None:
    ws.write_bytes_atomic(path, data if isinstance(data, bytes) else data.encode())


async def test_reading_tells_the_range_and_the_total_and_gives_the_lines_as_they_are(ws: Workspace) -> None:
    put(ws, "a.py", "".join(f"line {number}\n" for number in range(1, 11)))
    async with asyncio.timeout(5):
        assert await read_file(ws, "a.py", 3, 2) == "a.py: lines 3-4 of 10\nline 3\nline 4"
        assert (await read_file(ws, "a.py", 9)).startswith("a.py: lines 9-10 of 10\n")
        assert (await read_file(ws, "a.py")).count("\n") == 10


async def test_reading_tells_what_the_text_does_not_show(ws: Workspace) -> None:
    put(ws, "empty", "")
    put(ws, "open", "a\nb")
    put(ws, "dos", "a\r\nb\r\n")
    put(ws, "latin", b"caf\xe9\n")
    put(ws, "marked", b"\xef\xbb\xbfa\n")
    put(ws, "honest", "\ufffd\n")
    async with asyncio.timeout(5):
        assert await read_file(ws, "empty") == "empty: empty\n"
        assert await read_file(ws, "open") == "open: lines 1-2 of 2, no newline at the end\na\nb"
        assert (await read_file(ws, "dos")).startswith("dos: lines 1-2 of 2, CRLF line ends\n")
        assert (
            await read_file(ws, "latin") == "latin: lines 1-1 of 1, bytes that are not UTF-8 shown as \ufffd\ncaf\ufffd"
        )
        assert await read_file(ws, "marked") == "marked: lines 1-1 of 1, starts with a byte order mark\na"
        assert await read_file(ws, "honest") == "honest: lines 1-1 of 1\n\ufffd"


@pytest.mark.parametrize(
    "data, kind",
    [
        (b"\x89PNG\r\n", "a PNG image of 6 bytes"),
        (b"a\0b", "binary data of 3 bytes"),
        ("hi".encode("utf-16"), "UTF-16 text of 6 bytes"),
    ],
)
async def test_a_binary_file_is_refused_naming_its_kind_and_size(ws: Workspace, data: bytes, kind: str) -> None:
    put(ws, "f", data)
    async with asyncio.timeout(5):
        with pytest.raises(WorkspaceRefused, match=f"it is {kind}, not text"):
            await read_file(ws, "f")


async def test_a_range_that_is_not_there_is_refused_with_the_total(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(ws, "f", "a\nb\n")
    async with asyncio.timeout(5):
        with pytest.raises(WorkspaceRefused, match="behind the end of 2 lines"):
            await read_file(ws, "f", 3)
        for start, count in ((0, 1), (1, 0), (1, 2001)):
            with pytest.raises(WorkspaceRefused, match="out of range"):
                await read_file(ws, "f", start, count)
        monkeypatch.setattr(tools, "MAX_CHARS", 2)
        with pytest.raises(WorkspaceRefused, match="Ask for fewer lines"):
            await read_file(ws, "f")


async def test_listing_shows_kinds_and_sizes_and_names_what_is_left_out(ws: Workspace, tmp_path: Path) -> None:
    put(ws, "src/a.py", "12345")
    put(ws, "src/deep/er/b.py", "")
    put(ws, ".git/config", "")
    (tmp_path / "link").symlink_to("src")
    (tmp_path / "two\nlines").touch()
    async with asyncio.timeout(5):
        assert (await list_files(ws, depth=2)).splitlines() == [
            ".git/",
            "link@",
            "src/",
            "src/a.py (5)",
            "src/deep/",
            "two\\nlines (0)",
            "... not opened (depth 2, or no permission): src/deep",
            "... skipped: .git",
        ]
        assert await list_files(ws, "src", 5, "**/*.py") == "src/a.py (5)\nsrc/deep/er/b.py (0)"
        assert (
            await list_files(ws, "src", 1, "*.md")
            == "nothing matches *.md\n... not opened (depth 1, or no permission): src/deep"
        )


async def test_a_long_listing_is_cut_and_counted(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        (tmp_path / f"{number:02}").mkdir()
    monkeypatch.setattr(tools, "MAX_ENTRIES", 2)
    async with asyncio.timeout(5):
        lines = (await list_files(ws, depth=1)).splitlines()
        assert lines[:3] == ["00/", "01/", "... 28 further entries left out: narrow the path or the pattern"]
        assert lines[3].endswith(" 19 and 10 more")
        for depth, pattern in ((0, "*"), (17, "*"), (1, ""), (1, "x" * 201)):
            with pytest.raises(WorkspaceRefused):
                await list_files(ws, ".", depth, pattern)


async def test_a_patch_changes_one_file_and_tells_the_new_hash(ws: Workspace) -> None:
    put(ws, "src/a.py", "x = 1\n")
    changed = "x = 2\n"
    diff = make("x = 1\n", changed, "src/a.py")
    digest = hashlib.sha256(changed.encode()).hexdigest()[:16]
    async with asyncio.timeout(5):
        answer = await diff_patch_workspace_file(ws, "./src/../src/a.py", diff)
    assert answer == f"src/a.py: 1 hunk applied, sha256 {digest}"
    assert ws.read_bytes("src/a.py", 100) == changed.encode()


async def test_a_byte_order_mark_survives_a_patch_that_does_not_know_of_it(ws: Workspace) -> None:
    put(ws, "f", "\ufeffa\n".encode())
    async with asyncio.timeout(5):
        await diff_patch_workspace_file(ws, "f", make("a\n", "b\n", "f"))
    assert ws.read_bytes("f", 100) == "\ufeffb\n".encode()


async def test_a_patch_creates_a_file_with_its_directories_and_deletes_one(ws: Workspace) -> None:
    made = "--- /dev/null\n+++ b/new/f\n@@ -0,0 +1 @@\n+a\n"
    gone = "--- a/new/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
    async with asyncio.timeout(5):
        await diff_patch_workspace_file(ws, "new/f", made)
        assert ws.read_bytes("new/f", 10) == b"a\n"
        with pytest.raises(WorkspaceRefused, match="already there"):
            await diff_patch_workspace_file(ws, "new/f", made)
        assert await diff_patch_workspace_file(ws, "new/f", gone) == "new/f: 1 hunk applied, file deleted"
    assert not ws.exists("new/f")


@pytest.mark.parametrize(
    "path, diff, rule",
    [
        ("f", make("a\n", "b\n", "g"), "the diff's header names another file, 'a/g'"),
        ("f", "--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", "names another file, 'b/g'"),
        ("f", "--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+b\n", "both header lines are /dev/null"),
        ("f", make("z\n", "b\n", "f"), "diff line 3: its old lines are not in the file"),
        ("f", "", "the two header lines are missing"),
        ("f", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+\ud800\n", "cannot be encoded"),
        ("f", "x" * (1024 * 1024 + 1), "longer than"),
        ("../f", make("a\n", "b\n", "../f"), "only paths under the workspace root are allowed"),
        ("missing", make("a\n", "b\n", "missing"), "no such file"),
        ("latin", make("a\n", "b\n", "latin"), "it is not UTF-8 text"),
    ],
)
async def test_a_patch_that_does_not_fit_changes_nothing(
    ws: Workspace, tmp_path: Path, path: str, diff: str, rule: str
) -> None:
    put(ws, "f", "a\n")
    put(ws, "latin", b"a\n\xe9\n")
    async with asyncio.timeout(5):
        with pytest.raises(WorkspaceRefused) as refused:
            await diff_patch_workspace_file(ws, path, diff)
    assert rule in refused.value.rule
    assert names_in(tmp_path) == ["f", "latin"]
    assert ws.read_bytes("f", 10) == b"a\n"


async def test_patches_of_one_file_at_the_same_time_all_count(ws: Workspace) -> None:
    lines = [f"{number}\n" for number in range(20)]
    put(ws, "f", "".join(lines))
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        for number in range(20):
            diff = f"--- a/f\n+++ b/f\n@@ -{number + 1} +{number + 1} @@\n-{number}\n+{number} done\n"
            group.create_task(diff_patch_workspace_file(ws, "f", diff))
    assert ws.read_bytes("f", 1000).decode() == "".join(f"{number} done\n" for number in range(20))


async def test_whether_a_patch_is_on_disk_can_be_told_afterwards(ws: Workspace) -> None:
    put(ws, "f", "a\nb\nc\n")
    diff = make("a\nb\nc\n", "a\nx\nc\n", "f")
    async with asyncio.timeout(5):
        assert await patch_state(ws, "f", diff) == "not_applied"
        await diff_patch_workspace_file(ws, "f", diff)
        assert await patch_state(ws, "f", diff) == "applied"
        put(ws, "f", "something else\n")
        assert await patch_state(ws, "f", diff) == "unknown"
        ws.remove("f")
        assert await patch_state(ws, "f", diff) == "unknown"
        assert await patch_state(ws, "../f", diff) == "unknown"
        assert await patch_state(ws, "f", "words") == "unknown"


async def test_a_patch_that_fits_both_ways_is_not_guessed_at(ws: Workspace) -> None:
    put(ws, "f", "a\nx\n")
    async with asyncio.timeout(5):
        assert await patch_state(ws, "f", "--- a/f\n+++ b/f\n@@ -1 +1,2 @@\n a\n+x\n") == "unknown"


async def test_whether_a_file_was_created_or_deleted_can_be_told_afterwards(ws: Workspace) -> None:
    made = "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n"
    gone = "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
    async with asyncio.timeout(5):
        assert (await patch_state(ws, "f", made), await patch_state(ws, "f", gone)) == ("not_applied", "applied")
        put(ws, "f", "a\n")
        assert (await patch_state(ws, "f", made), await patch_state(ws, "f", gone)) == ("applied", "not_applied")
        put(ws, "f", "b\n")
        assert (await patch_state(ws, "f", made), await patch_state(ws, "f", gone)) == ("unknown", "unknown")
