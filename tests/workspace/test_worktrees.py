"""Work trees of a user's repository: made beside it, and removed without losing anything."""

from pathlib import Path

import pytest

from pi_rpc.core.errors import Outside, Refused
from pi_rpc.workspace.worktrees import GitWorktrees
from tests.workspace.repositories import commit_all, git, state_of_repository

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A repository with staged and unstaged changes, a stash and a hook that would spoil all."""
    top = tmp_path / "top"
    (top / "sub").mkdir(parents=True)
    git(top, "init", "-q")
    (top / "sub" / "a.txt").write_text("committed\n")
    commit_all(top)
    (top / "sub" / "a.txt").write_text("stashed\n")
    git(top, "stash", "-q")
    (top / "staged.txt").write_text("staged\n")
    git(top, "add", "staged.txt")
    (top / "sub" / "a.txt").write_text("not staged\n")
    hook = top / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    return top


@pytest.fixture
def worktrees(tmp_path: Path) -> GitWorktrees:
    return GitWorktrees(tmp_path / "trees")


async def test_a_work_tree_holds_the_commit_and_stands_on_no_branch(
    worktrees: GitWorktrees, top: Path
) -> None:
    made = await worktrees.add(top / "sub")
    assert made.cwd == made.top / "sub"
    assert (made.cwd / "a.txt").read_text() == "committed\n"
    assert git(made.top, "branch", "--show-current") == ""
    assert worktrees.top_of(made.cwd) == made.top
    assert worktrees.top_of(top) is None


async def test_nothing_of_the_users_repository_changes_but_its_list_of_work_trees(
    worktrees: GitWorktrees, top: Path
) -> None:
    before = state_of_repository(top)
    made = await worktrees.add(top)
    beside = {
        path: digest
        for path, digest in state_of_repository(top).items()
        if not path.startswith("worktrees/")
    }
    assert beside == before
    await worktrees.remove(made.top, kept=False)
    assert state_of_repository(top) == before
    assert not made.top.exists()


async def test_a_folder_that_is_not_committed_is_there_too(
    worktrees: GitWorktrees, top: Path
) -> None:
    (top / "fresh").mkdir()
    made = await worktrees.add(top / "fresh")
    assert made.cwd.is_dir()


async def test_without_a_repository_or_a_commit_there_is_none(
    worktrees: GitWorktrees, tmp_path: Path
) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    with pytest.raises(Refused) as caught:
        await worktrees.add(plain)
    assert caught.value.reason == "no_repository"
    git(plain, "init", "-q")
    with pytest.raises(Refused) as caught:
        await worktrees.require(plain)
    assert caught.value.reason == "no_commit"
    assert not (tmp_path / "trees").exists()


async def test_a_work_tree_that_cannot_be_filled_is_not_left_behind(
    worktrees: GitWorktrees, top: Path, tmp_path: Path
) -> None:
    name = git(top, "rev-parse", "HEAD:sub/a.txt").strip()
    (top / ".git" / "objects" / name[:2] / name[2:]).unlink()
    with pytest.raises(Outside) as caught:
        await worktrees.add(top)
    assert caught.value.reason == "git_failed"
    assert list((tmp_path / "trees").iterdir()) == []


async def test_files_without_a_version_keep_the_work_tree(
    worktrees: GitWorktrees, top: Path
) -> None:
    made = await worktrees.add(top)
    (made.top / "new.txt").write_text("new\n")
    with pytest.raises(Refused) as caught:
        await worktrees.remove(made.top, kept=False)
    assert caught.value.reason == "files_would_be_lost"
    assert (made.top / "new.txt").exists()
    await worktrees.remove(made.top, kept=True)
    assert not made.top.exists()


async def test_commits_on_no_branch_keep_the_work_tree(worktrees: GitWorktrees, top: Path) -> None:
    made = await worktrees.add(top)
    (made.top / "new.txt").write_text("new\n")
    commit_all(made.top)
    with pytest.raises(Refused) as caught:
        await worktrees.remove(made.top, kept=True)
    assert caught.value.reason == "commits_would_be_lost"
    git(made.top, "branch", "rescued")
    await worktrees.remove(made.top, kept=True)
    assert git(top, "show", "rescued:new.txt") == "new\n"


async def test_a_work_tree_of_the_users_is_not_ours(
    worktrees: GitWorktrees, top: Path, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    git(top, "-c", "core.hooksPath=/dev/null", "worktree", "add", "-q", "--detach", str(theirs))
    with pytest.raises(Refused) as caught:
        await worktrees.remove(theirs, kept=True)
    assert caught.value.reason == "not_ours"
    assert theirs.is_dir()
