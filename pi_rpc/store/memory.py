"""Sessions that live as long as the process: the store's whole promise until exit.

Also the body of a session whose file cannot be shown as it is: an old version opened to read.
"""

from collections.abc import Sequence
from pathlib import Path

from pi_rpc.core.codec import encode
from pi_rpc.core.entries import Header
from pi_rpc.core.errors import Locked, Outside, Refused
from pi_rpc.core.events import Diagnostic
from pi_rpc.core.heads import Heads
from pi_rpc.core.ports.store import CopiedRows, NewLine, StoredSession
from pi_rpc.store.copying import LineCopy, check_lines

BLOCK_ROWS = 64
"""Rows given at once to whoever goes through many; nothing is read for them."""


class MemorySession:
    """A session held in memory; `lines` may be shared with the sessions that only read it."""

    def __init__(self, header: Header, heads: Heads, lines: list[bytes]) -> None:
        self.header = header
        self.heads = heads
        self.lines = lines
        self.diagnostics: list[Diagnostic] = []
        self.path: Path | None = None
        self.writable = True
        self.closed = False
        self._ahead: Heads | None = None

    def reading(self) -> "MemorySession":
        """The same session opened to read; it grows when it is refreshed."""
        heads = Heads()
        heads.extend(self.heads.columns())
        reader = MemorySession(self.header, heads, self.lines)
        reader.diagnostics = list(self.diagnostics)
        reader.writable = False
        reader._ahead = self.heads
        return reader

    @property
    def size_bytes(self) -> int:
        """What the session would take as a file."""
        header = len(encode(self.header.as_object()))
        return header + 1 + sum(len(line) + 1 for line in self.lines[: len(self.heads)])

    def line(self, row: int) -> bytes:
        """The stored bytes of a row."""
        if self.closed:
            raise Outside("read_failed", "the session is closed", retryable=False)
        return self.lines[row]

    def length(self, row: int) -> int:
        """How many bytes the line of a row has."""
        return len(self.lines[row])

    def lines_of(self, rows: range) -> list[bytes]:
        """The stored bytes of rows that follow one another."""
        return [self.line(row) for row in rows]

    def block(self, rows: Sequence[int], start: int) -> tuple[bytes, int]:
        """The stored lines of the rows from a place on, a block of them."""
        lines = [self.line(row) for row in rows[start : start + BLOCK_ROWS]]
        return b"\n".join(lines), len(lines)

    async def refresh(self) -> range:
        """Take in what the owner appended; the new rows."""
        if self.closed:
            raise Refused("session_closed", "the session is closed")
        ahead = self.heads if self._ahead is None else self._ahead
        first = len(self.heads)
        for row in range(first, len(ahead)):
            self.heads.append(ahead.id_of(row), ahead.parents[row], ahead.kinds[row])
        return range(first, len(self.heads))

    async def append(self, lines: Sequence[NewLine], durable: bool) -> range:
        """Append lines; as durable as anything in memory."""
        if not self.writable:
            raise Locked("opened_to_read", "the session was opened to read", owner=None)
        if self.closed:
            raise Refused("session_closed", "the session is closed")
        first = len(self.heads)
        check_lines(lines, first)
        for line in lines:
            self.lines.append(line.raw)
            self.heads.append(line.entry_id, line.parent_row, line.kind)
        return range(first, len(self.heads))

    async def sync(self) -> None:
        """Nothing to wait for."""

    is_loaded = True

    async def prepare_to_unload(self) -> None:
        """There is nothing to prepare."""

    def unload(self) -> bool:
        """The rows are nowhere else, so they stay."""
        return False

    async def load(self) -> None:
        """They are there."""

    async def close(self) -> None:
        """End it; calling it again does nothing."""
        self.closed = True


def memory_session(
    header: Header,
    pieces: Sequence[NewLine | CopiedRows] = (),
    source: StoredSession | None = None,
) -> MemorySession:
    """A new session in memory, of new lines and of rows of a source."""
    copy = LineCopy()
    copy.add(pieces, source)
    return MemorySession(header, copy.heads, copy.lines)
