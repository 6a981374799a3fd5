"""Syncs of open files, in threads of their own.

A loop that calls tools waits for one with every entry. The usual way into a thread and back costs
about as much as a sync itself; this one does nothing beside it.

Promises
- A sync that has begun is waited for, whatever is cancelled meanwhile.
- Files are synced side by side, as many at once as there are threads.
"""

import asyncio
import threading
import weakref
from contextlib import suppress
from queue import SimpleQueue

import anyio

from pi_rpc.store.disk import sync_data

THREADS_MAX = 4
"""Syncs that go on at once; more threads would wait for the same disk."""

_Work = tuple[int, asyncio.AbstractEventLoop, asyncio.Future[None]]


class Syncs:
    """Whoever syncs; its threads are started as they are needed and end with it."""

    def __init__(self, threads_max: int = THREADS_MAX) -> None:
        self._threads_max = threads_max
        self._threads = 0
        self._waiting = 0
        self._work: SimpleQueue[_Work | None] = SimpleQueue()

    async def sync(self, fd: int) -> None:
        """Everything written to an open file is on the disk when this returns. Raises OSError."""
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        self._waiting += 1
        if self._threads < min(self._waiting, self._threads_max):
            self._start()
        self._work.put((fd, loop, done))
        try:
            with anyio.CancelScope(shield=True):
                await done
        finally:
            self._waiting -= 1

    def _start(self) -> None:
        self._threads += 1
        thread = threading.Thread(target=_work, args=(self._work,), name="syncs", daemon=True)
        thread.start()
        # The thread knows the queue alone, so that nobody is kept by it.
        weakref.finalize(self, self._work.put, None).atexit = False


def _work(work: SimpleQueue[_Work | None]) -> None:
    while (one := work.get()) is not None:
        fd, loop, done = one
        failure: OSError | None = None
        try:
            sync_data(fd)
        except OSError as error:
            failure = error
        # A loop that is closed has no use for the outcome.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_tell, done, failure)
        del one, done, failure


def _tell(done: asyncio.Future[None], failure: OSError | None) -> None:
    if done.done():
        return
    if failure is None:
        done.set_result(None)
    else:
        done.set_exception(failure)
