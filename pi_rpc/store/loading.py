"""Reading a session file into rows, by its index where there is one. All of it blocks."""

import os
from array import array
from contextlib import suppress
from pathlib import Path

import msgspec

from pi_rpc.core.codec import decode, encode, header_from_object
from pi_rpc.core.entries import FORMAT_VERSION, Header
from pi_rpc.core.errors import Damaged, Invalid
from pi_rpc.core.events import Diagnostic
from pi_rpc.core.heads import Heads
from pi_rpc.core.meter import Meter
from pi_rpc.core.ports.clock import Ids
from pi_rpc.core.scanner import DIAGNOSTICS_MAX, Scan, Scanner
from pi_rpc.store.disk import failing_as, open_regular, read_exactly, scan_file, write_all
from pi_rpc.store.index import Index, read_index, write_index
from pi_rpc.store.memory import MemorySession
from pi_rpc.store.migration import migrate_file, migrated_lines, version_of

INDEX_BYTES_MIN = 1 << 20
"""A smaller file is scanned in a few milliseconds and needs no second file beside it."""


class Rows(msgspec.Struct):
    """What memory holds of every entry."""

    heads: Heads
    offsets: "array[int]"
    lengths: "array[int]"


class Loaded(msgspec.Struct):
    """An open session file and what is known of it."""

    path: Path
    """The name of the file itself, symbolic links resolved."""
    fd: int
    header: Header
    rows: Rows | None
    """None while they are given up."""
    size: int
    """Bytes looked at or written here; anything more is somebody else's."""
    scanned: int
    """Where looking goes on when there is more: `size`, or the beginning of a torn line."""
    lines: int
    """Lines before `scanned`."""
    header_offset: int
    header_length: int
    ended: bool
    """Whether the last byte is a newline."""
    has_orphans: bool = False
    indexed: int = 0
    """How much of the file its index covers."""
    diagnostics: list[Diagnostic] = []
    checksum: int = 0
    """Of the heads that were given up."""
    lost: tuple[int, int] | None = None
    """Size and time of the file when it was found not to hold them any more."""

    @property
    def held(self) -> Rows:
        """The rows; read again where they were given up. Raises as `rows_again` does."""
        if self.rows is None:
            self.rows = rows_again(self)
        return self.rows

    @property
    def heads(self) -> Heads:
        """Id, parent and kind of every row."""
        return self.held.heads

    @property
    def offsets(self) -> "array[int]":
        """Where the line of every row begins."""
        return self.held.offsets

    @property
    def lengths(self) -> "array[int]":
        """How many bytes it has."""
        return self.held.lengths

    def give_up(self) -> bool:
        """Hold the rows no more, where reading anew gives the same ones; whether it was done."""
        # Where a torn line or a missing parent is made out, what came later had a say.
        if not self.ended or self.scanned != self.size or self.has_orphans:
            return False
        self.checksum = self.heads.checksum()
        self.rows = None
        return True

    def take(self, scan: Scan, whole: int, size: int) -> range:
        """Add what a scan up to `size` found; `whole` is where its last whole line ends."""
        rows = self.heads.extend(scan.columns)
        self.offsets.extend(scan.offsets)
        self.lengths.extend(scan.lengths)
        self.has_orphans |= scan.has_orphans
        self.size = size
        self.ended = whole == size
        torn = not self.ended and not scan.tail_is_entry
        self.scanned = whole if torn else size
        self.lines = scan.lines - 1 if torn else scan.lines
        self.diagnostics += scan.diagnostics
        del self.diagnostics[DIAGNOSTICS_MAX + 1 :]
        return rows

    def write_index(self) -> None:
        """Bring the index beside the file up to date, where one is worth it."""
        if not self.ended or self.size < INDEX_BYTES_MIN or self.indexed == self.size:
            return
        index = Index(
            columns=self.heads.columns(),
            offsets=self.offsets,
            lengths=self.lengths,
            covered=self.size,
            lines=self.lines,
            header_offset=self.header_offset,
            header_length=self.header_length,
            has_orphans=self.has_orphans,
            diagnostics=self.diagnostics,
        )
        if write_index(self.path, self.fd, index):
            self.indexed = self.size
        else:
            note = "no index can be written beside the file; opening it takes longer"
            told = Diagnostic("info", "index_unwritable", note, path=str(self.path))
            if told not in self.diagnostics:
                self.diagnostics.append(told)


def load_to_own(
    path: Path, ids: Ids, blank: Header, syncs: bool, meter: Meter | None = None
) -> Loaded:
    """Open a resolved file whose lease is held; an empty one gets the header `blank`.

    A file of an older version is replaced by a migrated one. Raises what `open_regular` and the
    scanner raise, Outside when the disk refuses.
    """
    loaded = _owned(path, blank, syncs, meter)
    version = version_of(loaded.header, loaded.heads)
    if version < FORMAT_VERSION:
        try:
            data = read_exactly(loaded.fd, 0, loaded.size)
            migrate_file(path, loaded.fd, migrated_lines(data, version, ids), version, syncs)
        finally:
            os.close(loaded.fd)
        loaded = _owned(path, blank, syncs, None)
    loaded.write_index()
    return loaded


