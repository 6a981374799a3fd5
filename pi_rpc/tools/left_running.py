"""Processes that commands of a session left running, found by a variable they were given."""

import os
from collections.abc import Iterator
from pathlib import Path

import anyio.to_thread

from pi_rpc.core.ports.tools import LeftRunning

LISTED_MAX = 100
COMMAND_CHARS_MAX = 300


async def left_running(variable: str, value: str) -> list[LeftRunning] | None:
    """At most a hundred, oldest first; None where the system does not tell (there is no /proc).

    Found are those of this user that kept the variable; what a program clears is not.
    """
    return await anyio.to_thread.run_sync(_found, f"{variable}={value}".encode())


def _found(mark: bytes) -> list[LeftRunning] | None:
    try:
        names = os.listdir("/proc")  # noqa: PTH208
    except FileNotFoundError:
        return None
    pids = sorted(int(name) for name in names if name.isdecimal())
    return list(_marked(pids, mark))[:LISTED_MAX]


def _marked(pids: list[int], mark: bytes) -> Iterator[LeftRunning]:
    for pid in pids:
        folder = Path("/proc", str(pid))
        try:
            if mark not in (folder / "environ").read_bytes().split(b"\0"):
                continue
            words = (folder / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        except OSError:
            # It has ended, or is another user's.
            continue
        # One that ended and waits to be reaped has no words any more.
        command = b" ".join(words).decode(errors="replace")
        if command:
            yield LeftRunning(pid, command[:COMMAND_CHARS_MAX])
