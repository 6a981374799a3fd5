"""Trees beside the user's repository: nothing of theirs changes, nothing is needed."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import cast

import anyio
import anyio.abc
import pytest

from pi_rpc.core.version_limits import VersionLimits
from pi_rpc.workspace.git import GitWorkspace
from pi_rpc.workspace.repository import PACKS_MAX, TEMPORARY_PACK_AGE_S, TOGETHER_MIN
from pi_rpc.workspace.store import home_of
from tests.workspace.repositories import commit_all, git, plain_tree, state_of_repository

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Idle:
    """Does nothing in the background: what is to be done, a test does."""

    def start_soon(self, *work: object) -> None:
        pass


@pytest.fixture
def tasks() -> anyio.abc.TaskGroup:
    return cast(anyio.abc.TaskGroup, Idle())


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A repository with two files in a commit."""
    top = tmp_path.resolve() / "top"
    (top / "sub").mkdir(parents=True)
    git(top, "init", "-q", "-b", "main")
    (top / "a").write_text("a\n")
    (top / "sub" / "b").write_text("b\n")
    commit_all(top)
    return top


def made(folder: Path, tasks: anyio.abc.TaskGroup) -> GitWorkspace:
    resolved = folder.resolve()
    return GitWorkspace(resolved, home_of(folder.parent / "versions", resolved), tasks)


async def held(workspace: GitWorkspace, version: str) -> dict[bytes, tuple[str, bytes]]:
    """The files a version holds, found by restoring it beside."""
    tree, home = version.removeprefix("git:"), workspace.home
    beside = home.parent / f"beside-{tree}"
    beside.mkdir()
    environment = {**os.environ, "GIT_DIR": str(home / "repository"), "GIT_WORK_TREE": str(beside)}
    environment["GIT_INDEX_FILE"] = str(home / "beside-index")
    for words in (["read-tree", f"{tree}:files"], ["checkout-index", "-a", "-f"]):
        await anyio.run_process(["git", *words], cwd=beside, env=environment)
    found = plain_tree(beside)
    shutil.rmtree(beside)
    return found


async def test_a_merge_in_progress_stays_one(top: Path, tasks: anyio.abc.TaskGroup) -> None:
    git(top, "checkout", "-q", "-b", "other")
    (top / "a").write_text("other\n")
    commit_all(top)
    git(top, "checkout", "-q", "main")
    (top / "a").write_text("main\n")
    commit_all(top)
    (top / "stashed").write_text("stashed")
    git(top, "add", "stashed")
    git(top, "stash", "-q")
    git(top, "merge", "other", statuses=(1,))
    (top / "staged").write_text("staged")
    git(top, "add", "staged")
    before, status = state_of_repository(top), git(top, "status", "--porcelain")
    assert "UU a" in status
    workspace = made(top, tasks)
    one = await workspace.snapshot()
    assert await held(workspace, one.version) == plain_tree(top)
    (top / "a").write_text("solved\n")
    other = await workspace.snapshot()
    await workspace.restore(await workspace.compare(other.version, one.version))
    assert "<<<<<<<" in (top / "a").read_text()
    assert state_of_repository(top) == before
    assert git(top, "status", "--porcelain") == status
    assert "stashed" in git(top, "stash", "show", "--name-only")


async def test_bytes_are_kept_as_they_are_whatever_the_users_filters_do(
    top: Path, tasks: anyio.abc.TaskGroup
) -> None:
    git(top, "config", "core.autocrlf", "input")
    git(top, "config", "filter.shout.clean", "tr a-z A-Z")
    git(top, "config", "filter.shout.smudge", "cat")
    attributes = ["*.txt text eol=crlf", "*.id ident", "*.loud filter=shout"]
    attributes += ["*.u16 working-tree-encoding=UTF-16", ""]
    (top / ".gitattributes").write_text("\n".join(attributes))
    (top / "x.txt").write_bytes(b"one\r\ntwo\r\n")
    (top / "crlf").write_bytes(b"one\r\ntwo\r\n")
    (top / "y.id").write_bytes(b"$Id$\n")
    (top / "z.loud").write_bytes(b"quiet")
    (top / "w.u16").write_bytes("wide".encode("utf-16"))
    commit_all(top)
    workspace = made(top, tasks)
    assert await held(workspace, (await workspace.snapshot()).version) == plain_tree(top)


