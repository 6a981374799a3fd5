"""The daemon as a child process: start it, read it line by line, end it.

Promises
- Lines end at a line feed and nowhere else; what JSON holds inside its texts never parts them.
- stderr is always drained, and its end kept for the message of whoever hears of the death.
- However it is left, the child is over and waited for.
"""

import os
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from subprocess import PIPE

import anyio
import anyio.abc
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from pi_rpc_client.errors import DaemonEndedError, DaemonNotFoundError

LINE_BYTES_MAX = 64 * 1024 * 1024 + 1024
"""The longest line read: what a daemon writes at most, and its envelope."""
STDERR_KEPT_BYTES = 64 * 1024
"""How much of the end of stderr is kept."""
LINES_WAITING_MAX = 64
"""Lines that may wait to be written; then callers wait too."""
_CHUNK_BYTES = 64 * 1024


class DaemonProcess:
    """A running daemon. Made by `running_daemon`."""

    def __init__(self, process: anyio.abc.Process) -> None:
        self._process = process
        self._stderr: deque[bytes] = deque()
        self._stderr_bytes = 0
        self._stderr_ended = anyio.Event()
        self._to_write: MemoryObjectSendStream[bytes]
        self._writing: MemoryObjectReceiveStream[bytes]
        self._to_write, self._writing = anyio.create_memory_object_stream(LINES_WAITING_MAX)

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    @property
    def status(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._process.returncode

    @property
    def stderr(self) -> str:
        """The end of what the child wrote to stderr."""
        return b"".join(self._stderr).decode("utf-8", "replace")

    async def send(self, line: bytes) -> None:
        """Hand a line over to be written, without its line feed. Raises DaemonEndedError."""
        try:
            await self._to_write.send(line)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise DaemonEndedError(self.status, self.stderr) from error

    async def lines(self) -> AsyncIterator[bytes]:
        """Lines of stdout until it ends. A last line without its line feed is dropped."""
        assert self._process.stdout is not None
        held = bytearray()
        searched = 0
        while True:
            try:
                held += await self._process.stdout.receive(_CHUNK_BYTES)
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                return
            start = 0
            while (stop := held.find(b"\n", max(start, searched))) >= 0:
                yield bytes(held[start:stop])
                start = stop + 1
            del held[:start]
            searched = len(held)
            if searched > LINE_BYTES_MAX:
                raise ValueError("the daemon writes a line that does not end")

    async def close_input(self) -> None:
        """Close stdin once all lines are written: a daemon ends when it has read that."""
        self._to_write.close()

    async def wait(self) -> int:
        """The exit status, once the child is over and its stderr is read."""
        status = await self._process.wait()
        # Another process may have inherited stderr; nothing hangs on its end.
        with anyio.move_on_after(1):
            await self._stderr_ended.wait()
        return status

    async def end(self, patience_s: float) -> int:
        """End the child: by closing its input, then SIGTERM, then SIGKILL; the exit status."""
        await self.close_input()
        for insist in (self._process.terminate, self._process.kill):
            with anyio.move_on_after(patience_s):
                return await self.wait()
            insist()
        return await self.wait()

    def kill(self) -> None:
        """End the child at once, as a crash would."""
        self._process.kill()

    async def _write(self) -> None:
        assert self._process.stdin is not None
        async with self._writing, self._process.stdin:
            async for line in self._writing:
                try:
                    await self._process.stdin.send(line + b"\n")
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return

    async def _drain(self) -> None:
        assert self._process.stderr is not None
        try:
            async for chunk in self._process.stderr:
                self._stderr.append(chunk)
                self._stderr_bytes += len(chunk)
                while self._stderr_bytes - len(self._stderr[0]) >= STDERR_KEPT_BYTES:
                    self._stderr_bytes -= len(self._stderr.popleft())
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        finally:
            self._stderr_ended.set()


@asynccontextmanager
async def plain_task_group() -> AsyncIterator[anyio.abc.TaskGroup]:
    """A task group whose only failure is raised as it is, not in a group of one."""
    try:
        async with anyio.create_task_group() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        if len(group.exceptions) > 1:
            raise
        raise group.exceptions[0] from group.exceptions[0].__cause__


@asynccontextmanager
async def running_daemon(
    command: Sequence[str],
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    patience_s: float = 10,
) -> AsyncIterator[DaemonProcess]:
    """A daemon that runs as long as this context.

    `env` is added to this process's environment. Raises DaemonNotFoundError when there is no such
    command, and another OSError when it cannot be started.
    """
    try:
        process = await anyio.open_process(
            list(command),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=cwd,
            env=None if env is None else {**os.environ, **env},
        )
    except FileNotFoundError as error:
        # The folder to work in may be what is missing; then the error names that.
        if error.filename != command[0]:
            raise
        raise DaemonNotFoundError(command[0]) from error
    daemon = DaemonProcess(process)
    async with plain_task_group() as tasks:
        tasks.start_soon(daemon._write)
        tasks.start_soon(daemon._drain)
        try:
            yield daemon
        finally:
            with anyio.CancelScope(shield=True):
                await daemon.end(patience_s)
                tasks.cancel_scope.cancel()
                await process.aclose()
