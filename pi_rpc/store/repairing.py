"""Repair of a session file: every entry keeps its place in the tree, and every byte is kept.

Promises
- A file that only lacks its last newline gets it and is not written otherwise.
- Any other gets a successor, looked at before it takes the name; the old file stays beside it as
  `<name>.bak`.
- What is no entry becomes an entry of type custom that keeps its text. One whose beginning tells id
  and parent keeps both, so that what hangs below it stays where it is.
- Good lines are taken over byte for byte, but for a parent that is nowhere or closes a circle.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from pi_rpc.core.codec import decode, encode, with_parent
from pi_rpc.core.entries import FORMAT_VERSION, UNPARSED, custom, entry_object
from pi_rpc.core.errors import Damaged, Refused
from pi_rpc.core.heads import Heads
from pi_rpc.core.ports.clock import Ids
from pi_rpc.core.ports.store import Repaired, RepairStep
from pi_rpc.core.scanner import Scan, Scanner
from pi_rpc.store.disk import (
    failing_as,
    open_regular,
    read_exactly,
    scan_file,
    sync_folder,
    temporary_beside,
    write_all,
)
from pi_rpc.store.migration import keep_beside, kept_text, version_of

_SPACE = b" \t\r\n"


class NewFileLine(msgspec.Struct):
    """A line of the new file."""

    row: int | None
    """The row of the old file it stands for; None for text that was none."""
    raw: bytes | None = None
    """What is written instead of the old bytes."""


def repair_file(path: Path, ids: Ids, syncs: bool) -> Repaired:
    """Repair a resolved file whose lease is held.

    Raises Invalid `not_a_session`, Refused `old_version`, Damaged `repair_failed`, Outside; then
    nothing was changed.
    """
    fd = open_regular(path, writable=True)
    try:
        size = os.fstat(fd).st_size
        # Two records on one line are found only by a scan that looks for them.
        scan, whole = scan_file(fd, Scanner(), 0, size)
        _refuse_old_version(scan)
        repair = _Repair(fd, scan, size, ids)
        lines = repair.lines()
        if not repair.steps:
            return _ended(fd, path, whole < size, syncs)
        return Repaired(repair.steps, _replaced(path, fd, lines, scan, syncs))
    finally:
        os.close(fd)


def _refuse_old_version(scan: Scan) -> None:
    assert scan.header is not None
    heads = Heads()
    heads.extend(scan.columns)
    if version_of(scan.header, heads) < FORMAT_VERSION:
        text = "a file of an older version is made new when it is opened to write"
        raise Refused("old_version", text, version=scan.header.version)


def _ended(fd: int, path: Path, lacks_newline: bool, syncs: bool) -> Repaired:
    if not lacks_newline:
        return Repaired([])
    with failing_as("write_failed", path):
        write_all(fd, b"\n")
        if syncs:
            os.fsync(fd)
    return Repaired([RepairStep("newline_added", "the last line got its newline")])


class _Repair:
    """The lines of the successor, and what had to be done for them."""

    def __init__(self, fd: int, scan: Scan, size: int, ids: Ids) -> None:
        self.steps: list[RepairStep] = []
        self._fd = fd
        self._scan = scan
        self._size = size
        self._ids = ids
        self._used = {self._id(row) for row in range(len(scan.offsets))}
        self._last_stamp = scan.header.timestamp if scan.header is not None else ""

    def lines(self) -> list[NewFileLine]:
        """All lines behind the header, the old ones in their order."""
        scan = self._scan
        lines: list[NewFileLine] = []
        position = scan.header_offset + scan.header_length
        lines += self._between(0, scan.header_offset)
        for row, (offset, length) in enumerate(zip(scan.offsets, scan.lengths, strict=True)):
            gap = list(self._between(position, offset))
            if row and offset == position:
                self._tell("lines_parted", "two records stood on one line", offset, self._id(row))
            lines += gap
            lines.append(self._row(row, offset, length))
            position = offset + length
        tail = list(self._between(position, self._size))
        # Never last, for the last line is where a session goes on.
        place = max(0, len(lines) - 1)
        return [*lines[:place], *tail, *lines[place:]]

    def _between(self, start: int, stop: int) -> Iterator[NewFileLine]:
        if start >= stop:
            return
        at = start
        for text in read_exactly(self._fd, start, stop - start).split(b"\n"):
            if text.strip(_SPACE):
                self._tell("line_kept_as_entry", "a line that is no entry", at)
                yield NewFileLine(None, self._unparsed(text, None, None))
            at += len(text) + 1

    def _row(self, row: int, offset: int, length: int) -> NewFileLine:
        raw = read_exactly(self._fd, offset, length)
        parent = self._scan.columns.parents[row]
        parent_id = None if parent < 0 else self._id(parent)
        stored = _object(raw)
        if row in self._scan.columns.shadowed:
            self._tell("line_kept_as_entry", "its id was taken", offset, self._id(row))
            # Below its namesake: if it comes last, a session goes on at that one.
            return NewFileLine(None, self._unparsed(raw, None, self._id(row)))
        if stored is None:
            self._tell("line_kept_as_entry", "its end cannot be read", offset, self._id(row))
            return NewFileLine(row, self._unparsed(raw, self._id(row), parent_id))
        stamp = stored.get("timestamp")
        self._last_stamp = stamp if isinstance(stamp, str) else self._last_stamp
        if stored.get("parentId") == parent_id:
            return NewFileLine(row)
        self._tell("parent_mended", "its parent was not to be had", offset, self._id(row))
        return NewFileLine(row, with_parent(raw, parent_id))

    def _unparsed(self, text: bytes, entry_id: str | None, parent_id: str | None) -> bytes:
        body = custom(UNPARSED, kept_text(text))
        return encode(entry_object(body, entry_id or self._new_id(), parent_id, self._last_stamp))

    def _new_id(self) -> str:
        entry_id = self._ids.entry_id()
        while entry_id in self._used:
            entry_id = self._ids.entry_id()
        self._used.add(entry_id)
        return entry_id

    def _id(self, row: int) -> str:
        return id_in(self._scan, row)

    def _tell(self, action: str, text: str, offset: int, entry_id: str | None = None) -> None:
        step = {"action": action, "text": text, "offset": offset, "entryId": entry_id}
        self.steps.append(msgspec.convert(step, RepairStep))


def id_in(scan: Scan, row: int) -> str:
    """The id of a row of a scan."""
    odd = scan.columns.odd_ids.get(row)
    return scan.columns.ids[row * 4 : row * 4 + 4].hex() if odd is None else odd


def _object(raw: bytes) -> dict[str, object] | None:
    try:
        stored = decode(raw)
    except Damaged:
        return None
    return stored if isinstance(stored, dict) else None


def _replaced(path: Path, fd: int, lines: list[NewFileLine], scan: Scan, syncs: bool) -> Path:
    """Put the lines in the place of the file; where the old one lies."""
    with failing_as("write_failed", path), temporary_beside(path) as (new_fd, temporary):
        write_all(new_fd, read_exactly(fd, scan.header_offset, scan.header_length) + b"\n")
        for line in lines:
            write_all(new_fd, _bytes_of(line, fd, scan) + b"\n")
        if syncs:
            os.fsync(new_fd)
        refuse_unless_whole(new_fd, lines, scan)
        kept = keep_beside(path, fd)
        temporary.replace(path)
        if syncs:
            sync_folder(path.parent)
    return kept


def _bytes_of(line: NewFileLine, fd: int, scan: Scan) -> bytes:
    if line.raw is not None or line.row is None:
        return line.raw or b""
    return read_exactly(fd, scan.offsets[line.row], scan.lengths[line.row])


def refuse_unless_whole(fd: int, lines: Sequence[NewFileLine], before: Scan) -> None:
    """Raise Damaged `repair_failed` unless every entry is where it was and none is new."""
    after, _ = scan_file(fd, Scanner(), 0, os.fstat(fd).st_size)
    row_of = {row: place for place, row in enumerate(line.row for line in lines) if row is not None}
    whole = len(after.offsets) == len(lines) and not after.columns.shadowed
    for old, new in row_of.items() if whole else ():
        parent = before.columns.parents[old]
        whole = whole and id_in(before, old) == id_in(after, new)
        whole = whole and after.columns.parents[new] == (-1 if parent < 0 else row_of[parent])
    if not whole:
        raise Damaged("repair_failed", "the repaired file is not what it should be")
