"""The tools that stand behind names; the one way into this room."""

from collections.abc import Callable, Sequence

from pi_rpc.core.errors import Missing
from pi_rpc.core.ports import Tool
from pi_rpc.tools.bash import BashSettings, BashTool
from pi_rpc.tools.edit import EditTool
from pi_rpc.tools.ls import LsTool
from pi_rpc.tools.read import ReadTool
from pi_rpc.tools.write import WriteTool

KNOWN = ("read", "write", "edit", "bash", "ls")
"""Every tool of this room."""
ACTIVE_BY_DEFAULT = ("read", "write", "edit", "bash")
"""Those a session begins with."""


def tool_set(
    active: Sequence[str] = ACTIVE_BY_DEFAULT, bash: BashSettings | None = None
) -> dict[str, Tool]:
    """The named tools, in the order named. Raises Missing `tool_not_found`."""
    makers: dict[str, Callable[[], Tool]] = {
        "read": ReadTool,
        "write": WriteTool,
        "edit": EditTool,
        "bash": lambda: BashTool(bash),
        "ls": LsTool,
    }
    for name in active:
        if name not in makers:
            known = ", ".join(KNOWN)
            raise Missing(
                "tool_not_found", f"There is no tool {name}; there are {known}.", name=name
            )
    return {name: makers[name]() for name in active}
