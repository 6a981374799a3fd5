"""A shell command as a group of processes: started, listened to, ended with its children.

Promises
- Nothing of ours is inherited: input is empty, output is one pipe, and no other descriptor is open.
- The group is asked to end (SIGTERM) before it is made to (SIGKILL), and only while the shell is
  not reaped: until then the group's number belongs to nobody else.
"""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import anyio
import anyio.to_thread

from pi_rpc.core.errors import Missing, Outside

ENDING_S = 1.0
"""How long a killed group may take to be gone; only a process stuck in the kernel needs more."""

_READ_BYTES = 64 * 1024
_POLL_S = 0.02

EndSignal = Literal["SIGTERM", "SIGKILL"]


class Child:
    """A running command; the leader of a session and group of its own."""

    def __init__(self, process: subprocess.Popen[bytes], pipe: int) -> None:
        self._process = process
        self._pipe = pipe
        self._group = process.pid

    @classmethod
    def started(cls, command: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> "Child":
        """Start it. Raises Missing `cwd_missing`, Outside `start_failed`."""
        if not cwd.is_dir():
            raise Missing(
                "cwd_missing", f"The working directory {cwd} is not there.", path=str(cwd)
            )
        ours, theirs = os.pipe()
        try:
            os.set_blocking(ours, False)
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=theirs,
                stderr=theirs,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            os.close(ours)
            message = f"{command[0]} could not be started: {error}"
            raise Outside("start_failed", message, retryable=False) from error
        finally:
            os.close(theirs)
        return cls(process, ours)

    async def wait_until_readable(self) -> None:
        """Return when `read` has something to give: bytes or the end."""
        await anyio.wait_readable(self._pipe)

    def read(self) -> bytes | None:
        """What was printed; empty at the end, None when there is nothing now."""
        try:
            return os.read(self._pipe, _READ_BYTES)
        except BlockingIOError:
            return None

    async def wait_until_exited(self) -> None:
        """Return when the shell has exited; its children may live on."""
        try:
            watch = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):
            # Not every system, and not every sandbox, has these.
            while not self.has_exited():  # noqa: ASYNC110
                await anyio.sleep(_POLL_S)
            return
        try:
            await anyio.wait_readable(watch)
        finally:
            os.close(watch)

    def has_exited(self) -> bool:
        """Whether the shell has exited. It is not reaped by asking."""
        if not hasattr(os, "waitid"):
            # Asking has to reap here, and the group's number is free once all its members are gone.
            return self._process.poll() is not None
        if self._process.returncode is not None:
            return True
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, flags) is not None

    async def end(self, grace_s: float) -> EndSignal:
        """Ask the group to end, and make it end when it has not within the grace; which it took."""
        self._signal(signal.SIGTERM)
        with anyio.move_on_after(grace_s):
            await self._wait_until_gone()
            return "SIGTERM"
        self._signal(signal.SIGKILL)
        with anyio.move_on_after(ENDING_S):
            await self._wait_until_gone()
        return "SIGKILL"

    def kill(self) -> None:
        """Make the group end now. Blocks for a moment: nothing can be awaited any more."""
        self._signal(signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(ENDING_S)

    def close(self) -> int | None:
        """Give up the pipe and reap the shell.

        The exit code as shells count: 128 and the number for a signal. None when it has not exited.
        """
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        code = self._process.poll()
        return 128 - code if code is not None and code < 0 else code

    def _signal(self, number: signal.Signals) -> None:
        if self._pipe < 0:
            return
        try:
            os.killpg(self._group, number)
        except (ProcessLookupError, PermissionError):
            # All gone, or (on macOS) nothing but the unreaped shell is left.
            return

    async def _wait_until_gone(self) -> None:
        await self.wait_until_exited()
        # Nobody tells when the last process of a group has ended.
        while await anyio.to_thread.run_sync(_has_living_members, self._group):  # noqa: ASYNC110
            await anyio.sleep(_POLL_S)


def _has_living_members(group: int) -> bool:
    """Whether a process of the group is running; one that only waits to be reaped is not.

    Where there is no /proc the shell stands for its group.
    """
    return any(
        member_group == group and state not in "ZX" for member_group, state in _groups_and_states()
    )


def _groups_and_states() -> Iterator[tuple[int, str]]:
    try:
        names = os.listdir("/proc")  # noqa: PTH208
    except FileNotFoundError:
        return
    for name in names:
        if not name.isdecimal():
            continue
        try:
            line = Path("/proc", name, "stat").read_bytes()
        except OSError:
            # It ended while we looked.
            continue
        # The program's name stands in parentheses and may hold anything, parentheses too.
        fields = line.rpartition(b")")[2].split()
        if len(fields) > 2:
            yield int(fields[2]), fields[0].decode()
