"""What the store asks of the file system, with failures in our own words.

All of it blocks, and is called from worker threads but for single reads and writes of an entry.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pi_rpc.core.errors import Damaged, Invalid, Missing, Outside
from pi_rpc.core.meter import Meter
from pi_rpc.core.scanner import Scan, Scanner

BLOCK_BYTES = 1 << 18
"""Larger blocks are no faster."""

LINE_BYTES_MAX = 256 << 20
"""A longer line is no entry anybody wrote, and reading it would take everybody's memory."""

FILE_MODE = 0o600
FOLDER_MODE = 0o700
"""Histories hold what was read and said; they are nobody else's."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def lexical(path: str | Path) -> str:
    """A path made absolute without a look at the disk: `~` and `..` go, symbolic links stay.

    Raises Missing `session_not_found` for what can be no path.
    """
    text = os.fspath(path)
    if "\0" in text:
        raise Missing("session_not_found", "no file has such a name")
    if text == "~" or text.startswith("~/"):
        text = f"{Path.home()}{text[1:]}"
    return os.path.normpath(Path(text).absolute())


def resolved(path: str | Path) -> Path:
    """The file a name leads to, symbolic links followed."""
    return Path(os.path.realpath(lexical(path)))


def outside(error: OSError, reason: str, path: Path | None = None) -> Outside:
    """The failure of a system call; a full disk is always told as `disk_full`."""
    full = error.errno in _FULL
    return Outside(
        "disk_full" if full else reason,
        f"{error.strerror or error}" + (f": {path}" if path else ""),
        errno=errno.errorcode.get(error.errno or 0, str(error.errno)),
        path=str(path) if path else None,
        retryable=full,
    )


@contextmanager
def failing_as(reason: str, path: Path | None = None) -> Iterator[None]:
    """Turn a failing system call inside into Outside with this reason."""
    try:
        yield
    except OSError as error:
        raise outside(error, reason, path) from error


def open_regular(path: Path, writable: bool) -> int:
    """A descriptor of a regular file, without waiting for anybody and without creating anything.

    Raises Missing `session_not_found`, Invalid `not_a_session` for a folder, device or pipe.
    """
    access = os.O_RDWR | os.O_APPEND if writable else os.O_RDONLY
    # A pipe with nobody at its other end would keep an open waiting for ever.
    flags = access | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise Invalid("not_a_session", "not a regular file", path=str(path))
        fd = os.open(path, flags)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Missing("session_not_found", f"no such file: {path}", path=str(path)) from error
    except OSError as error:
        raise outside(error, "open_failed", path) from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Invalid("not_a_session", "not a regular file", path=str(path))
    return fd


def read_exactly(fd: int, offset: int, length: int) -> bytes:
    """The bytes at a place. Raises Outside `read_failed` when they are not all there."""
    # Asked for every line, so without a context manager around each.
    try:
        data = os.pread(fd, length, offset)
        while len(data) < length:
            more = os.pread(fd, length - len(data), offset + len(data))
            if not more:
                raise Outside("read_failed", "the file is shorter than it was", retryable=False)
            data += more
    except OSError as error:
        raise outside(error, "read_failed", None) from error
    return data


def write_all(fd: int, data: bytes) -> None:
    """Write everything, in one call where the system lets it."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def scan_file(
    fd: int,
    scanner: Scanner,
    start: int,
    stop: int,
    *,
    line_bytes_max: int = LINE_BYTES_MAX,
    meter: Meter | None = None,
) -> tuple[Scan, int]:
    """Feed bytes start..stop-1 to a scanner; what it found, and where the last whole line ends.

    Raises Damaged `line_too_long`, Outside `read_failed`, and what the scanner raises.
    """
    buffer = bytearray(BLOCK_BYTES)
    filled, position = 0, start
    while position < stop:
        if filled == len(buffer):
            if filled >= line_bytes_max:
                at = position - filled
                raise Damaged("line_too_long", offset=at, limitBytes=line_bytes_max)
            buffer = buffer + bytearray(len(buffer))
        room = min(len(buffer) - filled, stop - position)
        with failing_as("read_failed"), memoryview(buffer) as view:
            count = os.preadv(fd, [view[filled : filled + room]], position)
        if not count:
            break
        filled += count
        position += count
        taken = scanner.take(buffer, filled)
        buffer[: filled - taken] = buffer[taken:filled]
        filled -= taken
        if meter is not None:
            meter.done = position
    return scanner.finish(bytes(buffer[:filled])), position - filled


def copy_bytes(source_fd: int, target_fd: int, start: int, stop: int) -> None:
    """Copy bytes start..stop-1 to where the target stands, within the kernel if it can."""
    while start < stop and hasattr(os, "copy_file_range"):
        try:
            count = os.copy_file_range(source_fd, target_fd, stop - start, start)
        except OSError as error:
            if error.errno in _FULL:
                raise
            break
        if not count:
            break
        start += count
    while start < stop:
        data = os.pread(source_fd, min(BLOCK_BYTES, stop - start), start)
        if not data:
            raise Outside("read_failed", "the file is shorter than it was", retryable=False)
        write_all(target_fd, data)
        start += len(data)


def sync_data(fd: int) -> None:
    """Everything written to an open file is on the disk when this returns."""
    # Not every system knows how to leave a file's times behind.
    if hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        os.fsync(fd)


def sync_folder(folder: Path) -> None:
    """Make names in a folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def publish(temporary: Path, target: Path) -> None:
    """Give a finished file its name, unless that is taken. Raises FileExistsError then."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError:
        # Some file systems have no links. The name is taken first, so that nothing is replaced.
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE))
        try:
            temporary.rename(target)
        except OSError:
            target.unlink()
            raise
        return
    temporary.unlink()


@contextmanager
def temporary_beside(target: Path) -> Iterator[tuple[int, Path]]:
    """A new empty file in the folder of `target`, removed unless it was renamed inside."""
    name = f".{target.name[:200]}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
    temporary = target.with_name(name)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(temporary, flags, FILE_MODE)
    try:
        yield fd, temporary
    finally:
        os.close(fd)
        with suppress(FileNotFoundError):
            temporary.unlink()


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, for the user alone."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        with suppress(FileExistsError):
            each.mkdir(FOLDER_MODE)
