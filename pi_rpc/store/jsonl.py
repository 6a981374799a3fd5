"""A session in a JSON-lines file: append, flush, read back; bytes that are there never change.

Promises
- Every entry is written by one call, so a crash leaves whole lines and at most one torn one. A torn
  line stays where it is; the next append begins behind it.
- Memory follows disk: rows are added after the bytes are written, and, if asked for, synced.
- The file is looked at before each append: what another program appended is never overwritten or
  built upon unseen, and a file that was removed or replaced is not written to.
- A session opened to read writes nothing and locks nobody out.
"""

import os
from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import add
from pathlib import Path
from typing import TypeVar

import anyio
from anyio import to_thread

from pi_rpc.core.errors import Conflict, Damaged, Locked, Outside, Refused
from pi_rpc.core.heads import UNSORTED_ROWS_MAX, Heads
from pi_rpc.core.ports.store import NewLine
from pi_rpc.store.copying import FileRows, check_lines
from pi_rpc.store.disk import failing_as, outside, read_exactly
from pi_rpc.store.lease import Lease
from pi_rpc.store.loading import Loaded, load_more, rows_again
from pi_rpc.store.syncing import Syncs

GAP_BYTES_MAX = 1 << 20
"""Bytes that are no entries and are read with the entries around them; more are passed over."""

GONE_THROUGH_BYTES = 1 << 16
"""Lines read at once by who goes through many; after each such read others have their turn."""

GONE_THROUGH_ROWS = 128
"""How many rows are looked up for one such read; most files have fewer in it."""

_Result = TypeVar("_Result")


