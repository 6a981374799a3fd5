"""What a model may do, and the commands of the user."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import msgspec

from pi_rpc.core.images import ImageLimits
from pi_rpc.core.messages import Block, JsonObject, ToolCall, ToolDeclaration, ToolOutcome


class StopSignal(Protocol):
    """Somebody wants this act to end."""

    def is_set(self) -> bool:
        """Whether it was asked for."""
        ...

    def wait(self) -> Awaitable[object]:
        """Return once it was asked for."""
        ...


class Progress(Protocol):
    """Where a running call tells how far it is; the newest snapshot wins."""

    def tell(self, content: list[Block], details: JsonObject | None = None) -> None:
        """Show this instead of what was shown before; never blocks."""
        ...


class ToolSettings(msgspec.Struct, frozen=True):
    """How a session wants tools and commands to work."""

    shell: str | None = None
    """The shell of commands; a leading `~` is the home. None leaves it to the tool."""
    shell_prefix: str | None = None
    """A line before every command."""
    timeout_s: float | None = None
    """For commands of the model that name none; None leaves it to the tool."""
    spill_bytes_max: int | None = None
    """The most that is kept of a long output; None leaves it to the tool."""
    makes_images_smaller: bool = True
    """Whether a picture too large to be shown is made smaller."""
    image_limits: ImageLimits = ImageLimits()
    """Those of the model in use."""
    blind_model: str | None = None
    """The model in use, when it takes no images."""


class CallContext(msgspec.Struct, frozen=True):
    """What one run of a tool is given beside its arguments."""

    cwd: Path
    stop: StopSignal
    progress: Progress
    environment: dict[str, str]
    """Variables added for child processes."""
    spill_folder: Path
    """Where output too long to show may be kept; made on first use, mode 0700."""
    settings: ToolSettings = ToolSettings()


@runtime_checkable
class Placed(Protocol):
    """A tool that can say where a call of it leads, before it runs."""

    async def place_of(self, arguments: JsonObject, cwd: Path) -> Path:
        """The file or folder, absolute, links followed; it need not exist. Raises Failure."""
        ...


@runtime_checkable
class Previewing(Protocol):
    """A tool that can say what a call of it would change, before it runs."""

    async def preview(self, arguments: JsonObject, cwd: Path) -> JsonObject:
        """`patch` and `diff`, as its result's details would have them. Raises Failure."""
        ...


Effect = Literal["none", "workspace", "outside"]
"""A call's mark on the world."""


class Tool(Protocol):
    """One thing a model may do."""

    declaration: ToolDeclaration
    effect: Effect
    """The most it may touch: `bash` says outside, for nobody can see what it reached."""
    sequential: bool
    """True when no other call of the batch may run beside it."""

    async def run(self, call: ToolCall, context: CallContext) -> ToolOutcome:
        """Do it. A failure is an outcome marked as error; Failure may be raised and becomes one.

        Must end soon after `context.stop` is set, giving what it has; whoever ignores that is
        cancelled and its outcome made up.
        """
        ...


class Printed(Protocol):
    """Where a command's output goes while it runs."""

    def tell(self, text: str, skipped_chars: int) -> None:
        """Plain text that follows what was told before; never blocks.

        `skipped_chars` were left out before it, because they came faster than they are told.
        """
        ...


class ShellOutcome(msgspec.Struct, frozen=True):
    """What came of a command the user ran."""

    output: str
    """Plain text, its end when it is long."""
    exit_code: int | None
    """As shells count; None when it was stopped."""
    cancelled: bool
    truncated: bool
    full_output_path: str | None = None
    """A file with the bytes as they came, when the output is long."""


class Shell(Protocol):
    """Runs commands of the user: no time limit, no variables of a session."""

    async def run(
        self,
        command: str,
        cwd: Path,
        spill_folder: Path,
        stop: StopSignal,
        printed: Printed,
        *,
        settings: ToolSettings = ...,
    ) -> ShellOutcome:
        """See a command to its end; a stop ends it with its children, and keeps its output.

        Raises Missing `cwd_missing`, Outside `start_failed`; then nothing was run.
        """
        ...


class LeftRunning(msgspec.Struct, frozen=True):
    """A process that a command of a session started and that still runs."""

    pid: int
    command: str


FindRunning = Callable[[str, str], Awaitable[list[LeftRunning] | None]]
"""Processes started with this variable at this value; None where the system does not tell."""
