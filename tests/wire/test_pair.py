import anyio
import anyio.lowlevel
import pytest

from pi_rpc.wire.pair import PIPE_BYTES, MemoryTransport, joined

pytestmark = pytest.mark.anyio


async def turns(number: int = 20) -> None:
    """Let the loop turn, so that whatever is under way on either end has happened."""
    for _ in range(number):
        await anyio.lowlevel.checkpoint()


class End:
    """Keeps what one end of a pair received."""

    def __init__(self, transport: MemoryTransport) -> None:
        self.transport = transport
        self.received = b""
        self.ended = anyio.Event()
        transport.start(self._receive, self.ended.set)

    def _receive(self, data: bytes) -> None:
        self.received += data


async def test_what_one_end_puts_the_other_receives_both_ways() -> None:
    near, far = map(End, joined())
    near.transport.outbox.put(b"there")
    far.transport.outbox.put(b"back")
    await turns()
    assert (near.received, far.received) == (b"back", b"there")


async def test_a_paused_reader_fills_the_pipe_and_then_the_outbox() -> None:
    near, far = map(End, joined())
    far.transport.pause()
    near.transport.outbox.put(b"x" * (PIPE_BYTES + 10))
    await turns()
    assert (far.received, near.transport.outbox.held_bytes) == (b"", 10)
    far.transport.resume()
    with anyio.fail_after(5):
        await near.transport.outbox.flush()
    await turns()
    assert far.received == b"x" * (PIPE_BYTES + 10)


async def test_closing_ends_the_other_input_after_what_was_written_and_breaks_its_output() -> None:
    near, far = map(End, joined())
    near.transport.outbox.put(b"last")
    await near.transport.outbox.flush()
    near.transport.close()
    with anyio.fail_after(5):
        await far.ended.wait()
        far.transport.outbox.put(b"too late")
        await far.transport.outbox.wait_until_broken()
    assert (far.received, near.received) == (b"last", b"")
