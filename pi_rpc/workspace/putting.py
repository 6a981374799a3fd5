"""Single files of the working directory brought into a wanted state, each whole or not at all.

Promises
- A file is replaced or removed only while it is in the state that was expected of it.
- Nothing is written through a symbolic link, and no folder is removed that holds anything.
"""

import hashlib
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pi_rpc.core.errors import Refused
from pi_rpc.workspace.store import TEMPORARY_PREFIX, TEMPORARY_SUFFIX, Journal

LINK_MODE = "120000"
PLAIN_MODE = "100644"
EXECUTABLE_MODE = "100755"

_CHUNK_BYTES = 1024 * 1024

Hash = Callable[[int], "hashlib._Hash"]
"""A digest to be fed with a file of so many bytes."""


def mode_of(status: os.stat_result) -> str | None:
    """The mode a version gives this file; None for what versions do not hold."""
    if stat.S_ISLNK(status.st_mode):
        return LINK_MODE
    if not stat.S_ISREG(status.st_mode):
        return None
    return EXECUTABLE_MODE if status.st_mode & 0o100 else PLAIN_MODE


def state_of(path: bytes, digest: Hash) -> str | None:
    """The state of a path as versions name it, `mode:hash`; None when nothing is there.

    Another thing than a file or link is the state `other`.
    """
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    mode = mode_of(status)
    if mode is None:
        return "other"
    if mode == LINK_MODE:
        target = os.readlink(path)  # noqa: PTH115
        summed = digest(len(target))
        summed.update(target)
        return f"{mode}:{summed.hexdigest()}"
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        summed = digest(os.fstat(descriptor).st_size)
        while chunk := os.read(descriptor, _CHUNK_BYTES):
            summed.update(chunk)
    finally:
        os.close(descriptor)
    return f"{mode}:{summed.hexdigest()}"


class Putting:
    """Files below one folder."""

    def __init__(self, folder: Path, journal: Journal, digest: Hash) -> None:
        self._folder = os.fsencode(folder)
        self._journal = journal
        self._digest = digest

    def _path(self, name: bytes) -> bytes:
        return self._folder + b"/" + name

    def remove(self, name: bytes, expected: str | None) -> None:
        """Remove a file in the expected state, and folders that are empty then.

        Raises Refused (`changed_meanwhile`, `in_the_way`), OSError.
        """
        self._require_real_folders(name)
        path = self._path(name)
        self._require(path, expected)
        if expected is not None:
            os.unlink(path)  # noqa: PTH108
        parent = os.path.dirname(path)  # noqa: PTH120
        while len(parent) > len(self._folder):
            try:
                os.rmdir(parent)  # noqa: PTH106
            except OSError:
                return
            parent = os.path.dirname(parent)  # noqa: PTH120

    def put(self, name: bytes, expected: str | None, mode: str, content: bytes) -> None:
        """Put a file in place of one in the expected state. Raises as `remove` does."""
        self._require_real_folders(name)
        path = self._path(name)
        parent = os.path.dirname(path)  # noqa: PTH120
        os.makedirs(parent, exist_ok=True)  # noqa: PTH103
        temporary = b"%s/%s%s%s" % (
            parent,
            TEMPORARY_PREFIX,
            secrets.token_hex(8).encode(),
            TEMPORARY_SUFFIX,
        )
        self._journal.begin(temporary)
        try:
            self._write(temporary, path, mode, content)
            if expected is None and _is_folder(path):
                # Only an empty one gives way; rmdir refuses any other.
                with suppress(OSError):
                    os.rmdir(path)  # noqa: PTH106
            self._require(path, expected)
            os.replace(temporary, path)  # noqa: PTH105
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary)  # noqa: PTH108
            raise

    def _write(self, temporary: bytes, path: bytes, mode: str, content: bytes) -> None:
        if mode == LINK_MODE:
            os.symlink(content, temporary)  # noqa: PTH211
            return
        bits = 0o777 if mode == EXECUTABLE_MODE else 0o666
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, bits)
        try:
            with suppress(FileNotFoundError):
                before = os.lstat(path)
                if stat.S_ISREG(before.st_mode):
                    os.fchmod(descriptor, _permissions(before.st_mode, mode))
            left = memoryview(content)
            while left:
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _require(self, path: bytes, expected: str | None) -> None:
        actual = state_of(path, self._digest)
        if actual != expected:
            if actual == "other":
                raise Refused("in_the_way", "something else is there")
            raise Refused("changed_meanwhile", "it is not what was expected any more")

    def _require_real_folders(self, name: bytes) -> None:
        path = self._folder
        for part in name.split(b"/")[:-1]:
            path += b"/" + part
            try:
                status = os.lstat(path)
            except FileNotFoundError:
                return
            if not stat.S_ISDIR(status.st_mode):
                raise Refused("in_the_way", "the way leads over what is no folder")


def _permissions(before: int, mode: str) -> int:
    """The permissions of the file that is replaced, with its right to be run as wanted."""
    bits = stat.S_IMODE(before)
    if mode != EXECUTABLE_MODE:
        return bits & ~0o111
    return bits if bits & 0o100 else bits | (bits & 0o444) >> 2


def _is_folder(path: bytes) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False
