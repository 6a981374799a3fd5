"""The workspaces these settings allow; the one way into this room."""

import shutil
from pathlib import Path

import anyio.abc

from pi_rpc.core.errors import Outside
from pi_rpc.core.ports import Instructions, Workspace, Workspaces
from pi_rpc.core.version_limits import VersionLimits
from pi_rpc.workspace.absent import AbsentWorkspaces
from pi_rpc.workspace.git import GitWorkspace
from pi_rpc.workspace.instructions import FileInstructions
from pi_rpc.workspace.store import home_of


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
    enabled: bool, root: Path, tasks: anyio.abc.TaskGroup, limits: VersionLimits | None = None
) -> Workspaces:
    """Versions kept below `root` where there is git, else none and the reason."""
    if not enabled:
        return AbsentWorkspaces(
            lambda: Outside("versions_off", "versions are switched off", retryable=False)
        )
    if shutil.which("git") is None:
        return AbsentWorkspaces(
            lambda: Outside("git_missing", "there is no git to keep versions with", retryable=False)
        )
    return GitWorkspaces(root, tasks, limits or VersionLimits())


def open_instructions(agent_dir: Path, home: Path) -> Instructions:
    """Context files, skills and templates: the user's in his folder, the others where one works."""
    return FileInstructions(agent_dir, home)