async def test_what_the_user_hides_from_git_is_in_a_version_as_it_lies_there(
    top: Path, tasks: anyio.abc.TaskGroup
) -> None:
    (top / ".gitignore").write_text("tracked.log\n")
    (top / "tracked.log").write_text("tracked though ignored\n")
    (top / "absent").write_text("not checked out")
    git(top, "add", "-f", "tracked.log", ".gitignore", "absent")
    git(top, "commit", "-q", "-m", "x")
    git(top, "update-index", "--assume-unchanged", "a")
    git(top, "update-index", "--skip-worktree", "absent")
    (top / "absent").unlink()
    (top / "a").write_text("changed behind git's back\n")
    (top / "tracked.log").write_text("tracked though ignored, changed\n")
    (top / "later").write_text("")
    git(top, "add", "-N", "later")
    workspace = made(top, tasks)
    assert await held(workspace, (await workspace.snapshot()).version) == plain_tree(top)


async def test_nested_repositories_are_files_like_any_other(
    top: Path, tasks: anyio.abc.TaskGroup
) -> None:
    for name in ("fresh", "with/commit", "deep"):
        (top / name / "src").mkdir(parents=True)
        (top / name / "src" / "f").write_text(name)
        git(top / name, "init", "-q")
    commit_all(top / "with" / "commit")
    (top / "deep" / "inner").mkdir()
    git(top / "deep" / "inner", "init", "-q")
    (top / "deep" / "inner" / "g").write_text("g")
    (top / "empty" / ".git").mkdir(parents=True)
    (top / "empty" / "f").write_text("no repository")
    allowed = ("-c", "protocol.file.allow=always")
    git(top, *allowed, "submodule", "--quiet", "add", "./with/commit", "m")
    inside = state_of_repository(top / "with" / "commit")
    workspace = made(top, tasks)
    one = await workspace.snapshot()
    before = plain_tree(top)
    assert await held(workspace, one.version) == {
        path: file for path, file in before.items() if not path.endswith(b"/.git")
    }
    (top / "with" / "commit" / "src" / "new").write_text("new")
    (top / "with" / "commit" / "src" / "f").write_text("changed")
    (top / "deep" / "inner" / "g").unlink()
    other = await workspace.snapshot()
    changes = await workspace.compare(other.version, one.version)
    assert [(change.path, change.change) for change in changes] == [
        ("deep/inner/g", "added"),
        ("with/commit/src/f", "modified"),
        ("with/commit/src/new", "removed"),
    ]
    assert await workspace.restore(changes) == {}
    assert plain_tree(top) == before
    assert state_of_repository(top / "with" / "commit") == inside


