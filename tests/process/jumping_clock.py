"""pi-rpc under a wall clock that a test moves while it runs.

    SOAK_CLOCK=FILE python -m tests.process.jumping_clock [FLAGS OF pi-rpc]

FILE holds eight bytes: by how many nanoseconds the clock is wrong. The clock that only counts on
stays as it is, and so does what the kernel writes on files, as when a machine's time is set.
"""

import mmap
import os
import runpy
import struct
import time
from pathlib import Path

CLOCK = "SOAK_CLOCK"


def set_clock(path: Path, off_ns: int) -> None:
    """Move the clock of whoever runs under this file."""
    with path.open("r+b" if path.exists() else "w+b") as file:
        file.write(struct.pack("=q", off_ns))


def _move_clock() -> None:
    with Path(os.environ[CLOCK]).open("rb") as file:
        shared = mmap.mmap(file.fileno(), 8, prot=mmap.PROT_READ)
    true_ns = time.time_ns

    def time_ns() -> int:
        return true_ns() + int(struct.unpack_from("=q", shared)[0])

    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9


if __name__ == "__main__":
    _move_clock()
    runpy.run_module("pi_rpc", run_name="__main__", alter_sys=True)
