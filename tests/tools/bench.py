"""A folder to work in and one call of a tool, as the agent would make it."""

from pathlib import Path
from typing import Any

import anyio
import msgspec

from pi_rpc.core.messages import Block, JsonObject, ToolCall, ToolOutcome, text_of
from pi_rpc.core.ports.tools import CallContext, Tool, ToolSettings


class Snapshots:
    """Every snapshot a running call showed."""

    def __init__(self) -> None:
        self.told: list[tuple[str, JsonObject | None]] = []
        self._came = anyio.Event()

    def tell(self, content: list[Block], details: JsonObject | None = None) -> None:
        self.told.append((text_of({"content": content}), details))
        self._came.set()

    async def wait_until_shown(self, text: str) -> None:
        while not any(text in shown for shown, _ in self.told):
            self._came = anyio.Event()
            await self._came.wait()


class Bench:
    """A working directory, and tools run in it."""

    def __init__(self, folder: Path) -> None:
        self.cwd = folder / "work"
        self.cwd.mkdir()
        self.spill_folder = folder / "spill"
        self.stop = anyio.Event()
        self.progress = Snapshots()
        self.environment: dict[str, str] = {}
        self.settings = ToolSettings()

    def context(self) -> CallContext:
        return CallContext(
            self.cwd, self.stop, self.progress, self.environment, self.spill_folder, self.settings
        )

    async def run(self, tool: Tool, **arguments: Any) -> ToolOutcome:
        call = ToolCall("call-1", tool.declaration.name, arguments)
        with anyio.fail_after(5):
            outcome = await tool.run(call, self.context())
        # What comes out must be fit for a session file.
        msgspec.json.encode(outcome)
        return outcome

    def names(self) -> list[str]:
        return sorted(path.name for path in self.cwd.iterdir())

    def spilled(self) -> Path:
        """The one file of long output."""
        (path,) = self.spill_folder.iterdir()
        return path

    def put(self, name: str, content: bytes | str) -> Path:
        path = self.cwd / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path


def shown(outcome: ToolOutcome) -> str:
    """The text of an outcome."""
    return text_of({"content": outcome.content})
