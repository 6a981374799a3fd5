"""A shell command: streamed, bounded, ended with its children.

Promises
- It ends: when the shell has exited and its output rests, at the timeout, or when stopped.
- However it ends, the outcome says how, shows the end of what was printed, and keeps its details.
- A cancelled call leaves no process of its group behind.
"""

import os
import signal

from pi_rpc.core.arguments import checked
from pi_rpc.core.messages import JsonObject, ToolCall, ToolDeclaration, ToolOutcome, text_block
from pi_rpc.core.ports.tools import CallContext, Effect, Progress
from pi_rpc.tools.command import Command, CommandSettings, shell_command
from pi_rpc.tools.output import Output
from pi_rpc.tools.process import Child

TIMEOUT_S_MAX = 2147483.647
"""Longest timeout: what a signed 32-bit count of milliseconds holds."""


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

    def __init__(self, settings: CommandSettings | None = None) -> None:
        self._settings = settings or CommandSettings()

    async def run(self, call: ToolCall, context: CallContext) -> ToolOutcome:
        """Raises Invalid `invalid_arguments`, Missing `cwd_missing`, Outside `start_failed`."""
        arguments = checked(call.arguments, self.declaration.parameters)
        settings = self._settings.as_chosen(context.settings)
        timeout_s = arguments.get("timeout", settings.timeout_s)
        if context.stop.is_set():
            return _never_started()
        child = Child.started(
            shell_command(arguments["command"], settings),
            context.cwd,
            {**os.environ, **context.environment},
        )
        shown = _Shown(context.progress)
        command = Command(child, context.spill_folder, settings, shown)
        context.progress.tell([])
        await command.run(context.stop, timeout_s)
        return _outcome(command, timeout_s)


class _Shown:
    """Progress that shows the end of what was printed."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def hear(self, text: str) -> None:
        """Wait for the next look."""

    def show(self, output: Output) -> None:
        kept = output.truncation()
        details = output.details(kept) if kept.truncated else None
        self._progress.tell([text_block(kept.content)], details)


def _outcome(command: Command, timeout_s: float | None) -> ToolOutcome:
    kept = command.output.truncation()
    parts = [kept.content.removesuffix("\n")]
    if not kept.content and command.cause is None:
        parts = ["(no output)"]
    notice = command.output.notice(kept)
    if notice is not None:
        parts.append(notice)
    status = _status(command, timeout_s)
    if status is not None:
        parts.append(status)
    details: JsonObject = {
        "exitCode": command.exit_code,
        "durationS": command.took_s,
        **command.output.details(kept),
    }
    if command.cause is not None:
        details["killed"] = {"cause": command.cause, "signal": command.signal}
    text = "\n\n".join(filter(None, parts))
    is_error = command.cause is not None or command.exit_code != 0
    return ToolOutcome(content=[text_block(text)], is_error=is_error, details=details)


def _status(command: Command, timeout_s: float | None) -> str | None:
    code = command.exit_code
    if command.cause is None:
        return None if code == 0 else f"[Exit code {_code_text(code)}]"
    why = "Stopped" if command.cause == "aborted" else f"Timed out after {timeout_s:g} s"
    end = f"[{why}; ended with {command.signal}."
    if command.was_background:
        end += (
            f" The shell had exited with code {_code_text(code)};"
            f" background processes went on writing until {command.took_s} s."
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
