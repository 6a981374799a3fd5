"""Files read and replaced whole, and what the system says turned into failures.

Promises
- A replaced file is the old one or the new one, never a part of it; its mode stays, and a symlink
  goes on pointing to it.
- Only regular files are read or replaced: devices and pipes could block for ever or be destroyed.
"""

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pi_rpc.core.errors import Failure, Missing, Outside, Overfull, Refused

READ_BYTES_MAX = 64 * 1024 * 1024
"""Largest file that is taken into memory whole."""

_CHUNK_BYTES = 256 * 1024
_FULL = {errno.ENOSPC, errno.EDQUOT}


def failure_from_os(error: OSError, path: Path | str) -> Failure:
    """What the system refused, as a failure a caller can act on."""
    said = error.strerror or str(error)
    message = f"{path}: {said}"
    data = {"path": str(path), "errno": errno.errorcode.get(error.errno or 0, "")}
    match error:
        case FileNotFoundError():
            return Missing("file_not_found", message, **data)
        case IsADirectoryError():
            return Refused("is_a_directory", message, **data)
        case NotADirectoryError():
            return Refused("not_a_directory", message, **data)
        case PermissionError():
            return Refused("permission_denied", message, **data)
    if error.errno in _FULL:
        return Outside("disk_full", message, retryable=True, **data)
    return Outside("file_failed", message, retryable=False, **data)


@contextmanager
def system_failures(path: Path | str) -> Iterator[None]:
    """Turn what the system refuses inside into a failure naming the path."""
    try:
        yield
    except OSError as error:
        raise failure_from_os(error, path) from error


def opened_to_read(path: Path) -> int:
    """A descriptor of a regular file. Raises Missing, Refused (`is_a_directory`, `not_a_file`)."""
    # Without O_NONBLOCK, opening a pipe that nobody writes to would never return.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        _require_regular(os.fstat(descriptor), path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def chunks_of(descriptor: int, size_bytes_max: int = READ_BYTES_MAX) -> Iterator[bytes]:
    """The bytes of an open file, as many as it had when asked first.

    A file that says it is empty is read to its end, for so do those of /proc. Raises Overfull
    `file_too_large` when that end does not come.
    """
    left = os.fstat(descriptor).st_size
    frozen = left > 0
    left = left if frozen else size_bytes_max
    while left:
        chunk = os.read(descriptor, min(_CHUNK_BYTES, left))
        if not chunk:
            return
        left -= len(chunk)
        yield chunk
    if not frozen and os.read(descriptor, 1):
        raise Overfull("file_too_large", "The file does not end.", limitBytes=size_bytes_max)


def bytes_of(path: Path, size_bytes_max: int = READ_BYTES_MAX) -> bytes:
    """A whole file. Raises Overfull `file_too_large` beyond the limit, and as `opened_to_read`."""
    with system_failures(path):
        descriptor = opened_to_read(path)
        try:
            size = os.fstat(descriptor).st_size
            if size > size_bytes_max:
                raise Overfull(
                    "file_too_large",
                    f"{path}: {size} bytes are too many to take in at once.",
                    path=str(path),
                    limitBytes=size_bytes_max,
                )
            return b"".join(chunks_of(descriptor, size_bytes_max))
        finally:
            os.close(descriptor)


def sha256_of(path: Path) -> str:
    """The hash of a file of any size, in hexadecimal."""
    with system_failures(path):
        descriptor = opened_to_read(path)
        try:
            digest = hashlib.sha256()
            for chunk in chunks_of(descriptor):
                digest.update(chunk)
            return digest.hexdigest()
        finally:
            os.close(descriptor)


def replaced(path: Path, content: bytes, expected: bytes | None = None) -> None:
    """Put `content` where `path` points to, at once; a new file gets the folders it needs.

    With `expected`, Refused `file_changed` when the file no longer holds those bytes. Also raises
    Refused (`is_a_directory`, `not_a_file`, `permission_denied`) and Outside (`disk_full`,
    `file_failed`).
    """
    target = Path(os.path.realpath(path))
    with system_failures(path):
        before = _status_of(target)
        if before is None:
            target.parent.mkdir(parents=True, exist_ok=True)
        else:
            _require_regular(before, target)
            if not os.access(target, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        temporary = target.parent / f".pi-rpc-{secrets.token_hex(8)}.tmp"
        try:
            _write_new(temporary, content, before)
            if expected is not None and bytes_of(target) != expected:
                raise Refused(
                    "file_changed",
                    f"{path} was changed by another program meanwhile; read it again.",
                    path=str(path),
                )
            # pathlib's replace would do as well; both are rename(2).
            temporary.replace(target)
        except BaseException:
            with suppress(FileNotFoundError):
                temporary.unlink()
            raise


def _write_new(path: Path, content: bytes, like: os.stat_result | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    # A new file is left to the umask; one that replaces another stays closed until it is whole.
    descriptor = os.open(path, flags, 0o666 if like is None else 0o600)
    try:
        if like is not None:
            with suppress(PermissionError):
                # Only the superuser may give files away; for everybody else the writer owns it.
                os.fchown(descriptor, like.st_uid, like.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _status_of(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _require_regular(status: os.stat_result, path: Path) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise Refused("is_a_directory", f"{path}: is a directory", path=str(path))
    if not stat.S_ISREG(status.st_mode):
        raise Refused("not_a_file", f"{path}: is not a regular file", path=str(path))


def require_folder(path: Path) -> None:
    """Raises Missing `file_not_found`, Refused `not_a_directory`."""
    with system_failures(path):
        if not stat.S_ISDIR(path.stat().st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))


def shown_name(name: str) -> str:
    """A name of the disk as text; one that is no UTF-8 is shown as well as it can be."""
    return shown_bytes(os.fsencode(name))


def shown_bytes(raw: bytes) -> str:
    """Bytes as text, as well as they can be shown."""
    return raw.decode("utf-8", "replace")