async def test_a_worktree_of_the_user_is_a_folder_like_any_other(
    top: Path, tmp_path: Path, tasks: anyio.abc.TaskGroup
) -> None:
    git(top, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side")
    before = state_of_repository(top)
    workspace = made(tmp_path / "tree", tasks)
    one = await workspace.snapshot()
    assert b"a" in await held(workspace, one.version)
    (tmp_path / "tree" / "a").write_text("side\n")
    other = await workspace.snapshot()
    await workspace.restore(await workspace.compare(other.version, one.version))
    assert (tmp_path / "tree" / "a").read_text() == "a\n"
    assert state_of_repository(top) == before


async def test_versions_outlive_what_the_user_prunes(top: Path, tasks: anyio.abc.TaskGroup) -> None:
    workspace = made(top, tasks)
    one = await workspace.snapshot()
    before = plain_tree(top)
    await workspace.kept()
    assert not workspace.leans
    shutil.rmtree(top / ".git")
    (top / "a").write_text("later\n")
    other = await workspace.snapshot()
    assert await held(workspace, one.version) == before
    assert await workspace.restore(await workspace.compare(other.version, one.version)) == {}
    assert plain_tree(top) == before


def filled(top: Path, count: int) -> None:
    for number in range(count):
        (top / f"many{number}").write_text(f"{number}\n")


def pieces(workspace: GitWorkspace) -> tuple[int, int]:
    """How many packs there are, and whether many objects lie by themselves."""
    objects = workspace.home / "repository" / "objects"
    loose = [path for path in objects.glob("??/*") if path.is_file()]
    return len(list((objects / "pack").glob("*.pack"))), len(loose) > 100


async def test_many_files_at_once_are_written_into_one_pack(
    top: Path, tasks: anyio.abc.TaskGroup
) -> None:
    workspace = made(top, tasks)
    filled(top, TOGETHER_MIN)
    version = (await workspace.snapshot()).version
    assert pieces(workspace) == (1, False)
    assert await held(workspace, version) == plain_tree(top)


async def test_a_git_that_would_write_a_pack_for_each_file_is_not_asked_to(
    top: Path, tasks: anyio.abc.TaskGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = shutil.which("git")
    old = top.parent / "bin" / "git"
    old.parent.mkdir()
    answer = '[ "$1" = version ] && { echo git version 2.36.9; exit; }'
    old.write_text(f'#!/bin/sh\n{answer}\nexec {real} "$@"\n')
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old.parent}{os.pathsep}{os.environ['PATH']}")
    workspace = made(top, tasks)
    filled(top, TOGETHER_MIN)
    version = (await workspace.snapshot()).version
    assert pieces(workspace) == (0, True)
    assert await held(workspace, version) == plain_tree(top)


async def test_packing_keeps_what_a_snapshot_beside_it_has_not_named_yet(
    top: Path, tasks: anyio.abc.TaskGroup
) -> None:
    workspace = made(top, tasks)
    await workspace.snapshot()
    await workspace.kept()
    filled(top, TOGETHER_MIN)
    version = (await workspace.snapshot()).version
    before = plain_tree(top)
    # As it is between taking files in and naming the version.
    ref = workspace.home / "repository" / "refs" / "versions" / version.removeprefix("git:")
    ref.rename(workspace.home / "not-named-yet")
    (workspace.home / "index").unlink()
    await workspace.kept()
    assert await held(workspace, version) == before


async def test_what_a_killed_git_left_of_a_pack_goes_when_it_is_old(
    top: Path, tasks: anyio.abc.TaskGroup
) -> None:
    workspace = made(top, tasks)
    await workspace.snapshot()
    packs = workspace.home / "repository" / "objects" / "pack"
    for name, age_s in (("tmp_pack_old", 2 * TEMPORARY_PACK_AGE_S), ("tmp_pack_young", 0)):
        (packs / name).write_bytes(b"PACK")
        at_s = (packs / name).stat().st_mtime - age_s
        os.utime(packs / name, (at_s, at_s))
    filled(top, TOGETHER_MIN)
    await workspace.snapshot()
    assert [path.name for path in packs.glob("tmp_*")] == ["tmp_pack_young"]


async def test_many_packs_become_one(top: Path) -> None:
    async with anyio.create_task_group() as tasks:
        workspace = made(top, tasks)
        await workspace.snapshot()
        await workspace.kept()
        packs = workspace.home / "repository" / "objects" / "pack"
        for path in list(packs.glob("pack-*")):
            for number in range(PACKS_MAX):
                shutil.copy(path, packs / f"pack-{number:040x}{path.suffix}")
        assert pieces(workspace) == (PACKS_MAX + 1, False)
        (top / "a").write_text("later\n")
        version = (await workspace.snapshot()).version
    assert pieces(workspace) == (1, False)
    assert await held(workspace, version) == plain_tree(top)


async def test_objects_lost_before_they_were_copied_are_made_anew(
    top: Path, tasks: anyio.abc.TaskGroup
) -> None:
    workspace = made(top, tasks)
    (top / "sub" / "b").write_text("changed\n")
    await workspace.snapshot()
    shutil.rmtree(top / ".git" / "objects")
    (top / "a").write_text("later\n")
    other = await workspace.snapshot()
    assert await held(workspace, other.version) == plain_tree(top)


@pytest.mark.parametrize(
    "broken", ["index", "repository/HEAD", "repository/objects", "all objects"]
)
async def test_a_damaged_store_is_made_anew(
    top: Path, tasks: anyio.abc.TaskGroup, broken: str
) -> None:
    workspace = made(top, tasks)
    await workspace.snapshot()
    await workspace.kept()
    home = workspace.home
    if broken == "all objects":
        for path in (home / "repository" / "objects").rglob("*"):
            if path.is_file():
                path.chmod(0o644)
                path.write_bytes(b"noise")
    elif (home / broken).is_dir():
        shutil.rmtree(home / broken)
    else:
        (home / broken).write_bytes(b"noise")
    (top / "a").write_text("later\n")
    other = await workspace.snapshot()
    assert await held(workspace, other.version) == plain_tree(top)
    assert (await workspace.snapshot()).version == other.version


async def test_a_store_that_cannot_be_made_says_so(top: Path, tasks: anyio.abc.TaskGroup) -> None:
    (top.parent / "versions").write_text("a file where the folder should be")
    with pytest.raises(Exception) as caught:
        await made(top, tasks).snapshot()
    assert getattr(caught.value, "reason", None) == "store_broken"


async def test_the_users_own_ignore_rules_hold(top: Path, tasks: anyio.abc.TaskGroup) -> None:
    (top / ".git" / "info").mkdir(exist_ok=True)
    (top / ".git" / "info" / "exclude").write_text("private\n")
    (top.parent / "rules").write_text("*.mine\n")
    git(top, "config", "core.excludesFile", str(top.parent / "rules"))
    (top / ".gitignore").write_text("/sub/out\n")
    for name in ("private", "x.mine", "sub/out", "sub/y.mine", "sub/kept"):
        (top / name).write_text(name)
    whole = await held(workspace := made(top, tasks), (await workspace.snapshot()).version)
    assert sorted(whole) == [b".gitignore", b"a", b"sub/b", b"sub/kept"]
    part = await held(workspace := made(top / "sub", tasks), (await workspace.snapshot()).version)
    assert sorted(part) == [b"b", b"kept"]


async def test_a_folder_its_repository_ignores_has_versions_too(
    top: Path, tasks: anyio.abc.TaskGroup
) -> None:
    (top / ".gitignore").write_text("build/\n")
    (top / "build" / "work").mkdir(parents=True)
    (top / "build" / "work" / "f").write_text("f")
    workspace = made(top / "build" / "work", tasks)
    one = await workspace.snapshot()
    assert await held(workspace, one.version) == {b"f": ("plain", b"f")}
    assert (await workspace.snapshot()).version == one.version


async def test_a_repository_made_later_changes_no_version(
    tmp_path: Path, tasks: anyio.abc.TaskGroup
) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "f").write_text("f")
    workspace = made(folder, tasks)
    one = await workspace.snapshot()
    git(folder, "init", "-q")
    assert (await workspace.snapshot()).version == one.version
    commit_all(folder)
    assert (await workspace.snapshot()).version == one.version


