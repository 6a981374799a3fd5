"""The lines of a new session, taken from another one where they are the same.

Rows that hang below each other in the source and stand together in its file are copied as bytes and
not looked at; only where a run of them begins is the parent put into the line.
"""

import os
from array import array
from collections.abc import Iterator, Sequence

from pi_rpc.core.codec import with_parent
from pi_rpc.core.errors import Invalid
from pi_rpc.core.heads import Heads
from pi_rpc.core.ports.store import CopiedRows, NewLine, StoredSession
from pi_rpc.store.disk import BLOCK_BYTES, copy_bytes, read_exactly, write_all


class FileRows:
    """Rows of a session that are bytes of an open file."""

    def __init__(self, fd: int, heads: Heads, offsets: "array[int]", lengths: "array[int]") -> None:
        self.fd = fd
        self.heads = heads
        self.offsets = offsets
        self.lengths = lengths

    def line(self, row: int) -> bytes:
        """The stored bytes of a row."""
        return read_exactly(self.fd, self.offsets[row], self.lengths[row])

    def close(self) -> None:
        """Close the file."""
        os.close(self.fd)


def check_lines(lines: Sequence[NewLine], rows: int) -> None:
    """Raise Invalid for a line that cannot stand behind `rows` rows."""
    for row, line in enumerate(lines, rows):
        if b"\n" in line.raw:
            raise Invalid("newline_in_line", "an entry is one line")
        if not -1 <= line.parent_row < row:
            raise Invalid("parent_missing", "the parent of an entry comes before it")


class LineCopy:
    """Lines and their heads gathered in memory."""

    def __init__(self) -> None:
        self.heads = Heads()
        self.lines: list[bytes] = []

    def add(self, pieces: Sequence[NewLine | CopiedRows], source: StoredSession | None) -> None:
        """Add new lines and rows of the source, in this order."""
        for piece in pieces:
            if isinstance(piece, NewLine):
                check_lines([piece], len(self.heads))
                self.lines.append(piece.raw)
                self.heads.append(piece.entry_id, piece.parent_row, piece.kind)
                continue
            copied = _checked(piece, source)
            for row in range(piece.first, piece.last):
                raw = copied.line(row)
                if row == piece.first or copied.heads.parents[row] != row - 1:
                    raw = with_parent(raw, _last_id(self.heads))
                self.lines.append(raw)
                self.heads.extend_path(copied.heads, row, row + 1)


class FileCopy:
    """Lines written to an empty file, and where they stand."""

    def __init__(self, fd: int) -> None:
        self.heads = Heads()
        self.offsets = array("Q")
        self.lengths = array("I")
        self.size = 0
        self._fd = fd
        self._waiting = bytearray()

    def add_raw(self, raw: bytes) -> None:
        """Add a line that is no row."""
        self._waiting += raw + b"\n"
        self.size += len(raw) + 1
        if len(self._waiting) >= BLOCK_BYTES:
            self.flush()

    def add(
        self,
        pieces: Sequence[NewLine | CopiedRows],
        source: StoredSession | None,
        rows: FileRows | None,
    ) -> None:
        """Add new lines and rows of the source; `rows` when the source is a file too."""
        for piece in pieces:
            if isinstance(piece, NewLine):
                check_lines([piece], len(self.heads))
                self._add_row(piece.raw)
                self.heads.append(piece.entry_id, piece.parent_row, piece.kind)
                continue
            copied = _checked(piece, source)
            if rows is None:
                for row in range(piece.first, piece.last):
                    self._add_row(with_parent(copied.line(row), _last_id(self.heads)))
                    self.heads.extend_path(copied.heads, row, row + 1)
                continue
            for first, last in unbroken_runs(rows, piece.first, piece.last):
                self._add_run(rows, first, last)

    def flush(self) -> None:
        """Write what waits."""
        write_all(self._fd, bytes(self._waiting))
        self._waiting.clear()

    def _add_row(self, raw: bytes) -> None:
        self.offsets.append(self.size)
        self.lengths.append(len(raw))
        self.add_raw(raw)

    def _add_run(self, rows: FileRows, first: int, last: int) -> None:
        self._add_row(with_parent(rows.line(first), _last_id(self.heads)))
        self.heads.extend_path(rows.heads, first, last)
        if first + 1 == last:
            return
        self.flush()
        start = rows.offsets[first + 1]
        stop = rows.offsets[last - 1] + rows.lengths[last - 1]
        copy_bytes(rows.fd, self._fd, start, stop)
        # The last line of the source may lack its newline, so it is always ours.
        write_all(self._fd, b"\n")
        shift = self.size - start
        self.offsets.extend(array("Q", [at + shift for at in rows.offsets[first + 1 : last]]))
        self.lengths.extend(rows.lengths[first + 1 : last])
        self.size += stop - start + 1


def unbroken_runs(rows: FileRows, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Rows first..last-1 in runs of neighbours, each the child of the one before it."""
    parents, offsets, lengths = rows.heads.parents, rows.offsets, rows.lengths
    together = sum(lengths[first:last]) + (last - first - 1)
    if offsets[last - 1] + lengths[last - 1] - offsets[first] == together and parents[
        first + 1 : last
    ] == array("i", range(first, last - 1)):
        yield first, last
        return
    begun = first
    for row in range(first + 1, last):
        if parents[row] != row - 1 or offsets[row] != offsets[row - 1] + lengths[row - 1] + 1:
            yield begun, row
            begun = row
    yield begun, last


def _checked(piece: CopiedRows, source: StoredSession | None) -> StoredSession:
    if source is None or not 0 <= piece.first < piece.last <= len(source.heads):
        raise Invalid("no_such_rows", "the rows to copy are not in the source")
    return source


def _last_id(heads: Heads) -> str | None:
    return heads.id_of(len(heads) - 1) if len(heads) else None
