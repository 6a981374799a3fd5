"""How far a file was read, so that only what is new in it need be read; and its lines from there.

A file that was read is known by its identity, size and time, and by its first and last bytes then:
one that only grew is read on, any other is read again from its beginning.
"""

import os
from collections.abc import Iterator

import msgspec

from pi_rpc.core.errors import Damaged
from pi_rpc.store.disk import BLOCK_BYTES, LINE_BYTES_MAX
from pi_rpc.store.index import window_digests


class FileMark(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a file was when it was read, and how much of it was."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    covered: int
    """Bytes that were read for good; what follows was no whole line yet."""
    first: str
    last: str
    """Digests of the first and of the last bytes of what is covered."""

    def is_of(self, state: os.stat_result) -> bool:
        """Whether a file is still as it was."""
        mine = (self.device, self.inode, self.size, self.mtime_ns)
        return mine == (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)


def mark_of(fd: int, state: os.stat_result, covered: int) -> FileMark:
    """The mark of an open file of which so much was read."""
    first, last = window_digests(fd, covered)
    return FileMark(
        state.st_dev,
        state.st_ino,
        state.st_size,
        state.st_mtime_ns,
        covered,
        first.hex(),
        last.hex(),
    )


def starts_as(fd: int, state: os.stat_result, mark: FileMark) -> bool:
    """Whether an open file is the one that was read, as it was or with more behind it."""
    if mark.is_of(state):
        return True
    if (state.st_dev, state.st_ino) != (mark.device, mark.inode) or state.st_size <= mark.size:
        return False
    first, last = window_digests(fd, mark.covered)
    return (first.hex(), last.hex()) == (mark.first, mark.last)


def chunks_from(fd: int, offset: int, buffer: bytearray) -> Iterator[tuple[bytearray, int]]:
    """Whole lines from `offset` on, many at a time, as a buffer and where in it the last one ends.

    At the end what follows the last newline, which is no line yet. `buffer` is where it is read
    to, again and again: what is wanted of it must be copied before going on. Raises Damaged
    `line_too_long`, OSError.
    """
    filled = 0
    while True:
        if filled == len(buffer):
            buffer = buffer + bytearray(len(buffer))
        with memoryview(buffer) as view:
            count = os.preadv(fd, [view[filled:]], offset + filled)
        if not count:
            break
        end = buffer.rfind(b"\n", filled, filled + count) + 1
        filled += count
        if filled - end > LINE_BYTES_MAX:
            raise Damaged("line_too_long", offset=offset + end, limitBytes=LINE_BYTES_MAX)
        if end:
            yield buffer, end
            buffer[: filled - end] = buffer[end:filled]
            offset += end
            filled -= end
    yield buffer, filled


def blocks_from(fd: int, offset: int) -> Iterator[tuple[list[bytes], bytes | None]]:
    """Whole lines from `offset` on, a block at a time; at the end what follows the last newline.

    Raises Damaged `line_too_long`, OSError.
    """
    rest = b""
    for block, end in chunks_from(fd, offset, bytearray(BLOCK_BYTES)):
        *lines, rest = bytes(memoryview(block)[:end]).split(b"\n")
        if lines:
            yield lines, None
    yield [], rest
