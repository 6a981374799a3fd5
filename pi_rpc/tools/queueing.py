"""Turns at files: whoever changes a file does so alone, in the order of asking.

Promises
- Calls that name one file, by whatever name, run one after the other, first come, first served.
- Calls that name different files do not wait for each other.
- A turn that was waited for in vain (the waiter was cancelled) blocks nobody.

The queues are those of this process; another process is noticed by the check before replacing.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from pi_rpc.tools.paths import resolved


class FileTurns:
    """One queue for each file somebody is changing or waits to change."""

    def __init__(self) -> None:
        self._door = anyio.Lock()
        self._queues: dict[str, _Queue] = {}

    @property
    def queue_count(self) -> int:
        """How many files somebody is changing or waits to change."""
        return len(self._queues)

    @asynccontextmanager
    async def turn_at(self, given: str, cwd: Path) -> AsyncIterator[Path]:
        """Wait for a turn at a file; yields the path its name means. Raises Invalid `bad_path`."""
        # Looking a name up takes a thread, and threads overtake each other. The door keeps the
        # order of asking until everybody stands in the right queue.
        async with self._door:
            path = await anyio.to_thread.run_sync(resolved, given, cwd)
            key = await anyio.to_thread.run_sync(os.path.realpath, path)
            queue = self._queues.setdefault(key, _Queue())
            queue.people += 1
        try:
            # Nothing is awaited between leaving the door and joining the queue, so the order holds.
            async with queue.lock:
                yield path
        finally:
            queue.people -= 1
            if not queue.people:
                del self._queues[key]


class _Queue:
    def __init__(self) -> None:
        self.people = 0
        self.lock = anyio.Lock()


TURNS = FileTurns()
"""The one set of queues of this process: sessions share files."""