class FileSession:
    """One open session file, with its lease when it may be written.

    `syncs`: who syncs it; None leaves it to the system when bytes reach the disk.
    """

    def __init__(
        self,
        path: Path,
        loaded: Loaded,
        lease: Lease | None,
        limiter: anyio.CapacityLimiter,
        syncs: Syncs | None,
    ) -> None:
        self.path: Path | None = path
        self.header = loaded.header
        self.diagnostics = loaded.diagnostics
        self.writable = lease is not None
        self._file = loaded
        self._lease = lease
        self._limiter = limiter
        self._syncs = syncs
        self._turn = anyio.Lock(fast_acquire=True)
        self._closed = False
        self._accounted = True
        # What stood there before was not written by us, so it is not known to be on the disk.
        self._is_unsynced = True
        """Holds: every line of the file is a row here, or no entry."""

    @property
    def heads(self) -> Heads:
        """Id, parent and kind of every row."""
        return self._file.heads

    @property
    def size_bytes(self) -> int:
        """Bytes of the file that were looked at or written here."""
        return self._file.size

    def rows(self) -> FileRows:
        """The rows as bytes of the file, readable also after this session is closed.

        Whoever asks closes them.
        """
        if self._closed:
            raise Refused("session_closed", "the session is closed")
        return FileRows(
            os.dup(self._file.fd), self._file.heads, self._file.offsets, self._file.lengths
        )

    def line(self, row: int) -> bytes:
        """The stored bytes of a row. Raises Outside `read_failed`."""
        if self._closed:
            raise Outside("read_failed", "the session is closed", retryable=False)
        if row < 0:
            raise IndexError(row)
        file = self._file
        return read_exactly(file.fd, file.offsets[row], file.lengths[row])

    def length(self, row: int) -> int:
        """How many bytes the line of a row has."""
        return self._file.lengths[row]

    def lines_of(self, rows: range) -> list[bytes]:
        """The stored bytes of rows that follow one another. Raises Outside `read_failed`."""
        if not rows:
            return []
        offsets, lengths = self._file.offsets, self._file.lengths
        start, last = offsets[rows[0]], rows[-1]
        span = offsets[last] + lengths[last] - start
        if self._closed or span > sum(lengths[rows[0] : last + 1]) + GAP_BYTES_MAX:
            return [self.line(row) for row in rows]
        data = read_exactly(self._file.fd, start, span)
        spans = [(offsets[row] - start, lengths[row]) for row in rows]
        return [data[at : at + length] for at, length in spans]

    def block(self, rows: Sequence[int], start: int) -> tuple[bytes, int]:
        """The stored lines of the row at a place and of those behind it that one read brings.

        Raises Outside `read_failed`.
        """
        chosen, file = rows[start : start + GONE_THROUGH_ROWS], self._file
        first, begin = chosen[0], file.offsets[chosen[0]]
        if self._closed or list(chosen) != list(range(first, first + len(chosen))):
            return self._gathered(chosen)
        stop = bisect_right(
            file.offsets, begin + GONE_THROUGH_BYTES, first + 1, first + len(chosen)
        )
        count, span = stop - first, file.offsets[stop - 1] + file.lengths[stop - 1] - begin
        if span != sum(file.lengths[first:stop]) + count - 1:
            return self._gathered(chosen)
        return read_exactly(file.fd, begin, span), count

    def _gathered(self, rows: Sequence[int]) -> tuple[bytes, int]:
        """A block of rows that do not stand together."""
        file, begin = self._file, self._file.offsets[rows[0]]
        begins = [file.offsets[row] - begin for row in rows]
        ends = list(map(add, begins, [file.lengths[row] for row in rows]))
        # What stands between them is read too, and counts.
        in_order = not self._closed and begins == sorted(begins)
        count = bisect_right(ends, GONE_THROUGH_BYTES) if in_order else 0
        if count < 2:
            return self.line(rows[0]), 1
        data = read_exactly(file.fd, begin, ends[count - 1])
        spans = zip(begins[:count], ends[:count], strict=True)
        return b"\n".join([data[at:end] for at, end in spans]), count

    async def refresh(self) -> range:
        """Take in what another program appended; the new rows.

        Raises Damaged `file_missing` or `file_replaced`.
        """
        async with self._turn:
            file = self._file
            known = len(file.heads)
            size = self._present_size()
            if size == file.size:
                return range(known, known)
            whole = not file.ended and file.scanned == file.size
            # A last line that lacked only its newline is changed by anything else that follows.
            if whole and read_exactly(file.fd, file.size, 1) != b"\n":
                raise Damaged("file_replaced", "the last line was changed", path=str(file.path))
            scan, ended = await self._in_thread(lambda: load_more(file, size))
            return file.take(scan, ended, size)

    async def append(self, lines: Sequence[NewLine], durable: bool) -> range:
        """Append lines, all in one write; the new rows. `durable`: synced when this returns."""
        if self._lease is None:
            raise Locked("opened_to_read", "the session was opened to read", owner=None)
        async with self._turn:
            file = self._file
            first = len(file.heads)
            check_lines(lines, first)
            if file.heads.unsorted_rows > UNSORTED_ROWS_MAX:
                await self._in_thread(file.heads.sort_ids)
            size = self._present_size()
            if size != file.size:
                raise Conflict(
                    "foreign_append",
                    "another program appended to the file",
                    expected=file.size,
                    actual=size,
                )
            if not lines:
                return range(first, first)
            begun = b"" if file.ended else b"\n"
            torn = not file.ended and file.scanned < file.size
            data = begun + b"".join([line.raw + b"\n" for line in lines])
            written = 0
            try:
                self._is_unsynced = True
                while written < len(data):
                    written += os.write(file.fd, memoryview(data)[written:])
                if durable:
                    await self._sync()
            except OSError as error:
                self._keep_written(lines, len(begun), torn, data[:written])
                raise outside(error, "write_failed", file.path) from error
            self._commit(lines, len(begun), torn)
            return range(first, len(file.heads))

    def _keep_written(
        self, lines: Sequence[NewLine], begun: int, torn: bool, written: bytes
    ) -> None:
        # A file only grows, so what a failed append has written stays: whole lines are entries
        # whoever opens the file next will find, and so they are rows here too.
        if not written:
            return
        whole = lines[: written[begun:].count(b"\n")]
        self._commit(whole, begun, torn)
        rest = len(written) - begun - sum(len(line.raw) + 1 for line in whole)
        if rest:
            self._accounted = False
            self._file.size += rest
            self._file.ended = False

    def _commit(self, lines: Sequence[NewLine], begun: int, torn: bool) -> None:
        file = self._file
        offset = file.size + begun
        for line in lines:
            file.heads.append(line.entry_id, line.parent_row, line.kind)
            file.offsets.append(offset)
            file.lengths.append(len(line.raw))
            offset += len(line.raw) + 1
        file.size = file.scanned = offset
        file.lines += len(lines) + torn
        file.ended = True

    async def sync(self) -> None:
        """Everything appended so far is on the disk when this returns.

        Raises Outside `write_failed` or `disk_full`.
        """
        async with self._turn:
            if self._lease is None or self._closed:
                return
            with failing_as("write_failed", self._file.path):
                await self._sync()

    @property
    def is_loaded(self) -> bool:
        """Whether memory holds the rows."""
        return self._file.rows is not None

    async def prepare_to_unload(self) -> None:
        """Bring the index up to date, where there may be one."""
        async with self._turn:
            if self._lease is not None and self._accounted and self.is_loaded and not self._closed:
                await self._in_thread(self._file.write_index)

    def unload(self) -> bool:
        """Give up what memory holds of the rows, where reading anew gives them; whether it did."""
        # Whoever has the turn reads or writes rows.
        if self._closed or not self._accounted or self._turn.locked():
            return False
        return not self.is_loaded or self._file.give_up()

    async def load(self) -> None:
        """Hold the rows again. Raises Damaged `file_replaced`, Outside."""
        async with self._turn:
            if not self.is_loaded and not self._closed:
                rows = await self._in_thread(lambda: rows_again(self._file))
                # Somebody may have needed them on the spot meanwhile, and goes by those.
                if not self.is_loaded:
                    self._file.rows = rows

    async def close(self) -> None:
        """Give up the lease and the file; calling it again does nothing."""
        with anyio.CancelScope(shield=True):
            async with self._turn:
                if not self._closed:
                    self._closed = True
                    await self._in_thread(self._close)

    def _close(self) -> None:
        try:
            if self._lease is not None and self._accounted and self.is_loaded:
                self._file.write_index()
        finally:
            os.close(self._file.fd)
            if self._lease is not None:
                self._lease.release()

    async def _sync(self) -> None:
        if self._syncs is not None and self._is_unsynced:
            await self._syncs.sync(self._file.fd)
            self._is_unsynced = False

    def _present_size(self) -> int:
        file = self._file
        if self._closed:
            raise Refused("session_closed", "the session is closed")
        state = os.fstat(file.fd)
        try:
            named = file.path.stat()
        except FileNotFoundError as error:
            raise Damaged("file_missing", "the file was removed", path=str(file.path)) from error
        except OSError as error:
            raise outside(error, "read_failed", file.path) from error
        if not os.path.samestat(named, state):
            raise Damaged("file_replaced", "another file has its name", path=str(file.path))
        if state.st_size < file.size:
            raise Damaged("file_replaced", "the file became shorter", path=str(file.path))
        return state.st_size

    async def _in_thread(self, work: Callable[[], _Result]) -> _Result:
        # What is under way on the disk is not left in the middle.
        with anyio.CancelScope(shield=True):
            result = await to_thread.run_sync(work, limiter=self._limiter)
        return result  # noqa: RET504  (a scope may swallow, so nothing may follow it but this)
