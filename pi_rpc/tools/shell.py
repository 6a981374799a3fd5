"""A shell for the user's own commands: their output told as it comes, as plain text.

Promises
- What is told is what was printed, in order; where it came too fast, it says how much is left out.
- Telling costs no more memory than one piece, however fast a command prints.
"""

import os
from pathlib import Path

import msgspec

from pi_rpc.core.ports.tools import Printed, ShellOutcome, StopSignal, ToolSettings
from pi_rpc.tools.command import Command, CommandSettings, shell_command
from pi_rpc.tools.output import Output
from pi_rpc.tools.process import Child

PIECE_CHARS_MAX = 16 * 1024
"""Longest text told at once: more than a person reads between two looks."""


class UserShell:
    """Runs what the user types; no limit of time, and nothing of a session in its environment."""

    def __init__(self, settings: CommandSettings | None = None) -> None:
        self._settings = msgspec.structs.replace(settings or CommandSettings(), timeout_s=None)

    async def run(
        self,
        command: str,
        cwd: Path,
        spill_folder: Path,
        stop: StopSignal,
        printed: Printed,
        *,
        settings: ToolSettings = ToolSettings(),  # noqa: B008
    ) -> ShellOutcome:
        """Raises Missing `cwd_missing`, Outside `start_failed`."""
        if stop.is_set():
            return ShellOutcome("", None, cancelled=True, truncated=False)
        own = self._settings.as_chosen(settings)
        child = Child.started(shell_command(command, own), cwd, dict(os.environ))
        pieces = _Pieces(printed)
        running = Command(child, spill_folder, own, pieces)
        await running.run(stop)
        pieces.show(running.output)
        kept = running.output.truncation()
        cancelled = running.cause is not None
        path = running.output.spill_path
        return ShellOutcome(
            kept.content,
            None if cancelled else running.exit_code,
            cancelled=cancelled,
            truncated=kept.truncated,
            full_output_path=None if path is None else str(path),
        )


class _Pieces:
    """What was printed since the last look, no more than its end."""

    def __init__(self, printed: Printed) -> None:
        self._printed = printed
        self._text = ""
        self._skipped = 0

    def hear(self, text: str) -> None:
        joined = self._text + text
        self._text = joined[-PIECE_CHARS_MAX:]
        self._skipped += len(joined) - len(self._text)

    def show(self, output: Output) -> None:
        if self._text:
            self._printed.tell(self._text, self._skipped)
        self._text, self._skipped = "", 0
