"""One writer for each session, with its owner's name.

The lease is a lock the kernel holds on a small file beside the session and gives up when its
process ends, however it ends. The file says who holds it, for the message the second one gets.

Promises
- The lock belongs to the resolved file, so a symbolic link is no second door.
- Two openings in one process exclude each other like two processes.
- The lease of a dead process is free.
"""

import fcntl
import os
import socket
from contextlib import suppress
from pathlib import Path

import msgspec

from pi_rpc.core.errors import Locked, Outside
from pi_rpc.core.stamps import iso_from_ms
from pi_rpc.store.disk import FILE_MODE, failing_as

_BODY_BYTES_MAX = 4096
_TRIES_MAX = 100


def lock_path(path: Path) -> Path:
    """The lock file of a session file; no lister takes it for a session."""
    return path.with_name(f".{path.name}.lock")


class Lease:
    """The right to write one session, held until it is released."""

    def __init__(self, fd: int, path: Path) -> None:
        self._fd = fd
        self._path = path

    @classmethod
    def take(cls, session_file: Path) -> "Lease":
        """Take the lease of a resolved session file.

        Raises Locked `session_locked` with the owner, Outside `lock_failed` where none can be made.
        """
        path = lock_path(session_file)
        for _ in range(_TRIES_MAX):
            with failing_as("lock_failed", path):
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
                fd = os.open(path, flags, FILE_MODE)
            try:
                if cls._lock(fd, path):
                    return cls(fd, path)
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)
        raise Outside("lock_failed", f"the lock file does not stay: {path}", retryable=True)

    @staticmethod
    def _lock(fd: int, path: Path) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Locked("session_locked", _told(fd), owner=_owner(fd)) from error
        except OSError as error:
            with failing_as("lock_failed", path):
                raise error
        # The owner before us removes the file as it leaves; a lock on a file that has lost its name
        # would keep nobody out.
        if not _is_named(fd, path):
            return False
        # The lock is the promise and the name only a courtesy: a full disk has no room for it.
        with suppress(OSError):
            os.ftruncate(fd, 0)
            body = {"pid": os.getpid(), "host": socket.gethostname()}
            os.pwrite(fd, msgspec.json.encode(body), 0)
        return True

    def release(self) -> None:
        """Give the lease up; calling it again does nothing."""
        if self._fd < 0:
            return
        with suppress(OSError):
            if _is_named(self._fd, self._path):
                self._path.unlink()
        os.close(self._fd)
        self._fd = -1


def _is_named(fd: int, path: Path) -> bool:
    try:
        named = path.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(named, os.fstat(fd))


def _owner(fd: int) -> dict[str, object]:
    try:
        body = msgspec.json.decode(os.pread(fd, _BODY_BYTES_MAX, 0))
        since = iso_from_ms(os.fstat(fd).st_mtime_ns // 1_000_000)
    except (OSError, msgspec.MsgspecError):
        # The owner is about to write its name, or something else left the file behind.
        return {"pid": None, "host": None, "since": None}
    named = body if isinstance(body, dict) else {}
    return {"pid": named.get("pid"), "host": named.get("host"), "since": since}


def _told(fd: int) -> str:
    owner = _owner(fd)
    return f"process {owner['pid']} on {owner['host']} owns the session"
