"""One promise, every body: states of a folder named, compared, brought back."""

import os
import shutil
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import pytest

from pi_rpc.core.errors import Missing, Outside, Overfull, Refused
from pi_rpc.core.ports.workspace import PathChange, Workspace, Workspaces
from pi_rpc.core.version_limits import VersionLimits
from pi_rpc.tools.choose import ignoring_by_git
from pi_rpc.workspace.absent import AbsentWorkspace
from pi_rpc.workspace.choose import choose_workspaces
from pi_rpc.workspace.copies import CopiedWorkspaces
from tests.workspace.repositories import commit_all, git, plain_tree, state_of_repository

pytestmark = pytest.mark.anyio

LIMITS = VersionLimits(file_bytes=100_000)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["alone", "in a repository", "below a repository"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with a few files, in each situation a folder can be in."""
    top = tmp_path / "top"
    folder = top / "sub" if request.param == "below a repository" else top
    folder.mkdir(parents=True)
    if request.param != "alone":
        git(top, "init", "-q")
    (folder / "a.txt").write_text("a\n")
    (folder / "deep").mkdir()
    (folder / "deep" / "b.txt").write_text("b\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("a.txt")
    if request.param != "alone":
        commit_all(top)
    return folder


Open = Callable[[Path, VersionLimits], Workspaces]
"""Workspaces whose versions lie there."""


@pytest.fixture(params=["git", "copies"])
async def open_below(request: pytest.FixtureRequest) -> AsyncIterator[Open]:
    """Every body of the promise."""
    async with anyio.create_task_group() as tasks:

        def opened(root: Path, limits: VersionLimits) -> Workspaces:
            if request.param == "copies":
                return CopiedWorkspaces(root, limits, ignoring_by_git)
            return choose_workspaces(True, root, tasks, limits)

        yield opened
        tasks.cancel_scope.cancel()


@pytest.fixture
def workspace(folder: Path, tmp_path: Path, open_below: Open) -> Workspace:
    return open_below(tmp_path / "versions", LIMITS).of(folder)


def named(folder: Path, name: bytes) -> Path:
    return Path(os.fsdecode(os.fsencode(folder) + b"/" + name))


def told(changes: list[PathChange]) -> list[tuple[str, str]]:
    return [(change.path, change.change) for change in changes]


async def test_the_same_files_have_the_same_name(workspace: Workspace, folder: Path) -> None:
    first = await workspace.snapshot()
    (folder / "a.txt").write_text("other\n")
    second = await workspace.snapshot()
    (folder / "a.txt").write_text("a\n")
    third = await workspace.snapshot()
    assert first.version == third.version != second.version
    assert await workspace.compare(first.version, third.version) == []


async def test_every_kind_of_change_is_told(workspace: Workspace, folder: Path) -> None:
    before = await workspace.snapshot()
    (folder / "a.txt").write_text("A\n")
    (folder / "deep" / "b.txt").unlink()
    (folder / "new").mkdir()
    (folder / "new" / "c.txt").write_text("c\n")
    (folder / "run.sh").chmod(0o644)
    (folder / "link").unlink()
    (folder / "link").symlink_to("run.sh")
    after = await workspace.snapshot()
    assert told(await workspace.compare(before.version, after.version)) == [
        ("a.txt", "modified"),
        ("deep/b.txt", "removed"),
        ("link", "modified"),
        ("new/c.txt", "added"),
        ("run.sh", "modified"),
    ]


async def test_what_differs_is_brought_back_and_forth_byte_for_byte(
    workspace: Workspace, folder: Path
) -> None:
    one = await workspace.snapshot()
    first = plain_tree(folder)
    (folder / "a.txt").unlink()
    (folder / "a.txt").mkdir()
    (folder / "a.txt" / "inside").write_bytes(b"\r\n\x00\xff $Id$")
    shutil.rmtree(folder / "deep")
    (folder / "deep").write_text("a file now")
    (folder / "link").unlink()
    (folder / "run.sh").rename(folder / "RUN.sh")
    other = await workspace.snapshot()
    second = plain_tree(folder)

    assert await workspace.restore(await workspace.compare(other.version, one.version)) == {}
    assert plain_tree(folder) == first
    assert (await workspace.snapshot()).version == one.version
    assert await workspace.restore(await workspace.compare(one.version, other.version)) == {}
    assert plain_tree(folder) == second
    assert (await workspace.snapshot()).version == other.version


def touched(folder: Path) -> dict[str, tuple[int, int, int]]:
    """When and as what each file was written last."""
    found = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode):
            found[path.name] = status.st_ino, status.st_mtime_ns, status.st_ctime_ns
    return found


async def test_only_what_differs_is_written(workspace: Workspace, folder: Path) -> None:
    one = await workspace.snapshot()
    before = touched(folder)
    (folder / "a.txt").write_text("later\n")
    other = await workspace.snapshot()
    assert await workspace.restore(await workspace.compare(other.version, one.version)) == {}
    after = touched(folder)
    assert len(before) > 1
    assert [name for name in before if before[name] != after[name]] == ["a.txt"]


async def test_odd_names_are_names(workspace: Workspace, folder: Path) -> None:
    before = await workspace.snapshot()
    odd = [b"new\nline", b"tab\t", b"back\\slash", b"git~1", b"caf\xe9", b"*", b":(top)x", b"-n"]
    odd += ["ünï".encode(), b'"quoted"', b" blanks ", b"bytes:x"]
    for name in odd:
        named(folder, name).write_bytes(name)
    after = await workspace.snapshot()
    made = plain_tree(folder)
    changes = await workspace.compare(before.version, after.version)
    assert [change.change for change in changes] == ["added"] * len(odd)
    back = await workspace.compare(after.version, before.version)
    assert await workspace.restore(back) == {}
    assert not any(named(folder, name).exists() for name in odd)
    assert await workspace.restore(changes) == {}
    assert plain_tree(folder) == made


async def test_ignored_files_are_neither_named_nor_touched(
    workspace: Workspace, folder: Path
) -> None:
    (folder / ".gitignore").write_text("build/\n*.log\n")
    before = await workspace.snapshot()
    (folder / "build").mkdir()
    (folder / "build" / "out").write_text("made")
    (folder / "x.log").write_text("said")
    assert (await workspace.snapshot()).version == before.version
    assert (folder / "build" / "out").read_text() == "made"


async def test_a_large_file_is_left_out_by_name_and_still_watched(
    workspace: Workspace, folder: Path
) -> None:
    large = folder / "large.bin"
    large.write_bytes(b"x" * 100_001)
    before = await workspace.snapshot()
    assert [(one.path, one.reason, one.size_bytes) for one in before.left_out] == [
        ("large.bin", "too_large", 100_001)
    ]
    assert (await workspace.snapshot()) == before
    large.write_bytes(b"y" * 100_002)
    after = await workspace.snapshot()
    [change] = await workspace.compare(before.version, after.version)
    assert (change.path, change.change, change.kept) == ("large.bin", "modified", False)
    large.unlink()
    gone = await workspace.snapshot()
    [change] = await workspace.compare(after.version, gone.version)
    assert (change.path, change.change, change.kept) == ("large.bin", "removed", False)


async def test_a_file_changed_after_the_look_is_not_touched(
    workspace: Workspace, folder: Path
) -> None:
    one = await workspace.snapshot()
    (folder / "a.txt").write_text("tool\n")
    (folder / "deep" / "b.txt").write_text("tool\n")
    (folder / "made").write_text("tool\n")
    other = await workspace.snapshot()
    changes = await workspace.compare(other.version, one.version)
    (folder / "a.txt").write_text("user\n")
    (folder / "made").write_text("user\n")
    assert await workspace.restore(changes) == {
        "a.txt": "changed_meanwhile",
        "made": "changed_meanwhile",
    }
    assert (folder / "a.txt").read_text() == (folder / "made").read_text() == "user\n"
    assert (folder / "deep" / "b.txt").read_text() == "b\n"


async def test_nothing_is_written_through_a_link_nor_over_what_is_no_file(
    workspace: Workspace, folder: Path, tmp_path: Path
) -> None:
    one = await workspace.snapshot()
    (folder / "deep" / "b.txt").unlink()
    (folder / "a.txt").unlink()
    other = await workspace.snapshot()
    outside = tmp_path / "outside"
    outside.mkdir()
    (folder / "deep").rmdir()
    (folder / "deep").symlink_to(outside)
    os.mkfifo(folder / "a.txt")
    changes = await workspace.compare(other.version, one.version)
    assert await workspace.restore(changes) == {"a.txt": "in_the_way", "deep/b.txt": "in_the_way"}
    assert list(outside.iterdir()) == []


async def test_a_folder_with_something_else_in_it_stays(workspace: Workspace, folder: Path) -> None:
    (folder / ".gitignore").write_text("*.o\n")
    one = await workspace.snapshot()
    (folder / "made").mkdir()
    (folder / "made" / "x.c").write_text("c")
    other = await workspace.snapshot()
    (folder / "made" / "x.o").write_text("o")
    assert await workspace.restore(await workspace.compare(other.version, one.version)) == {}
    assert [path.name for path in (folder / "made").iterdir()] == ["x.o"]


async def test_lines_are_counted_and_patches_given_on_request(
    workspace: Workspace, folder: Path
) -> None:
    one = await workspace.snapshot()
    (folder / "a.txt").write_text("diff --git a b\nsecond\n")
    (folder / "bin").write_bytes(b"\0\1\2")
    (folder / "link").unlink()
    (folder / "link").write_text("a file\n")
    (folder / "z.txt").write_text("z\n")
    other = await workspace.snapshot()
    diffs = await workspace.diff(one.version, other.version, patches=False)
    assert [(d.path, d.change, d.added, d.removed, d.patch) for d in diffs] == [
        ("a.txt", "modified", 2, 1, None),
        ("bin", "added", None, None, None),
        ("link", "modified", 1, 1, None),
        ("z.txt", "added", 1, 0, None),
    ]
    patched = {d.path: d.patch for d in await workspace.diff(one.version, other.version, True)}
    assert "+diff --git a b\n+second\n" in (patched["a.txt"] or "")
    assert "+a file\n" in (patched["link"] or "") and "-a.txt\n" in (patched["link"] or "")
    assert (patched["z.txt"] or "").endswith("+z\n")


async def test_an_unknown_version_is_missing(workspace: Workspace) -> None:
    known = (await workspace.snapshot()).version
    for unknown in ("git:" + "0" * 40, "x", "git:HEAD", "git:--help", known + ":files"):
        with pytest.raises(Missing) as caught:
            await workspace.compare(known, unknown)
        assert caught.value.reason == "version_not_found"


async def test_a_folder_that_is_gone_is_missing(workspace: Workspace, folder: Path) -> None:
    await workspace.snapshot()
    shutil.rmtree(folder)
    with pytest.raises(Missing) as caught:
        await workspace.snapshot()
    assert caught.value.reason == "cwd_missing"


async def test_versions_that_are_gone_are_missing_and_new_ones_can_be_named(
    workspace: Workspace, folder: Path, tmp_path: Path
) -> None:
    one = await workspace.snapshot()
    (folder / "a.txt").write_text("later\n")
    shutil.rmtree(tmp_path / "versions")
    with pytest.raises(Missing):
        await workspace.compare(one.version, one.version + "0")
    other = await workspace.snapshot()
    with pytest.raises(Missing) as caught:
        await workspace.compare(other.version, one.version)
    assert caught.value.reason == "version_not_found"
    assert (folder / "a.txt").read_text() == "later\n"


async def test_the_users_repository_is_not_touched(
    workspace: Workspace, folder: Path, tmp_path: Path
) -> None:
    top = tmp_path / "top"
    if not (top / ".git").exists():
        pytest.skip("there is none here")
    (folder / "staged.txt").write_text("staged\n")
    git(top, "add", "-A")
    (folder / "a.txt").write_text("not staged\n")
    before = state_of_repository(top)
    one = await workspace.snapshot()
    (folder / "a.txt").write_text("tool\n")
    other = await workspace.snapshot()
    assert await workspace.restore(await workspace.compare(other.version, one.version)) == {}
    assert await workspace.diff(one.version, other.version, patches=True)
    assert state_of_repository(top) == before
    git(top, "fsck", "--strict")


async def test_siblings_of_the_folder_are_not_looked_at(
    workspace: Workspace, folder: Path, tmp_path: Path
) -> None:
    before = await workspace.snapshot()
    beside = folder.parent / "beside.txt"
    beside.write_text("beside\n")
    assert (await workspace.snapshot()).version == before.version
    beside.unlink()


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (VersionLimits(files=2), "too_many_files"),
        (VersionLimits(bytes=3), "too_many_bytes"),
        (VersionLimits(first_s=0.0), "out_of_time"),
    ],
)
async def test_beyond_a_limit_no_state_is_named(
    folder: Path, tmp_path: Path, open_below: Open, limits: VersionLimits, reason: str
) -> None:
    (folder / "more").mkdir()
    for name in "xyz":
        (folder / "more" / name).write_text("more")
    limited = open_below(tmp_path / "limited", limits).of(folder)
    with pytest.raises(Overfull) as caught:
        await limited.snapshot()
    assert caught.value.reason == reason


def emptied(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


async def test_too_much_is_said_without_another_look_until_one_is_wanted(
    folder: Path, tmp_path: Path, open_below: Open
) -> None:
    limited = open_below(tmp_path / "limited", VersionLimits(files=2)).of(folder)
    (folder / "more").mkdir()
    for name in "xyz":
        (folder / "more" / name).write_text("more")
    for again in (False, True):
        with pytest.raises(Overfull):
            await limited.snapshot(again=again)
    emptied(folder)
    with pytest.raises(Overfull) as caught:
        await limited.snapshot()
    assert caught.value.reason == "too_many_files"
    assert caught.value.data["limitCount"] == 2
    version = (await limited.snapshot(again=True)).version
    assert (await limited.snapshot()).version == version


async def test_a_version_of_another_folder_can_be_kept_here_too(
    workspace: Workspace, folder: Path, tmp_path: Path, open_below: Open
) -> None:
    wanted = await workspace.snapshot()
    beside = tmp_path / "beside"
    beside.mkdir()
    other = open_below(tmp_path / "versions", LIMITS).of(beside)
    now = await other.snapshot()
    with pytest.raises(Missing):
        await other.compare(now.version, wanted.version)
    there = await other.compare(now.version, wanted.version, beside=workspace)
    with pytest.raises(Missing):
        await other.compare(now.version, wanted.version)
    for _ in range(2):
        await other.fetch(workspace, wanted.version)
    changes = await other.compare(now.version, wanted.version)
    assert changes == there
    assert await other.restore(changes) == {}
    assert plain_tree(beside) == plain_tree(folder)


async def test_a_version_kept_in_another_way_is_not_fetched(
    workspace: Workspace, folder: Path
) -> None:
    version = (await workspace.snapshot()).version
    absent = AbsentWorkspace(lambda: Outside("git_missing", "no git"))
    with pytest.raises(Refused) as caught:
        await workspace.fetch(absent, version)
    assert caught.value.reason == "other_kind"
