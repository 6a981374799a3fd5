"""The one writer: what goes out, in order, bounded, with slow readers felt.

Promises
- Bytes leave in the order they were put; what one turn of the loop puts leaves in one write.
- Putting never waits. Whoever produces much looks at `is_pressed` and waits for `wait_until_free`.
- A reader that is gone is told once, by `is_broken`; from then on nothing is written or kept. It
  is noticed at once where the system tells of it, else by the next write.
- The open file description behind standard output, which others may share, keeps its flags.
"""

import asyncio
import contextlib
import errno
import os
import queue
import select
import socket
import stat
import threading
from collections.abc import Callable
from typing import Protocol

import anyio

from pi_rpc.wire.descriptors import wait_until_ready

LIMIT_BYTES = 4 * 1024 * 1024
"""Above this much unread output, nothing more is read and producers wait."""
LOW_MARK_BYTES = 256 * 1024
"""Above this much, producers should merge what they can; below it, whoever waited goes on."""
_THREAD_WRITE_BYTES = 256 * 1024


class Sink(Protocol):
    """Where bytes leave the process."""

    def write(self, data: bytearray) -> int:
        """Take bytes from the front of `data` and say how many; 0 when none go now.

        After a 0 the next call has the same bytes in front. Raises OSError when none will ever go.
        """

    def when_writable(self, ready: Callable[[], None]) -> None:
        """Call `ready` once, as soon as another `write` makes sense."""

    def when_gone(self, gone: Callable[[], None]) -> None:
        """Call `gone` once when the reader is seen to have left, if that can be seen."""

    def close(self) -> None:
        """Let go of the descriptor."""


class Outbox:
    """Bytes on their way out. To be made and used inside the running loop."""

    def __init__(
        self, sink: Sink, limit_bytes: int = LIMIT_BYTES, low_mark_bytes: int = LOW_MARK_BYTES
    ) -> None:
        self.limit_bytes = limit_bytes
        self.low_mark_bytes = min(low_mark_bytes, limit_bytes)
        self.failure: OSError | None = None
        """Why the outbox is broken."""
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self._held = bytearray()
        self._is_write_due = False
        """Holds: true while something is sure to call `_write`: the loop, the sink or a holder."""
        self._is_blocked = False
        """Holds: true while the sink has been asked to say when it can take more."""
        self._is_closed = False
        # Made by the first who waits: most outboxes are never waited for.
        self._freed: anyio.Event | None = None
        self._emptied: anyio.Event | None = None
        self._broke = anyio.Event()
        self._when_free: list[Callable[[], None]] = []
        self._when_broken: list[Callable[[], None]] = []
        sink.when_gone(self._reader_left)

    @property
    def held_bytes(self) -> int:
        """How much is waiting."""
        return len(self._held)

    @property
    def is_pressed(self) -> bool:
        """Whether the reader lags: merge what can be merged."""
        return len(self._held) > self.low_mark_bytes

    @property
    def is_full(self) -> bool:
        """Whether to produce nothing more until `wait_until_free` returns."""
        return len(self._held) > self.limit_bytes

    @property
    def is_broken(self) -> bool:
        """Whether the reader is gone, so that nothing can be written any more."""
        return self.failure is not None

    def put(self, data: bytes) -> None:
        """Append `data`. When broken or closed it goes nowhere, for nobody is there to read it."""
        if self._is_closed or self.failure is not None:
            return
        self._held += data
        if not self._is_write_due:
            self._is_write_due = True
            self._loop.call_soon(self._write)

    def hold(self) -> None:
        """Gather what is put from here to `release`, which writes it at once. Not across a wait."""
        self._is_write_due = True

    def release(self) -> None:
        """Write what was gathered, sparing the turn of the loop that `put` alone would wait for."""
        if not self._is_blocked:
            self._write()

    def when_free(self, go_on: Callable[[], None]) -> None:
        """Call `go_on` once, when a full outbox has room again, breaks or is closed."""
        self._when_free.append(go_on)

    def when_broken(self, give_up: Callable[[], None]) -> None:
        """Call `give_up` once, when the reader is gone."""
        if self.failure is not None:
            self._loop.call_soon(give_up)
        else:
            self._when_broken.append(give_up)

    async def wait_until_free(self) -> None:
        """Return at once while there is room; when full, return once the reader has caught up.

        Returns too when the outbox breaks or is closed.
        """
        if self.is_full:
            self._freed = self._freed or anyio.Event()
            await self._freed.wait()

    async def wait_until_broken(self) -> None:
        """Return when the reader is gone."""
        await self._broke.wait()

    async def flush(self) -> None:
        """Return when everything put so far has been written, or never will be."""
        if self._held:
            self._emptied = self._emptied or anyio.Event()
            await self._emptied.wait()

    def close(self) -> None:
        """Write nothing more and let go of the sink. What was not flushed is lost."""
        if self._is_closed:
            return
        self._is_closed = True
        self._drop()
        self._sink.close()

    def _write(self) -> None:
        self._is_write_due = self._is_blocked = False
        while self._held:
            try:
                taken = self._sink.write(self._held)
            except OSError as failure:
                self._break(failure)
                return
            if not taken:
                self._is_write_due = self._is_blocked = True
                self._sink.when_writable(self._write)
                break
            del self._held[:taken]
        self._tell()

    def _reader_left(self) -> None:
        if not self._is_closed and self.failure is None:
            self._break(BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)))

    def _break(self, failure: OSError) -> None:
        self.failure = failure
        self._drop()
        self._broke.set()
        told, self._when_broken = self._when_broken, []
        for give_up in told:
            give_up()

    def _drop(self) -> None:
        self._held = bytearray()
        self._tell()

    def _tell(self) -> None:
        if self._emptied and not self._held:
            self._emptied.set()
            self._emptied = None
        if self.is_pressed:
            return
        if self._freed:
            self._freed.set()
            self._freed = None
        told, self._when_free = self._when_free, []
        for go_on in told:
            go_on()


