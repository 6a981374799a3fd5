"""What a command printed: its end for the reader, all of it in a file when it is long.

Promises
- Memory is bounded, and the totals count everything.
- The file holds the bytes as they came. It is complete or says that it is cut, and why.
"""

import os
import secrets
from pathlib import Path

import anyio.to_thread

from pi_rpc.core.messages import JsonObject
from pi_rpc.tools.plain import Plain
from pi_rpc.tools.truncate import Limits, Tail, Truncation, size_text

SPILL_BYTES_MAX = 256 * 1024 * 1024
"""Largest file one command may leave behind."""


class Output:
    """The output of one command."""

    def __init__(self, folder: Path, limits: Limits, spill_bytes_max: int) -> None:
        self._limits = limits
        self._plain = Plain()
        self._tail = Tail(limits)
        self._spill = _Spill(folder, spill_bytes_max)
        self._early: list[bytes] = []
        self._is_spilling = False
        self._raw_bytes = 0

    async def feed(self, chunk: bytes) -> str:
        """Take in the next piece; its plain text.

        May write to the disk, and does not fail when the disk does.
        """
        self._raw_bytes += len(chunk)
        text = self._plain.feed(chunk)
        self._tail.feed(text)
        await self._keep(chunk)
        return text

    async def end(self) -> str:
        """No more will come: what was held back is given out, and the file is closed."""
        text = self._plain.feed(b"", final=True)
        self._tail.feed(text)
        await self._keep(b"")
        self._spill.close()
        return text

    def truncation(self) -> Truncation:
        """The end of what was printed so far."""
        return self._tail.truncation()

    @property
    def spill_path(self) -> Path | None:
        """The file that holds all of it, when it is long."""
        return self._spill.path

    def details(self, kept: Truncation) -> JsonObject:
        """`truncation`, `fullOutputPath` and `fullOutputCut`, where there is something to say."""
        details: JsonObject = {}
        if kept.truncated:
            details["truncation"] = kept.as_object()
        if self._spill.path is not None:
            details["fullOutputPath"] = str(self._spill.path)
        if self._spill.problem is not None:
            details["fullOutputCut"] = self._spill.problem
        return details

    def notice(self, kept: Truncation) -> str | None:
        """What is said to the reader about what is left out; None when nothing is."""
        if not kept.truncated:
            return None
        total, most = kept.total_lines, size_text(kept.limits.size_bytes)
        if kept.last_line_partial:
            shown = size_text(len(kept.content.encode()))
            size = size_text(self._tail.counts.last_line_bytes)
            text = f"Last {shown} of line {total}, which has {size}."
        else:
            text = f"Lines {total - kept.output_lines + 1}-{total} of {total}."
            if kept.truncated_by == "bytes":
                text += f" The limit of {most} was reached."
        return f"[{text} {self._where()}]"

    async def _keep(self, chunk: bytes) -> None:
        if not self._is_spilling:
            self._early.append(chunk)
            if not self._is_long():
                return
            self._is_spilling = True
            chunk = b"".join(self._early)
            self._early.clear()
        if chunk:
            await anyio.to_thread.run_sync(self._spill.write, chunk)

    def _where(self) -> str:
        path, problem = self._spill.path, self._spill.problem
        if path is None:
            return f"The full output could not be kept: {problem}."
        if problem is not None:
            return f"The output is kept up to where it was cut ({problem}): {path}"
        return f"Full output: {path}"

    def _is_long(self) -> bool:
        counts = self._tail.counts
        return (
            max(self._raw_bytes, counts.total_bytes) > self._limits.size_bytes
            or counts.total_lines > self._limits.lines
        )


class _Spill:
    """The file of one command's output; made when the first byte comes."""

    def __init__(self, folder: Path, size_bytes_max: int) -> None:
        self._folder = folder
        self._room = size_bytes_max
        self._descriptor: int | None = None
        self.path: Path | None = None
        self.problem: str | None = None
        """Why it does not hold everything."""

    def write(self, chunk: bytes) -> None:
        if self.problem is not None:
            return
        try:
            descriptor = self._opened()
            left = memoryview(chunk)[: self._room]
            is_cut = len(left) < len(chunk)
            self._room -= len(left)
            while left:
                left = left[os.write(descriptor, left) :]
            if is_cut:
                self.problem = "size limit"
        except OSError as error:
            # The command goes on: its end is still shown, and the gap is told.
            self.problem = error.strerror or str(error)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _opened(self) -> int:
        if self._descriptor is None:
            # Parents made along the way would be open to others.
            for folder in (*reversed(self._folder.parents), self._folder):
                folder.mkdir(mode=0o700, exist_ok=True)
            path = self._folder / f"bash-{secrets.token_hex(8)}.log"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
            self._descriptor = os.open(path, flags, 0o600)
            self.path = path
        return self._descriptor
