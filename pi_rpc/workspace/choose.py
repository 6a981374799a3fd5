"""The workspaces these settings allow; the one way into this room."""

import shutil
from pathlib import Path

import anyio.abc

from pi_rpc.core.errors import Outside
from pi_rpc.core.ports.instructions import Instructions
from pi_rpc.core.ports.workspace import IgnoringAbove, Workspace, Workspaces, Worktrees
from pi_rpc.core.version_limits import VersionLimits
from pi_rpc.workspace.absent import AbsentWorkspaces
from pi_rpc.workspace.copies import CopiedWorkspaces
from pi_rpc.workspace.git import GitWorkspace
from pi_rpc.workspace.instructions import FileInstructions
from pi_rpc.workspace.store import home_of
from pi_rpc.workspace.worktrees import GitWorktrees


class GitWorkspaces:
    """One workspace for each folder, shared by whoever works in it."""

    def __init__(self, root: Path, tasks: anyio.abc.TaskGroup, limits: VersionLimits) -> None:
        self._root = root
        self._tasks = tasks
        self._limits = limits
        self._made: dict[Path, GitWorkspace] = {}

    def of(self, folder: Path) -> Workspace:
        """That of a folder, links resolved."""
        resolved = folder.resolve()
        found = self._made.get(resolved)
        if found is None:
            home = home_of(self._root, resolved)
            found = self._made[resolved] = GitWorkspace(resolved, home, self._tasks, self._limits)
        return found


def choose_workspaces(
    enabled: bool,
    root: Path,
    tasks: anyio.abc.TaskGroup,
    limits: VersionLimits | None = None,
    ignoring_above: IgnoringAbove | None = None,
) -> Workspaces:
    """Versions kept below `root`: by git, as copies where there is none, else none and the reason.

    `ignoring_above`: what ignore files say, which copies cannot do without.
    """
    if not enabled:
        return AbsentWorkspaces(
            lambda: Outside("versions_off", "versions are switched off", retryable=False)
        )
    if shutil.which("git") is None and ignoring_above is not None:
        return CopiedWorkspaces(root, limits or VersionLimits(), ignoring_above)
    if shutil.which("git") is None:
        return AbsentWorkspaces(
            lambda: Outside("git_missing", "there is no git to keep versions with", retryable=False)
        )
    return GitWorkspaces(root, tasks, limits or VersionLimits())


def open_worktrees(root: Path) -> Worktrees:
    """Work trees made below `root`."""
    return GitWorktrees(root)


def open_instructions(agent_dir: Path, home: Path) -> Instructions:
    """Context files, skills and templates: the user's and those of the folder one works in."""
    return FileInstructions(agent_dir, home)
