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


class FileMark(msgspec.Struct, frozen=True, array_like=True):
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


def blocks_from(fd: int, offset: int) -> Iterator[tuple[list[bytes], bytes | None]]:
    """Whole lines from `offset` on, a block at a time; at the end what follows the last newline.

    Raises Damaged `line_too_long`, OSError.
    """
    rest = b""
    while block := os.pread(fd, BLOCK_BYTES, offset + len(rest)):
        *lines, rest = (rest + block).split(b"\n")
        offset += sum(map(len, lines)) + len(lines)
        if len(rest) > LINE_BYTES_MAX:
            raise Damaged("line_too_long", offset=offset, limitBytes=LINE_BYTES_MAX)
        yield lines, None
    yield [], rest
