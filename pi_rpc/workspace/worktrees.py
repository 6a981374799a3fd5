"""Work trees of the user's repositories, made for forks and kept with the daemon's own data.

Promises
- Of the user's repository only its list of work trees changes; its index, refs, stash, hooks and
  configuration stay as they are. A new work tree stands on the commit checked out there, and on no
  branch.
- A work tree is removed only when it is one of ours and no commit made in it would be lost.
"""

import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path

from pi_rpc.core.errors import Outside, Refused
from pi_rpc.core.ports.workspace import Worktree
from pi_rpc.workspace.process import Processes, off_loop
from pi_rpc.workspace.repository import Surrounding, clean_environment, surrounding_of

ADDING_S = 120.0
"""How long making a work tree may take: every file of the commit is written."""
LOOKING_S = 15.0


class GitWorktrees:
    """Work trees below one folder."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    async def require(self, folder: Path) -> None:
        """Raises Refused `no_repository` or `no_commit`, Outside `git_missing`."""
        await off_loop(lambda processes: self._required(processes, folder), LOOKING_S)

    def _required(self, processes: Processes, folder: Path) -> Surrounding:
        if shutil.which("git") is None:
            raise Outside("git_missing", "there is no git to make a work tree", retryable=False)
        around = surrounding_of(folder.resolve())
        if around is None:
            raise Refused("no_repository", f"{folder} is in no repository", path=str(folder))
        words = ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]
        if not _git(processes, around.top, words, range(256)).strip():
            raise Refused("no_commit", "the repository has no commit yet", path=str(around.top))
        return around

    async def add(self, folder: Path) -> Worktree:
        """A new work tree of the repository a folder is in. Raises as `require`, and Outside."""
        return await off_loop(lambda processes: self._added(processes, folder), ADDING_S)

    def _added(self, processes: Processes, folder: Path) -> Worktree:
        around = self._required(processes, folder)
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        top = self._root / f"{around.top.name or 'root'}-{secrets.token_hex(4)}"
        try:
            words = ["worktree", "add", "--quiet", "--detach", str(top), "HEAD"]
            _git(processes, around.top, words)
            cwd = top / folder.resolve().relative_to(around.top)
            # A folder that holds nothing committed is in no commit.
            cwd.mkdir(parents=True, exist_ok=True)
        except BaseException:
            shutil.rmtree(top, ignore_errors=True)
            raise
        return Worktree(top, cwd)

    def top_of(self, folder: Path) -> Path | None:
        """The work tree of ours a folder is in; None for any other folder."""
        resolved = folder.resolve()
        if not resolved.is_relative_to(self._root) or resolved == self._root:
            return None
        top = self._root / resolved.relative_to(self._root).parts[0]
        return top if (top / ".git").is_file() else None

    async def remove(self, top: Path, *, kept: bool) -> None:
        """Remove a work tree of ours; `kept`: whether its files have a version, so may go.

        Raises Refused `not_ours`, `commits_would_be_lost`, `files_would_be_lost`; Outside.
        """
        if self.top_of(top) != top:
            raise Refused("not_ours", f"{top} is no work tree of ours", path=str(top))
        await off_loop(lambda processes: self._removed(processes, top, kept), ADDING_S)

    def _removed(self, processes: Processes, top: Path, kept: bool) -> None:
        around = surrounding_of(top)
        if around is None or around.top != top:
            raise Refused("not_ours", f"{top} belongs to no repository any more", path=str(top))
        named = ["for-each-ref", "--contains", "HEAD", "--count=1", "--format=%(refname)"]
        if not _git(processes, top, named).strip():
            raise Refused(
                "commits_would_be_lost",
                "commits made in the work tree are on no branch",
                path=str(top),
            )
        if not kept and _git(processes, top, ["status", "--porcelain", "-z"]):
            raise Refused(
                "files_would_be_lost", "files in the work tree are in no version", path=str(top)
            )
        words = ["--git-dir", str(around.common_dir), "worktree", "remove", "--force", str(top)]
        _git(processes, around.common_dir, words)


def _git(
    processes: Processes, cwd: Path, words: Sequence[str], accepted: Sequence[int] = (0,)
) -> bytes:
    command = ["git", "-c", "core.hooksPath=/dev/null", *words]
    return processes.start(command, clean_environment(), cwd).wait(accepted)
