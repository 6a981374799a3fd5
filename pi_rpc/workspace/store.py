"""The folder where versions of one working directory are kept: its lock, and what a crash left.

It lies with the daemon's own data, never inside the working directory. Whoever removes it takes the
versions away and nothing else.
"""

import errno
import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pi_rpc.core.errors import Outside
from pi_rpc.workspace.process import Processes

LOCK_POLL_S = 0.01
TEMPORARY_PREFIX = b".pi-rpc-"
TEMPORARY_SUFFIX = b".tmp"


def home_of(root: Path, folder: Path) -> Path:
    """Where the versions of a resolved folder lie below `root`."""
    name = "".join(one if one.isascii() and one.isalnum() else "-" for one in folder.name)[:40]
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    return root / f"{name or 'root'}-{digest}"


@contextmanager
def locked(home: Path, processes: Processes) -> Iterator[None]:
    """Hold a store against other sessions and other daemons; waits as long as the act may.

    Raises Outside `store_broken` where it cannot be made, Stopped when the act is given up.
    """
    with store_failures(home):
        # Parents made along the way would be open to others.
        for folder in (*reversed(home.parents), home):
            folder.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(home / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while not _lock(descriptor):
            processes.check()
            time.sleep(LOCK_POLL_S)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise Outside("store_broken", f"cannot lock: {error}", retryable=True) from error
    return True


@contextmanager
def store_failures(home: Path) -> Iterator[None]:
    """Turn what the system refuses about the store into a failure."""
    try:
        yield
    except OSError as error:
        raise Outside(
            "store_broken", f"the versions in {home}: {error}", retryable=True, path=str(home)
        ) from error


class Journal:
    """Temporary files being written into the working directory, so that none outlives a crash."""

    def __init__(self, home: Path) -> None:
        self._path = home / "unfinished"

    def begin(self, temporary: bytes) -> None:
        """Note a temporary file before it is made."""
        with self._path.open("ab") as file:
            file.write(temporary + b"\0")

    def clear(self) -> None:
        """Remove what an earlier act left behind, and forget it."""
        try:
            noted = self._path.read_bytes()
        except FileNotFoundError:
            return
        for temporary in noted.split(b"\0")[:-1]:
            name = temporary.rpartition(b"/")[2]
            # Only what bears our mark: a damaged journal must not name anything else.
            if name.startswith(TEMPORARY_PREFIX) and name.endswith(TEMPORARY_SUFFIX):
                with suppress(OSError):
                    os.unlink(temporary)  # noqa: PTH108
        self._path.unlink(missing_ok=True)
