"""Two transports joined in memory: what one puts in its outbox, the other receives."""

import asyncio
from collections.abc import Callable

from pi_rpc.wire.outbox import LIMIT_BYTES, Outbox
from pi_rpc.wire.transport import Ended, Receive

PIPE_BYTES = 64 * 1024
"""What lies between the two at most, as in a pipe."""


class MemoryTransport:
    """One end of a pair. To be made inside the running loop, by `joined`."""

    def __init__(self, incoming: "_Pipe", outgoing: "_Pipe", outbox_limit_bytes: int) -> None:
        self.outbox = Outbox(outgoing, outbox_limit_bytes)
        self._incoming = incoming

    def start(self, receive: Receive, ended: Ended) -> None:
        """Begin to read."""
        self._incoming.open(receive, ended)

    def pause(self) -> None:
        """Read nothing more until `resume`."""
        self._incoming.is_paused = True

    def resume(self) -> None:
        """Go on reading."""
        self._incoming.is_paused = False
        self._incoming.move_soon()

    def close(self) -> None:
        """Stop both ways: the other end sees its input end and its output broken."""
        self._incoming.abandon()
        self.outbox.close()


def joined(outbox_limit_bytes: int = LIMIT_BYTES) -> tuple[MemoryTransport, MemoryTransport]:
    """Two transports, each the far end of the other."""
    there, back = _Pipe(), _Pipe()
    return (
        MemoryTransport(back, there, outbox_limit_bytes),
        MemoryTransport(there, back, outbox_limit_bytes),
    )


class _Pipe:
    """One way. It is the sink of the writing end and the source of the reading end."""

    def __init__(self) -> None:
        self.is_paused = False
        self._loop = asyncio.get_running_loop()
        self._held = bytearray()
        self._receive: Receive | None = None
        self._ended: Ended | None = None
        self._ready: Callable[[], None] | None = None
        self._gone: Callable[[], None] | None = None
        self._is_ended = False
        self._is_abandoned = False

    def write(self, data: bytearray) -> int:
        if self._is_abandoned:
            raise BrokenPipeError("the other end is closed")
        taken = data[: PIPE_BYTES - len(self._held)]
        self._held += taken
        self.move_soon()
        return len(taken)

    def when_writable(self, ready: Callable[[], None]) -> None:
        self._ready = ready

    def when_gone(self, gone: Callable[[], None]) -> None:
        self._gone = gone

    def close(self) -> None:
        self._is_ended = True
        self.move_soon()

    def open(self, receive: Receive, ended: Ended) -> None:
        self._receive, self._ended = receive, ended
        self.move_soon()

    def abandon(self) -> None:
        self._is_abandoned = True
        self._receive = self._ended = None
        if self._gone is not None:
            self._loop.call_soon(self._gone)
        self._let_write()

    def move_soon(self) -> None:
        self._loop.call_soon(self._move)

    def _move(self) -> None:
        if self._receive is None or self.is_paused:
            return
        if self._held:
            data, self._held = bytes(self._held), bytearray()
            self._receive(data)
            self._let_write()
        if self._is_ended and not self._held and self._ended:
            ended, self._ended = self._ended, None
            ended()

    def _let_write(self) -> None:
        ready, self._ready = self._ready, None
        if ready:
            ready()