def sink_for(fd: int) -> Sink:
    """The way of writing that suits what `fd` is. The sink owns `fd` from here on."""
    kind = os.fstat(fd).st_mode
    if stat.S_ISSOCK(kind):
        return SocketSink(fd)
    if stat.S_ISFIFO(kind) or os.isatty(fd):
        # A description of our own, so that its flags are ours too.
        try:
            ours = os.open(
                f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            )
        except OSError:
            return ThreadSink(fd)
        os.close(fd)
        return DescriptorSink(ours)
    if stat.S_ISREG(kind) or stat.S_ISCHR(kind):
        # Never waits long. Opened anew, a file would be written from its start.
        return DescriptorSink(fd)
    return ThreadSink(fd)


class _Departure:
    """Watches a descriptor for its reader leaving; where that cannot be watched it never calls."""

    def __init__(self, fd: int, gone: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._gone = gone
        self._poll: select.epoll | None = None
        if not hasattr(select, "epoll"):
            return
        poll = select.epoll()
        try:
            # Asked for nothing it tells of errors and hang-ups alone. The loop's own selector
            # would also wake for every piece that goes out.
            poll.register(fd, 0)
        except PermissionError:
            # Regular files and /dev/null have no reader.
            poll.close()
            return
        self._poll = poll
        self._loop.add_reader(poll.fileno(), self._left)

    def _left(self) -> None:
        self.close()
        self._gone()

    def close(self) -> None:
        if self._poll is not None:
            self._loop.remove_reader(self._poll.fileno())
            self._poll.close()
            self._poll = None


class DescriptorSink:
    """A descriptor that does not block: one with flags of our own, or one that never waits."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._departure: _Departure | None = None

    def write(self, data: bytearray) -> int:
        """As the port says."""
        try:
            return os.write(self._fd, data)
        except BlockingIOError:
            return 0

    def when_writable(self, ready: Callable[[], None]) -> None:
        """As the port says."""
        self._loop.add_writer(self._fd, self._ready, ready)

    def when_gone(self, gone: Callable[[], None]) -> None:
        """As the port says."""
        self._departure = _Departure(self._fd, gone)

    def close(self) -> None:
        """As the port says."""
        self._let_go()
        os.close(self._fd)

    def _let_go(self) -> None:
        self._loop.remove_writer(self._fd)
        if self._departure is not None:
            self._departure.close()

    def _ready(self, ready: Callable[[], None]) -> None:
        self._loop.remove_writer(self._fd)
        ready()


class SocketSink(DescriptorSink):
    """A socket, which can be asked not to block for one call."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self._socket = socket.socket(fileno=fd)

    def write(self, data: bytearray) -> int:
        """As the port says."""
        try:
            return self._socket.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except BlockingIOError:
            return 0

    def close(self) -> None:
        """As the port says."""
        self._let_go()
        self._socket.close()


class ThreadSink:
    """A descriptor that may block, written by a thread of its own, one piece at a time.

    `write` first gives the thread a copy and takes nothing; when the thread is done, `ready` is
    called, and the next `write` takes what went out. So what was taken has truly been written.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._given: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._is_busy = False
        self._outcome: int | OSError = 0
        self._ready: Callable[[], None] | None = None
        self._departure: _Departure | None = None
        threading.Thread(target=self._work, name="wire output", daemon=True).start()

    def write(self, data: bytearray) -> int:
        """As the port says."""
        if self._is_busy:
            return 0
        outcome, self._outcome = self._outcome, 0
        if isinstance(outcome, OSError):
            raise outcome
        if not outcome:
            self._is_busy = True
            self._given.put(bytes(data[:_THREAD_WRITE_BYTES]))
        return outcome

    def when_writable(self, ready: Callable[[], None]) -> None:
        """As the port says."""
        self._ready = ready

    def when_gone(self, gone: Callable[[], None]) -> None:
        """As the port says."""
        self._departure = _Departure(self._fd, gone)

    def close(self) -> None:
        """As the port says. The thread closes the descriptor, once a write it is in returns."""
        if self._departure is not None:
            self._departure.close()
        self._ready = None
        self._given.put(None)

    def _work(self) -> None:
        while (data := self._given.get()) is not None:
            try:
                outcome: int | OSError = self._write_some(data)
            except OSError as failure:
                outcome = failure
            # A loop that is closed has no use for the outcome.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._done, outcome)
        os.close(self._fd)

    def _write_some(self, data: bytes) -> int:
        while True:
            try:
                return os.write(self._fd, data)
            except BlockingIOError:
                wait_until_ready(self._fd, select.POLLOUT)

    def _done(self, outcome: int | OSError) -> None:
        self._is_busy = False
        self._outcome = outcome
        ready, self._ready = self._ready, None
        if ready:
            ready()
