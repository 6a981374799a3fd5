"""A running shell command, seen to its end: listened to, bounded, ended with its children.

Promises
- It ends: when the shell has exited and its output rests, at the timeout, or when stopped.
- However it ends, what it printed is kept, and how it ended is known.
- A cancelled caller leaves no process of its group behind.
"""

import os
import shutil
from pathlib import Path
from typing import Literal, Protocol

import anyio
import msgspec

from pi_rpc.core.ports.tools import StopSignal, ToolSettings
from pi_rpc.tools.output import SPILL_BYTES_MAX, Output
from pi_rpc.tools.process import ENDING_S, Child, EndSignal
from pi_rpc.tools.truncate import Limits

EndCause = Literal["timeout", "aborted"]


class CommandSettings(msgspec.Struct, frozen=True):
    """How commands are run."""

    shell: str | None = None
    """The shell; None: /bin/bash, else bash on the PATH, else sh."""
    prefix: str | None = None
    """A line put before every command."""
    timeout_s: float | None = None
    """For calls that name none; None: no limit."""
    grace_s: float = 2.0
    """How long a group may clean up between SIGTERM and SIGKILL."""
    quiet_s: float = 0.1
    """Silence after the shell has exited that counts as the end of the output."""
    progress_s: float = 0.1
    """Shortest time between two looks at a running command."""
    spill_bytes_max: int = SPILL_BYTES_MAX
    limits: Limits = Limits()

    def as_chosen(self, wanted: ToolSettings) -> "CommandSettings":
        """The same as far as a session does not want it otherwise."""
        timeout_s, spill_bytes_max = wanted.timeout_s, wanted.spill_bytes_max
        return msgspec.structs.replace(
            self,
            shell=wanted.shell or self.shell,
            prefix=wanted.shell_prefix or self.prefix,
            timeout_s=self.timeout_s if timeout_s is None else timeout_s,
            spill_bytes_max=self.spill_bytes_max if spill_bytes_max is None else spill_bytes_max,
        )


class Listener(Protocol):
    """Who is told of a command's output while it runs; neither call may wait."""

    def hear(self, text: str) -> None:
        """Take in each piece, as plain text."""
        ...

    def show(self, output: Output) -> None:
        """Look at what was printed so far; asked now and then, and only when there is news."""
        ...


class Command:
    """A running command and what is known of it."""

    def __init__(
        self, child: Child, spill_folder: Path, settings: CommandSettings, listener: Listener
    ) -> None:
        self._child = child
        self._settings = settings
        self._listener = listener
        self._started_s = anyio.current_time()
        self._news = anyio.Event()
        self._listening = anyio.CancelScope()
        self._finished = anyio.Event()
        self.output = Output(spill_folder, settings.limits, settings.spill_bytes_max)
        self.exit_code: int | None = None
        """As shells count; None when it is not known."""
        self.cause: EndCause | None = None
        """Why it did not end by itself."""
        self.signal: EndSignal | None = None
        """What it took to end it."""
        self.was_background = False
        """Whether the shell had exited when what it left behind was ended."""
        self.took_s = 0.0

    async def run(self, stop: StopSignal, timeout_s: float | None = None) -> None:
        """See it to its end."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._show)
                tasks.start_soon(self._listen)
                tasks.start_soon(self._notice_exit)
                await self._wait_until_done(stop, timeout_s)
                if self.cause is not None:
                    self.was_background = self._child.has_exited()
                    self.signal = await self._child.end(self._settings.grace_s)
                    with anyio.move_on_after(ENDING_S):
                        await self._finished.wait()
                tasks.cancel_scope.cancel()
            self._listener.hear(await self.output.end())
            self.exit_code = self._child.close()
        except BaseException:
            await self._give_up()
            raise
        self.took_s = round(anyio.current_time() - self._started_s, 1)

    async def _wait_until_done(self, stop: StopSignal, timeout_s: float | None) -> None:
        with anyio.move_on_after(timeout_s) as limit:
            async with anyio.create_task_group() as tasks:

                async def heed_stop() -> None:
                    await stop.wait()
                    if not self._finished.is_set():
                        self.cause = "aborted"
                    tasks.cancel_scope.cancel()

                tasks.start_soon(heed_stop)
                await self._finished.wait()
                tasks.cancel_scope.cancel()
        if limit.cancelled_caught and self.cause is None and not self._finished.is_set():
            self.cause = "timeout"

    async def _notice_exit(self) -> None:
        await self._child.wait_until_exited()
        # Whoever listens without a limit begins to count the silence now.
        self._listening.deadline = anyio.current_time() + self._settings.quiet_s

    async def _listen(self) -> None:
        """Take in output until it ends, or rests after the shell has exited."""
        while True:
            has_exited = self._child.has_exited()
            wait_s = self._settings.quiet_s if has_exited else None
            with anyio.move_on_after(wait_s) as self._listening:
                await self._child.wait_until_readable()
            chunk = self._child.read()
            if chunk:
                text = await self.output.feed(chunk)
                self._listener.hear(text)
                self._news.set()
            elif chunk == b"":
                break
            elif self._listening.cancelled_caught:
                self._finished.set()
                return
        await self._child.wait_until_exited()
        self._finished.set()

    async def _show(self) -> None:
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            self._listener.show(self.output)
            await anyio.sleep(self._settings.progress_s)

    async def _give_up(self) -> None:
        try:
            with anyio.CancelScope(shield=True):
                await self._child.end(self._settings.grace_s)
                await self.output.end()
        finally:
            self._child.kill()
            self._child.close()


def shell_command(command: str, settings: CommandSettings) -> list[str]:
    """The words that start a command in a shell."""
    if settings.prefix:
        command = f"{settings.prefix}\n{command}"
    shell = None if settings.shell is None else os.path.expanduser(settings.shell)  # noqa: PTH111
    return [shell or _default_shell(), "-c", command]


def _default_shell() -> str:
    if Path("/bin/bash").exists():
        return "/bin/bash"
    return shutil.which("bash") or "sh"
