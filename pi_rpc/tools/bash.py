"""A shell command: streamed, bounded, ended with its children.

Promises
- It ends: when the shell has exited and its output rests, at the timeout, or when stopped.
- However it ends, the outcome says how, shows the end of what was printed, and keeps its details.
- A cancelled call leaves no process of its group behind.
"""

import os
import shutil
import signal
from pathlib import Path
from typing import Literal

import anyio
import msgspec

from pi_rpc.core.arguments import checked
from pi_rpc.core.messages import JsonObject, ToolCall, ToolDeclaration, ToolOutcome, text_block
from pi_rpc.core.ports import CallContext, Effect, Progress, StopSignal
from pi_rpc.tools.output import SPILL_BYTES_MAX, Output
from pi_rpc.tools.process import ENDING_S, Child, EndSignal
from pi_rpc.tools.truncate import Limits

TIMEOUT_S_MAX = 2147483.647
"""Longest timeout: what a signed 32-bit count of milliseconds holds."""

EndCause = Literal["timeout", "aborted"]


class BashSettings(msgspec.Struct, frozen=True):
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


class BashTool:
    """Runs a command in a shell."""

    effect: Effect = "outside"
    sequential = False
    declaration = ToolDeclaration(
        name="bash",
        description=(
            "Run a bash command in the cwd and show what it prints, stdout and stderr together."
            " Long output is cut to its last 2000 lines or 50KB; a notice then names a file with"
            " all of it. Input is empty. Background processes may go on when the command has ended."
        ),
        parameters={
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command line or script"},
                "timeout": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "maximum": TIMEOUT_S_MAX,
                    "description": "Seconds after which it is ended",
                },
            },
            "required": ["command"],
        },
    )

    def __init__(self, settings: BashSettings | None = None) -> None:
        self._settings = settings or BashSettings()

    async def run(self, call: ToolCall, context: CallContext) -> ToolOutcome:
        """Raises Invalid `invalid_arguments`, Missing `cwd_missing`, Outside `start_failed`."""
        arguments = checked(call.arguments, self.declaration.parameters)
        timeout_s = arguments.get("timeout", self._settings.timeout_s)
        if context.stop.is_set():
            return _never_started()
        command = arguments["command"]
        if self._settings.prefix:
            command = f"{self._settings.prefix}\n{command}"
        shell = self._settings.shell or _default_shell()
        environment = {**os.environ, **context.environment}
        child = Child.started([shell, "-c", command], context.cwd, environment)
        watched = _Watched(child, context.spill_folder, self._settings)
        return await watched.run(context.stop, context.progress, timeout_s)


class _Watched:
    """A running command and what is known of it."""

    def __init__(self, child: Child, spill_folder: Path, settings: BashSettings) -> None:
        self._child = child
        self._settings = settings
        self._output = Output(spill_folder, settings.limits, settings.spill_bytes_max)
        self._started_s = anyio.current_time()
        self._news = anyio.Event()
        self._listening = anyio.CancelScope()
        self._finished = anyio.Event()
        self._cause: EndCause | None = None
        self._signal: EndSignal | None = None
        self._was_background = False

    async def run(
        self, stop: StopSignal, progress: Progress, timeout_s: float | None
    ) -> ToolOutcome:
        """See it to its end."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._tell, progress)
                tasks.start_soon(self._listen)
                tasks.start_soon(self._notice_exit)
                await self._wait_until_done(stop, timeout_s)
                if self._cause is not None:
                    self._was_background = self._child.has_exited()
                    self._signal = await self._child.end(self._settings.grace_s)
                    with anyio.move_on_after(ENDING_S):
                        await self._finished.wait()
                tasks.cancel_scope.cancel()
            await self._output.end()
            exit_code = self._child.close()
        except BaseException:
            await self._give_up()
            raise
        return self._outcome(exit_code, timeout_s)

    async def _wait_until_done(self, stop: StopSignal, timeout_s: float | None) -> None:
        with anyio.move_on_after(timeout_s) as limit:
            async with anyio.create_task_group() as tasks:

                async def heed_stop() -> None:
                    await stop.wait()
                    if not self._finished.is_set():
                        self._cause = "aborted"
                    tasks.cancel_scope.cancel()

                tasks.start_soon(heed_stop)
                await self._finished.wait()
                tasks.cancel_scope.cancel()
        if limit.cancelled_caught and self._cause is None and not self._finished.is_set():
            self._cause = "timeout"

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
                await self._output.feed(chunk)
                self._news.set()
            elif chunk == b"":
                break
            elif self._listening.cancelled_caught:
                self._finished.set()
                return
        await self._child.wait_until_exited()
        self._finished.set()

    async def _tell(self, progress: Progress) -> None:
        progress.tell([])
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            kept = self._output.truncation()
            details = self._output.details(kept) if kept.truncated else None
            progress.tell([text_block(kept.content)], details)
            await anyio.sleep(self._settings.progress_s)

    async def _give_up(self) -> None:
        try:
            with anyio.CancelScope(shield=True):
                await self._child.end(self._settings.grace_s)
                await self._output.end()
        finally:
            self._child.kill()
            self._child.close()

    def _outcome(self, exit_code: int | None, timeout_s: float | None) -> ToolOutcome:
        took_s = round(anyio.current_time() - self._started_s, 1)
        kept = self._output.truncation()
        parts = [kept.content.removesuffix("\n")]
        if not kept.content and self._cause is None:
            parts = ["(no output)"]
        notice = self._output.notice(kept)
        if notice is not None:
            parts.append(notice)
        status = self._status(exit_code, timeout_s, took_s)
        if status is not None:
            parts.append(status)
        details: JsonObject = {
            "exitCode": exit_code,
            "durationS": took_s,
            **self._output.details(kept),
        }
        if self._cause is not None:
            details["killed"] = {"cause": self._cause, "signal": self._signal}
        text = "\n\n".join(filter(None, parts))
        is_error = self._cause is not None or exit_code != 0
        return ToolOutcome(content=[text_block(text)], is_error=is_error, details=details)

    def _status(self, exit_code: int | None, timeout_s: float | None, took_s: float) -> str | None:
        if self._cause is None:
            return None if exit_code == 0 else f"[Exit code {_code_text(exit_code)}]"
        why = "Stopped" if self._cause == "aborted" else f"Timed out after {timeout_s:g} s"
        end = f"[{why}; ended with {self._signal}."
        if self._was_background:
            end += (
                f" The shell had exited with code {_code_text(exit_code)};"
                f" background processes went on writing until {took_s} s."
            )
        return f"{end}]"


def _never_started() -> ToolOutcome:
    text = "[Stopped before it was started.]"
    details: JsonObject = {"exitCode": None, "durationS": 0.0}
    return ToolOutcome(content=[text_block(text)], is_error=True, details=details)


def _code_text(code: int | None) -> str:
    if code is None:
        return "unknown"
    try:
        return f"{code} ({signal.Signals(code - 128).name})"
    except ValueError:
        return str(code)


def _default_shell() -> str:
    if Path("/bin/bash").exists():
        return "/bin/bash"
    return shutil.which("bash") or "sh"
