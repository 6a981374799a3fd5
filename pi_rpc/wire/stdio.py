"""Standard input and output as a transport: pipes, sockets, terminals, files and /dev/null.

Promises
- Input is read as it comes and handed on at once; while paused, no more than one read is in hand.
- A file or device that the loop cannot watch is read by a thread instead.
- Nothing here changes a flag of a description that others share.
"""

import asyncio
import contextlib
import os
import select
import threading
import time
from collections.abc import Callable

from pi_rpc.wire.descriptors import READ_BYTES, StdioDescriptors, wait_until_ready
from pi_rpc.wire.outbox import LIMIT_BYTES, Outbox, sink_for
from pi_rpc.wire.transport import Ended, Receive

LINGER_S = 80e-6 if (os.cpu_count() or 1) > 1 else 0.0
"""How long the loop is held up to see whether more input is on its way.

With one processor the client could not write it meanwhile.
"""

LINGER_READS_MAX = 16
"""How many reads one turn of the loop takes, so that everything else has its turn too."""

_Arrived = Callable[[bytes | OSError], None]


class StdioTransport:
    """Bytes in and out over a pair of descriptors. To be made inside the running loop.

    `initial` is input that was already read, by a handshake before the loop; it is handed on first.
    """

    def __init__(
        self,
        descriptors: StdioDescriptors,
        initial: bytes = b"",
        outbox_limit_bytes: int = LIMIT_BYTES,
    ) -> None:
        self.outbox = Outbox(sink_for(descriptors.output_fd), outbox_limit_bytes)
        self._input_fd = descriptors.input_fd
        self._initial = initial
        self._loop = asyncio.get_running_loop()
        self._source: _WatchedSource | _ThreadSource | None = None
        self._is_paused = False
        self._is_over = False
        self.failure: OSError | None = None
        """Why reading ended, when it was not the ordinary end of input."""
        self._receive: Receive
        self._ended: Ended

    def start(self, receive: Receive, ended: Ended) -> None:
        """Begin to read."""
        self._receive, self._ended = receive, ended
        initial, self._initial = self._initial, b""
        if initial:
            receive(initial)
        try:
            self._source = _WatchedSource(self._input_fd, self._arrived)
        except PermissionError:
            # Regular files and /dev/null: always ready, which the loop's selector refuses to say.
            self._source = _ThreadSource(self._input_fd, self._arrived)
        if self._is_paused:
            self._source.pause()
        else:
            self._source.resume()

    def pause(self) -> None:
        """Read nothing more until `resume`. What is already read may still be handed on."""
        self._is_paused = True
        if self._source and not self._is_over:
            self._source.pause()

    def resume(self) -> None:
        """Go on reading."""
        self._is_paused = False
        if self._source and not self._is_over:
            self._source.resume()

    def close(self) -> None:
        """Stop both ways at once and let go of the descriptors. Flush the outbox before."""
        if self._source:
            self._source.close()
        else:
            os.close(self._input_fd)
        self._is_over = True
        self.outbox.close()

    def _arrived(self, read: bytes | OSError) -> None:
        if self._is_over:
            return
        if read and isinstance(read, bytes):
            self._receive(read)
            return
        # A terminal or a socket that is gone says so by a failure. For the reader both are the end.
        self.failure = read if isinstance(read, OSError) else None
        self._is_over = True
        self._ended()


def _read(fd: int) -> bytes | OSError | None:
    """What is there: some bytes, none at the end, a failure, or None for nothing yet."""
    try:
        return os.read(fd, READ_BYTES)
    except BlockingIOError:
        return None
    except OSError as failure:
        return failure


class _WatchedSource:
    """A descriptor the loop can watch. Raises PermissionError when it cannot."""

    def __init__(self, fd: int, arrived: _Arrived) -> None:
        self._fd = fd
        self._arrived = arrived
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(fd, self._readable)
        self._is_watched = True
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN | select.POLLHUP)

    def pause(self) -> None:
        self._is_watched = False
        self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        self._is_watched = True
        self._loop.add_reader(self._fd, self._readable)

    def close(self) -> None:
        self.pause()
        os.close(self._fd)

    def _readable(self) -> None:
        for _ in range(LINGER_READS_MAX):
            read = _read(self._fd)
            if read is None:
                return
            if not read or isinstance(read, OSError):
                self.pause()
            self._arrived(read)
            # Whoever was answered often asks again at once; a turn of the loop costs more than
            # the moment until then.
            if not self._is_watched or not self._comes_soon():
                return

    def _comes_soon(self) -> bool:
        # Looked for again and again rather than slept for: to be woken takes as long as all of
        # this, and is what a client that asks one thing after another waits for.
        until = time.perf_counter() + LINGER_S
        while not self._poll.poll(0):
            if time.perf_counter() > until:
                return False
        return True


class _ThreadSource:
    """A descriptor read by a thread, which reads again only when it is told to go on."""

    def __init__(self, fd: int, arrived: _Arrived) -> None:
        self._fd = fd
        self._arrived = arrived
        self._loop = asyncio.get_running_loop()
        self._may_read = threading.Event()
        self._is_paused = True
        self._is_closed = False
        threading.Thread(target=self._work, name="wire input", daemon=True).start()

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False
        self._may_read.set()

    def close(self) -> None:
        """Ends the thread, which closes the descriptor once a read it is in returns."""
        self._is_closed = True
        self._may_read.set()

    def _work(self) -> None:
        while True:
            self._may_read.wait()
            self._may_read.clear()
            if self._is_closed:
                break
            read = _read(self._fd)
            if read is None:
                wait_until_ready(self._fd, select.POLLIN)
                self._may_read.set()
                continue
            # A loop that is closed has no use for what was read.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._hand_on, read)
        os.close(self._fd)

    def _hand_on(self, read: bytes | OSError) -> None:
        if not self._is_closed:
            self._arrived(read)
        if not self._is_paused:
            self._may_read.set()