def _owned(path: Path, blank: Header, syncs: bool, meter: Meter | None) -> Loaded:
    fd = open_regular(path, writable=True)
    try:
        if os.fstat(fd).st_size == 0:
            with failing_as("write_failed", path):
                write_all(fd, header_line(blank))
                if syncs:
                    os.fsync(fd)
        return _load(path, fd, meter)
    except BaseException:
        os.close(fd)
        raise


def load_to_read(path: Path, ids: Ids, meter: Meter | None = None) -> Loaded | MemorySession:
    """Open a resolved file to read; one of an older version is migrated in memory."""
    fd = open_regular(path, writable=False)
    try:
        loaded = _load(path, fd, meter)
        version = version_of(loaded.header, loaded.heads)
        if version >= FORMAT_VERSION:
            return loaded
        lines = migrated_lines(read_exactly(fd, 0, loaded.size), version, ids)
        os.close(fd)
    except BaseException:
        os.close(fd)
        raise
    return _in_memory(lines)


def _in_memory(lines: list[bytes]) -> MemorySession:
    scanner = Scanner()
    data = b"".join(line + b"\n" for line in lines)
    scanner.take(data, len(data))
    scan = scanner.finish(b"")
    assert scan.header is not None
    heads = Heads()
    heads.extend(scan.columns)
    spans = zip(scan.offsets, scan.lengths, strict=True)
    session = MemorySession(scan.header, heads, [data[at : at + size] for at, size in spans])
    session.diagnostics = scan.diagnostics
    session.writable = False
    return session


def rows_again(loaded: Loaded) -> Rows:
    """The rows that were given up; what was appended since is not looked at.

    Raises Damaged `file_replaced` when the file does not hold them any more, Outside.
    """
    path, size = loaded.path, loaded.size
    found: Loaded | None = None
    with failing_as("read_failed", path), suppress(Invalid):
        state = os.fstat(loaded.fd)
        mark = (state.st_size, state.st_mtime_ns)
        # Who asks again and again is not answered by looking through all of it each time.
        if state.st_size >= size and mark != loaded.lost:
            found = _load(path, loaded.fd, size=size)
    if found is None or found.heads.checksum() != loaded.checksum:
        loaded.lost = mark
        raise Damaged("file_replaced", "the file no longer holds what was read", path=str(path))
    return found.held


def _load(path: Path, fd: int, meter: Meter | None = None, size: int | None = None) -> Loaded:
    size = os.fstat(fd).st_size if size is None else size
    meter = Meter() if meter is None else meter
    meter.total = size
    loaded = _from_index(path, fd)
    if loaded is None or loaded.size > size:
        try:
            scan, whole = scan_file(fd, Scanner(careful=False), 0, size, meter=meter)
            if scan.has_orphans:
                # A missing parent may stand behind another record on one line.
                scan, whole = scan_file(fd, Scanner(), 0, size)
        except Invalid as failure:
            failure.data["path"] = str(path)
            raise
        assert scan.header is not None
        loaded = Loaded(
            path=path,
            fd=fd,
            header=scan.header,
            rows=Rows(Heads(), array("Q"), array("I")),
            size=0,
            scanned=0,
            lines=0,
            header_offset=scan.header_offset,
            header_length=scan.header_length,
            ended=True,
        )
        loaded.take(scan, whole, size)
    elif loaded.size < size:
        scan, whole = scan_file(fd, _scanner_on(loaded), loaded.size, size)
        loaded.take(scan, whole, size)
    meter.done = size
    if loaded.header.version < FORMAT_VERSION <= version_of(loaded.header, loaded.heads):
        loaded.header = msgspec.structs.replace(loaded.header, version=FORMAT_VERSION)
    return loaded


def _scanner_on(loaded: Loaded) -> Scanner:
    return Scanner(loaded.heads, loaded.scanned, loaded.lines)


def _from_index(path: Path, fd: int) -> Loaded | None:
    index = read_index(path, fd)
    if index is None:
        return None
    try:
        line = read_exactly(fd, index.header_offset, index.header_length)
        header = header_from_object(decode(line))
    except (Damaged, Invalid):
        return None
    heads = Heads()
    heads.extend(index.columns)
    return Loaded(
        path=path,
        fd=fd,
        header=header,
        rows=Rows(heads, index.offsets, index.lengths),
        size=index.covered,
        scanned=index.covered,
        lines=index.lines,
        header_offset=index.header_offset,
        header_length=index.header_length,
        ended=True,
        has_orphans=index.has_orphans,
        indexed=index.covered,
        diagnostics=index.diagnostics,
    )


def load_more(loaded: Loaded, size: int) -> tuple[Scan, int]:
    """Look at what stands between what is known and `size`; nothing is changed yet."""
    return scan_file(loaded.fd, _scanner_on(loaded), loaded.scanned, size)


def header_line(header: Header) -> bytes:
    """The first line of a file, newline included."""
    return encode(header.as_object()) + b"\n"


def look_into(path: Path, fd: int) -> Loaded:
    """What an open file holds. Raises Invalid `not_a_session`."""
    return _load(path, fd)
