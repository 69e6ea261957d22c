"""A path given by a model never leads out of the root, and file work is whole or not at all."""

from __future__ import annotations

import os
import socket
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.workspace import roots
from orchestrator.workspace.refusal import WorkspaceRefused
from orchestrator.workspace.roots import Workspace
from orchestrator.workspace.spelling import ROOT_RULE, spelling_fault


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A root called ``ws/app`` with the file ``x``, and siblings that look like it."""
    root = tmp_path / "ws" / "app"
    root.mkdir(parents=True)
    (root / "x").write_text("inside", encoding="utf-8")
    (root / "a").mkdir()
    for sibling in ("app-evil", "APP"):
        (tmp_path / "ws" / sibling).mkdir()
        (tmp_path / "ws" / sibling / "x").write_text("outside", encoding="utf-8")
    (tmp_path / "ws" / "x").write_text("outside", encoding="utf-8")
    return root


@pytest.fixture
def ws(app: Path) -> Workspace:
    return Workspace(app)


OUTSIDE = [
    ("../app-evil/x", "{ws}/app-evil/x"),
    ("{ws}/app-evil/x", "{ws}/app-evil/x"),
    ("{ws}/app/../app-evil/x", "{ws}/app-evil/x"),
    ("./a/../../x", "{ws}/x"),
    ("{ws}/APP/x", "{ws}/APP/x"),
    ("a/../../app/x", "{ws}/app/x"),
    ("new/../../x", "{ws}/x"),
    ("/etc/passwd", "/etc/passwd"),
    ("//etc/passwd", "//etc/passwd"),
    ("/", "/"),
]


@pytest.mark.requirement("B76")
@pytest.mark.parametrize("path, resolved", OUTSIDE)
def test_a_path_outside_the_root_is_refused_naming_the_rule_and_where_it_leads(
    ws: Workspace, app: Path, path: str, resolved: str
) -> None:
    path, resolved = path.format(ws=app.parent), resolved.format(ws=app.parent)
    target = ws.target(path, write=True)
    assert (target.inside, target.rule, target.resolved) == (False, ROOT_RULE, resolved)
    with pytest.raises(WorkspaceRefused) as refused:
        ws.read_bytes(path, 100)
    assert (refused.value.path, refused.value.rule, refused.value.resolved) == (path, ROOT_RULE, resolved)
    assert str(app) in refused.value.remedy
    assert ROOT_RULE in str(refused.value)
    assert resolved in str(refused.value)
    with pytest.raises(WorkspaceRefused):
        ws.write_bytes_atomic(path, b"changed")
    assert (app.parent / "x").read_text(encoding="utf-8") == "outside"


@pytest.mark.requirement("B76")
@pytest.mark.parametrize(
    "path, rule",
    [
        ("a\\..\\..\\x", "a backslash is not a separator"),
        ("file:///etc/passwd", "a URL is not a path"),
        ("FILE:/etc/passwd", "a URL is not a path"),
        ("~/.x", "home directories are not expanded"),
        ("~", "home directories are not expanded"),
        ("~root/.x", "home directories are not expanded"),
        ("a\0b", "a path may not hold a NUL character"),
        ("%2e%2e/x", "percent escapes are not decoded"),
        ("a/.%2E/x", "percent escapes are not decoded"),
        ("a%2fb", "percent escapes are not decoded"),
        ("", "a path may not be empty"),
        ("  ", "a path may not be empty"),
        ("a/" * 2049, "a path may not be longer than 4096 characters"),
        ("\ud800", "a path must be text that can be encoded"),
    ],
)
def test_a_spelling_that_others_would_read_as_another_path_is_refused(ws: Workspace, path: str, rule: str) -> None:
    target = ws.target(path, write=False)
    assert (target.inside, target.rule) == (False, rule)
    with pytest.raises(WorkspaceRefused, match=rule):
        ws.write_bytes_atomic(path, b"")


@pytest.mark.requirement("B76")
@pytest.mark.parametrize(
    "path", ["{ws}/app/x", "{ws}//app/x", "x", "./x", "a/../x", "a/.././x", "new/../x", "{ws}/./app/a/../x"]
)
def test_every_plain_spelling_of_a_path_inside_leads_to_the_same_file(ws: Workspace, app: Path, path: str) -> None:
    path = path.format(ws=app.parent)
    target = ws.target(path, write=False)
    assert (target.requested, target.resolved, target.inside, target.rule) == (path, "x", True, "")
    assert ws.read_bytes(path, 100) == b"inside"


@pytest.mark.parametrize("path", [".", "a/..", "{ws}/app", "{ws}/app/"])
def test_the_root_itself_is_a_dot(ws: Workspace, app: Path, path: str) -> None:
    assert ws.target(path.format(ws=app.parent), write=False).resolved == "."


@pytest.mark.parametrize(
    "path", ["~notes.txt", "./~notes/x", "100%", "a..b", "...", "back\\slash", "a:b", "line\nbreak"]
)
def test_an_odd_name_is_just_a_name(ws: Workspace, path: str) -> None:
    ws.write_bytes_atomic(path, b"odd")
    assert ws.read_bytes(path, 3) == b"odd"
    assert ws.target(path, write=False).resolved == path.removeprefix("./")


@given(path=st.text(alphabet="ab./~%\\:2e ", max_size=24))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_spelling_whatsoever_leads_out(ws: Workspace, app: Path, path: str) -> None:
    target = ws.target(path, write=True)
    inside = (app / path).resolve() == app or app in (app / path).resolve().parents
    assert target.inside == (inside and not spelling_fault(path))


def test_links_inside_are_followed_and_links_out_are_refused(ws: Workspace, app: Path) -> None:
    (app / "near").symlink_to("a/../x")
    (app / "absolute").symlink_to(app / "x")
    (app / "folder").symlink_to("a")
    (app / "a" / "up").symlink_to("..")
    assert ws.read_bytes("near", 10) == b"inside"
    assert ws.target("absolute", write=False).resolved == "x"
    assert ws.target("folder/up/folder/up/x", write=False).resolved == "x"
    outside = app.parent / "app-evil"
    (app / "out").symlink_to(outside)
    (app / "climb").symlink_to("../app-evil/x")
    out = ws.target("out/x", write=True)
    assert (out.inside, out.resolved) == (False, str(outside))
    assert "link 'out'" in out.rule
    assert ws.target("climb", write=True).resolved == str(outside / "x")
    for path in ("out/x", "climb", "a/up/out/x"):
        with pytest.raises(WorkspaceRefused, match=ROOT_RULE):
            ws.write_bytes_atomic(path, b"changed")
    assert (outside / "x").read_text(encoding="utf-8") == "outside"


def test_writing_through_a_link_changes_the_file_and_keeps_the_link(ws: Workspace, app: Path) -> None:
    (app / "near").symlink_to("x")
    assert ws.write_bytes_atomic("near", b"new") == "x"
    assert (app / "near").is_symlink()
    assert (app / "x").read_bytes() == b"new"


def test_links_that_go_in_circles_are_refused(ws: Workspace, app: Path) -> None:
    (app / "one").symlink_to("two")
    (app / "two").symlink_to("one")
    assert ws.target("one", write=False).rule == "more than 16 links follow one another"


def test_a_dangling_link_leads_to_the_file_it_would_make(ws: Workspace, app: Path) -> None:
    (app / "link").symlink_to("a/made")
    assert ws.write_bytes_atomic("link", b"1") == "a/made"
    assert (app / "a" / "made").read_bytes() == b"1"


def test_a_root_reached_through_a_link_takes_absolute_paths_in_both_spellings(app: Path) -> None:
    (app.parent / "alias").symlink_to("app")
    aliased = Workspace(app.parent / "alias")
    assert aliased.read_bytes(f"{app.parent}/alias/x", 10) == b"inside"
    assert aliased.read_bytes(f"{app}/x", 10) == b"inside"


def test_a_missing_root_is_refused_and_named(tmp_path: Path) -> None:
    target = Workspace(tmp_path / "nowhere").target("x", write=False)
    assert not target.inside
    assert "root cannot be opened" in target.rule
    assert target.resolved == str(tmp_path / "nowhere")


def test_a_directory_swapped_for_a_link_between_look_and_open_is_refused(
    ws: Workspace, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_open = os.open

    def swap_then_open(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "a":
            (app / "a").rmdir()
            (app / "a").symlink_to(app.parent / "app-evil")
        return real_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swap_then_open)
    with pytest.raises(WorkspaceRefused, match="'a' cannot be opened"):
        ws.read_bytes("a/x", 10)


@pytest.mark.parametrize("kind", ["fifo", "socket", "directory"])
def test_what_is_no_regular_file_is_refused_without_waiting(
    ws: Workspace, app: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(app)
    with socket.socket(socket.AF_UNIX) as listening:
        if kind == "fifo":
            os.mkfifo("thing")
        elif kind == "socket":
            listening.bind("thing")
        else:
            (app / "thing").mkdir()
        for work in (lambda: ws.read_bytes("thing", 1), lambda: ws.digest("thing"), lambda: ws.remove("thing")):
            with pytest.raises(WorkspaceRefused, match=f"it is a {kind}, not a regular file"):
                work()
        with pytest.raises(WorkspaceRefused, match=f"it is a {kind}"):
            ws.write_bytes_atomic("thing", b"")


def test_a_fifo_swapped_in_at_the_last_moment_is_refused_without_waiting(
    ws: Workspace, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_open = os.open

    def swap_then_open(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "x":
            (app / "x").unlink()
            os.mkfifo(app / "x")
        return real_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swap_then_open)
    with pytest.raises(WorkspaceRefused, match="fifo"):
        ws.read_bytes("x", 10)


def test_a_file_over_the_limit_is_refused_with_its_size(ws: Workspace) -> None:
    assert ws.read_bytes("x", 6) == b"inside"
    with pytest.raises(WorkspaceRefused, match="holds 6 bytes and at most 5"):
        ws.read_bytes("x", 5)


def test_a_missing_file_is_refused_and_a_file_is_no_directory(ws: Workspace) -> None:
    for work in (lambda: ws.read_bytes("no", 1), lambda: ws.digest("no/no"), lambda: ws.remove("no")):
        with pytest.raises(WorkspaceRefused, match="no such file"):
            work()
    with pytest.raises(WorkspaceRefused, match="'x' is a file, not a directory"):
        ws.read_bytes("x/y", 1)
    with pytest.raises(WorkspaceRefused, match="not a directory"):
        ws.listing("x", 1, 1)


def test_what_the_file_system_refuses_is_a_refusal_too(ws: Workspace) -> None:
    with pytest.raises(WorkspaceRefused, match="File name too long"):
        ws.write_bytes_atomic("n" * 300, b"")


def test_a_write_keeps_the_mode_and_a_new_file_has_the_usual_one(ws: Workspace, app: Path) -> None:
    (app / "x").chmod(0o751)
    ws.write_bytes_atomic("x", b"new")
    assert stat.S_IMODE((app / "x").stat().st_mode) == 0o751
    assert ws.write_bytes_atomic("deep/er/new", b"1") == "deep/er/new"
    (app / "usual").touch()
    assert (app / "deep" / "er" / "new").stat().st_mode == (app / "usual").stat().st_mode


def test_a_directory_that_someone_else_makes_meanwhile_is_used(
    ws: Workspace, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_mkdir = os.mkdir

    def made_twice(path: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        real_mkdir(path, mode, dir_fd=dir_fd)
        real_mkdir(path, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkdir", made_twice)
    ws.write_bytes_atomic("deep/er/new", b"1")
    assert (app / "deep" / "er" / "new").read_bytes() == b"1"


def test_a_read_only_file_is_not_replaced(ws: Workspace, app: Path) -> None:
    (app / "x").chmod(0o444)
    with pytest.raises(WorkspaceRefused, match="read-only"):
        ws.write_bytes_atomic("x", b"new")
    assert (app / "x").read_bytes() == b"inside"


def test_a_write_that_fails_leaves_the_old_content_and_nothing_else(
    ws: Workspace, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def disk_full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(roots.os, "fsync", disk_full)
    with pytest.raises(WorkspaceRefused, match="No space left on device"):
        ws.write_bytes_atomic("x", b"new")
    assert (app / "x").read_bytes() == b"inside"
    assert names_in(app) == ["a", "x"]


def test_a_second_name_of_the_file_keeps_the_old_content(ws: Workspace, app: Path) -> None:
    other = app.parent / "hard"
    os.link(app / "x", other)
    ws.write_bytes_atomic("x", b"new")
    assert other.read_bytes() == b"inside"


def test_remove_takes_the_file_away(ws: Workspace, app: Path) -> None:
    assert ws.exists("x")
    assert ws.remove("a/../x") == "x"
    assert not ws.exists("x")
    assert not (app / "x").exists()


def test_digest_is_the_sha256_of_the_content(ws: Workspace) -> None:
    assert ws.digest("x") == "106b086224a4d945eae25f7be3805a931a873270326dd868b0e41f71ee9fff72"


def open_descriptors() -> int:
    return len(names_in(Path("/dev/fd")))


def test_no_descriptor_stays_open(ws: Workspace, app: Path) -> None:
    (app / "near").symlink_to("a/../x")
    before = open_descriptors()
    ws.read_bytes("near", 10)
    ws.write_bytes_atomic("new/dir/file", b"")
    ws.listing(".", 3, 10)
    for path in ("../x", "x/y", "no", "a/../../x"):
        with pytest.raises(WorkspaceRefused):
            ws.read_bytes(path, 10)
    assert open_descriptors() == before


def test_exclusive_work_is_one_at_a_time_and_gives_up_in_the_end(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roots, "WRITE_WAIT_S", 0.01)
    refusals: list[WorkspaceRefused] = []

    def second() -> None:
        try:
            with ws.exclusive("x"):
                pass
        except WorkspaceRefused as refused:
            refusals.append(refused)

    with ws.exclusive("x"):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert [refused.remedy for refused in refusals] == ["Try again."]
    second()
    assert len(refusals) == 1


def test_a_listing_is_sorted_bounded_and_names_what_it_leaves_out(ws: Workspace, app: Path) -> None:
    (app / ".git").mkdir()
    (app / ".git" / "config").touch()
    (app / "a" / "deep").mkdir()
    (app / "a" / "deep" / "z.py").write_text("12", encoding="utf-8")
    (app / "link").symlink_to("/etc")
    os.mkfifo(app / "pipe")
    whole = ws.listing(".", 3, 100)
    assert [(entry.path, entry.kind, entry.size_bytes) for entry in whole.entries] == [
        (".git", "directory", 0),
        ("a", "directory", 0),
        ("a/deep", "directory", 0),
        ("a/deep/z.py", "file", 2),
        ("link", "link", 0),
        ("pipe", "fifo", 0),
        ("x", "file", 6),
    ]
    assert (whole.omitted, whole.unopened, whole.skipped, whole.complete) == (0, (), (".git",), True)
    short = ws.listing(".", 1, 2)
    assert ([entry.path for entry in short.entries], short.omitted, short.unopened) == ([".git", "a"], 3, ("a",))
    below = ws.listing("a", 5, 100, "**/*.py")
    assert [entry.path for entry in below.entries] == ["a/deep/z.py"]