async def test_an_empty_folder_has_a_version(tmp_path: Path, tasks: anyio.abc.TaskGroup) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    workspace = made(folder, tasks)
    empty = await workspace.snapshot()
    (folder / "f").write_text("f")
    full = await workspace.snapshot()
    changes = await workspace.compare(full.version, empty.version)
    assert await workspace.restore(changes) == {}
    assert (await workspace.snapshot()).version == empty.version


async def test_two_daemons_on_one_folder_wait_for_each_other(
    top: Path, tasks: anyio.abc.TaskGroup
) -> None:
    one, other = made(top, tasks), made(top, tasks)
    versions: list[str] = []

    async def take(workspace: GitWorkspace) -> None:
        versions.append((await workspace.snapshot()).version)

    async with anyio.create_task_group() as both:
        for workspace in (one, other, one, other):
            both.start_soon(take, workspace)
    assert len(set(versions)) == 1 and len(versions) == 4


async def test_a_stopped_snapshot_leaves_no_process_and_no_lock(
    top: Path, tasks: anyio.abc.TaskGroup
) -> None:
    workspace = made(top, tasks)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await workspace.snapshot()
    assert (await workspace.snapshot()).version == (await made(top, tasks).snapshot()).version


KILLED = """
import sys, anyio
from pathlib import Path
from pi_rpc.workspace.git import GitWorkspace
from pi_rpc.workspace.repository import PACKS_MAX, TEMPORARY_PACK_AGE_S, TOGETHER_MIN
async def main():
    folder, home, versions = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    async with anyio.create_task_group() as tasks:
        workspace = GitWorkspace(folder, home, tasks)
        print("ready", flush=True)
        if versions:
            await workspace.restore(await workspace.compare(*versions))
        else:
            await workspace.snapshot()
        print("done", flush=True)
        tasks.cancel_scope.cancel()
anyio.run(main)
"""


