"""Beginnings of files that anybody may have put there: never waited for, never read without end."""

import os
import stat
from pathlib import Path


def head_of(path: Path, bytes_max: int) -> bytes:
    """The first bytes of a regular file. Raises OSError, also for pipes, devices and folders."""
    # A pipe with nobody at its other end would keep an open waiting for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"not a regular file: {path}")
        # A regular file gives all that was asked for, or all it has.
        return os.read(descriptor, bytes_max)
    finally:
        os.close(descriptor)
