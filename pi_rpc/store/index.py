"""A derived index beside a session file, so that opening it again needs no look at every line.

It holds offsets, lengths and heads of the rows column by column, and what was odd in the file.
It is a cache: deleting it is harmless, and where it disagrees with the file in anything that is
checked (identity, size, time, first and last bytes, its own checksum, machine order) it is as if it
were not there.
"""

import os
import struct
import sys
import zlib
from array import array
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Literal

import msgspec

from pi_rpc.core.codec import decode, encode
from pi_rpc.core.errors import Damaged
from pi_rpc.core.events import Diagnostic
from pi_rpc.core.heads import Columns
from pi_rpc.store.disk import temporary_beside, write_all

_MAGIC = b"pi-rpc index 2\n\0"
_HEADER = struct.Struct("=16s4sIQQQQqQ16s16s")
"""Magic, byte order, checksum, rows, bytes of the rest, covered bytes, device and inode mixed,
modification time, lines, digest of the file's first and of its last covered bytes."""
_ROW_BYTES = 8 + 4 + 4 + 4 + 1
"""Offset, length, parent, id and kind: a column each, in this order."""
_WINDOW_BYTES = 4096
_ORDER = sys.byteorder.encode()[:4].ljust(4)


class Index(msgspec.Struct, frozen=True):
    """What is known of the first `covered` bytes of a session file, which end with a newline."""

    columns: Columns
    offsets: "array[int]"
    lengths: "array[int]"
    covered: int
    lines: int
    header_offset: int
    header_length: int
    has_orphans: bool
    """A line after `covered` could be a parent of a row here, so a grown file is scanned anew."""
    diagnostics: list[Diagnostic]


class _Rest(msgspec.Struct):
    header: tuple[int, int]
    has_orphans: bool
    odd_ids: list[tuple[int, str]]
    shadowed: list[int]
    diagnostics: list[Diagnostic]


def index_path(session_file: Path) -> Path:
    """Where the index of a session file lies; no lister takes it for a session."""
    return session_file.with_name(f".{session_file.name}.index")


def read_index(session_file: Path, fd: int) -> Index | None:
    """The index of the open session file; None when there is none or it does not fit the file."""
    try:
        stored = index_path(session_file).read_bytes()
        state = os.fstat(fd)
        return _decoded(stored, fd, state)
    except (OSError, Damaged, struct.error, msgspec.MsgspecError, ValueError):
        return None


def _decoded(stored: bytes, fd: int, state: os.stat_result) -> Index | None:
    magic, order, checksum, rows, rest_bytes, covered, file_id, time_ns, lines, first, last = (
        _HEADER.unpack_from(stored)
    )
    begin, end = _HEADER.size, _HEADER.size + rows * _ROW_BYTES
    if (magic, order) != (_MAGIC, _ORDER) or len(stored) != end + rest_bytes:
        return None
    if zlib.crc32(memoryview(stored)[begin:]) != checksum or file_id != _file_id(state):
        return None
    if state.st_size < covered or (state.st_size == covered and state.st_mtime_ns != time_ns):
        return None
    if (first, last) != window_digests(fd, covered):
        return None
    rest = msgspec.convert(decode(stored[end:]), _Rest)
    if rest.has_orphans and state.st_size > covered:
        return None
    table = memoryview(stored)[begin:end]
    lengths_at, parents_at, ids_at, kinds_at = (rows * width for width in (8, 12, 16, 20))
    return Index(
        columns=Columns(
            ids=bytes(table[ids_at:kinds_at]),
            parents=_column("i", table[parents_at:ids_at]),
            kinds=bytes(table[kinds_at:]),
            odd_ids=dict(rest.odd_ids),
            shadowed=frozenset(rest.shadowed),
        ),
        offsets=_column("Q", table[:lengths_at]),
        lengths=_column("I", table[lengths_at:parents_at]),
        covered=covered,
        lines=lines,
        header_offset=rest.header[0],
        header_length=rest.header[1],
        has_orphans=rest.has_orphans,
        diagnostics=rest.diagnostics,
    )


def _column(code: Literal["i", "I", "Q"], stored: memoryview) -> "array[int]":
    column = array(code)
    column.frombytes(stored)
    return column


def write_index(session_file: Path, fd: int, index: Index) -> bool:
    """Write the index, whole or not at all; whether it could be written."""
    rows = len(index.offsets)
    columns = index.columns
    by_row = (index.offsets, index.lengths, columns.parents, columns.ids, columns.kinds)
    rest = encode(
        msgspec.to_builtins(
            _Rest(
                header=(index.header_offset, index.header_length),
                has_orphans=index.has_orphans,
                odd_ids=list(index.columns.odd_ids.items()),
                shadowed=sorted(index.columns.shadowed),
                diagnostics=index.diagnostics,
            )
        )
    )
    body = b"".join((*map(bytes, by_row), rest))
    target = index_path(session_file)
    # Where nothing may be written the next opening takes longer, and that is all.
    with suppress(OSError), temporary_beside(target) as (target_fd, temporary):
        state = os.fstat(fd)
        head = _HEADER.pack(
            _MAGIC,
            _ORDER,
            zlib.crc32(body),
            rows,
            len(rest),
            index.covered,
            _file_id(state),
            state.st_mtime_ns if state.st_size == index.covered else 0,
            index.lines,
            *window_digests(fd, index.covered),
        )
        write_all(target_fd, head + body)
        temporary.replace(target)
        return True
    return False


def _file_id(state: os.stat_result) -> int:
    return (state.st_ino ^ (state.st_dev << 48)) & 0xFFFF_FFFF_FFFF_FFFF


def window_digests(fd: int, covered: int) -> tuple[bytes, bytes]:
    """Digests of the first and of the last of the first `covered` bytes of a file."""
    first = os.pread(fd, min(_WINDOW_BYTES, covered), 0)
    start = max(0, covered - _WINDOW_BYTES)
    last = os.pread(fd, covered - start, start)
    return blake2b(first, digest_size=16).digest(), blake2b(last, digest_size=16).digest()
