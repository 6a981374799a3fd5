"""The tools that stand behind names; the one way into this room."""

from collections.abc import Callable, Sequence
from pathlib import Path

from pi_rpc.core.errors import Missing
from pi_rpc.core.ports.tools import Shell, Tool
from pi_rpc.core.ports.workspace import PathsIgnored
from pi_rpc.tools.bash import BashTool
from pi_rpc.tools.command import CommandSettings
from pi_rpc.tools.edit import EditTool
from pi_rpc.tools.find import FindTool
from pi_rpc.tools.grep import GrepTool
from pi_rpc.tools.ignoring import ONLY_GIT, ignoring_above
from pi_rpc.tools.left_running import left_running
from pi_rpc.tools.ls import LsTool
from pi_rpc.tools.read import ReadTool
from pi_rpc.tools.shell import UserShell
from pi_rpc.tools.write import WriteTool

__all__ = [
    "ACTIVE_BY_DEFAULT",
    "KNOWN",
    "ignoring_by_git",
    "left_running",
    "tool_set",
    "user_shell",
]

KNOWN = ("read", "write", "edit", "bash", "grep", "find", "ls")
"""Every tool of this room."""
ACTIVE_BY_DEFAULT = ("read", "write", "edit", "bash")
"""Those a session begins with."""


def tool_set(
    active: Sequence[str] = ACTIVE_BY_DEFAULT, bash: CommandSettings | None = None
) -> dict[str, Tool]:
    """The named tools, in the order named. Raises Missing `tool_not_found`."""
    makers: dict[str, Callable[[], Tool]] = {
        "read": ReadTool,
        "write": WriteTool,
        "edit": EditTool,
        "bash": lambda: BashTool(bash),
        "grep": GrepTool,
        "find": FindTool,
        "ls": LsTool,
    }
    for name in active:
        if name not in makers:
            known = ", ".join(KNOWN)
            raise Missing(
                "tool_not_found", f"There is no tool {name}; there are {known}.", name=name
            )
    return {name: makers[name]() for name in active}


def ignoring_by_git(folder: Path) -> PathsIgnored:
    """What Git's ignore files above a folder say of it, and no others'."""
    return ignoring_above(folder, ONLY_GIT)


def user_shell(settings: CommandSettings | None = None) -> Shell:
    """Where the user's own commands run."""
    return UserShell(settings)