def killed(after_s: float, *words: str) -> bool:
    """Run the script and kill it; whether it had not finished."""
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, *words],
        stdout=subprocess.PIPE,
        start_new_session=True,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    try:
        process.wait(after_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
    finished = process.stdout.read() == b"done\n"
    process.stdout.close()
    return not finished


async def test_killed_while_restoring_each_file_is_whole_and_the_rest_can_be_done_again(
    top: Path, tasks: anyio.abc.TaskGroup
) -> None:
    count = 300
    for number in range(count):
        (top / "sub" / f"f{number}").write_text("before\n" * 50)
    workspace = made(top, tasks)
    one = await workspace.snapshot()
    before = plain_tree(top)
    for number in range(0, count, 2):
        (top / "sub" / f"f{number}").write_text("after\n" * 70)
    for number in range(1, count, 2):
        (top / "sub" / f"f{number}").unlink()
    for number in range(100):
        (top / f"made{number}").write_text("made\n")
    other = await workspace.snapshot()
    after = plain_tree(top)
    interrupted = 0
    for step in range(8):
        home = str(workspace.home)
        interrupted += killed(0.02 * step, str(top), home, other.version, one.version)
        for path, file in plain_tree(top).items():
            if b".pi-rpc-" not in path:
                assert file in (before.get(path), after.get(path)), path
        now = await workspace.snapshot()
        assert not any(b".pi-rpc-" in path for path in plain_tree(top))
        assert await workspace.restore(await workspace.compare(now.version, other.version)) == {}
        assert plain_tree(top) == after
    assert interrupted
    assert await workspace.restore(await workspace.compare(other.version, one.version)) == {}
    assert plain_tree(top) == before


async def test_killed_while_naming_a_state_the_next_one_is_right(
    top: Path, tasks: anyio.abc.TaskGroup
) -> None:
    workspace = made(top, tasks)
    repository = state_of_repository(top)
    for step in range(6):
        for number in range(TOGETHER_MIN + 100):
            (top / "sub" / f"f{number}").write_text(f"{step} {number}\n" * 20)
        killed(0.015 * step, str(top), str(workspace.home))
        version = (await workspace.snapshot()).version
        assert await held(workspace, version) == plain_tree(top)
    assert state_of_repository(top) == repository
    git(top, "fsck", "--strict")


async def test_limits_hold_for_what_is_new_only(top: Path, tasks: anyio.abc.TaskGroup) -> None:
    home = home_of(top.parent / "versions", top)
    small = GitWorkspace(top, home, tasks, VersionLimits(files=3))
    for number in range(3):
        (top / f"n{number}").write_text("n")
        await small.snapshot()
    for number in range(3, 6):
        (top / f"n{number}").write_text("n")
        await small.snapshot()
