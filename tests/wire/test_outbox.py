import errno
import fcntl
import os
import pty
import socket
import threading
import tty
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from pi_rpc.wire.outbox import DescriptorSink, Outbox, SocketSink, ThreadSink, sink_for

pytestmark = pytest.mark.anyio


class CountedSink:
    """Takes as many bytes as it is allowed, and keeps each write."""

    def __init__(self, room: int = 1_000_000) -> None:
        self.room = room
        self.writes: list[bytes] = []
        self.failure: OSError | None = None
        self.is_closed = False
        self._ready: Callable[[], None] | None = None

    def write(self, data: bytearray) -> int:
        if self.failure:
            raise self.failure
        taken = bytes(data[: self.room])
        self.room -= len(taken)
        if taken:
            self.writes.append(taken)
        return len(taken)

    def when_writable(self, ready: Callable[[], None]) -> None:
        self._ready = ready

    def when_gone(self, gone: Callable[[], None]) -> None:
        self.gone = gone

    def close(self) -> None:
        self.is_closed = True

    def give_room(self, room: int) -> None:
        self.room = room
        ready, self._ready = self._ready, None
        assert ready is not None
        ready()


async def test_what_one_turn_puts_leaves_in_one_write() -> None:
    sink = CountedSink()
    outbox = Outbox(sink)
    for number in range(5):
        outbox.put(b"%d\n" % number)
    assert sink.writes == []
    await outbox.flush()
    assert sink.writes == [b"0\n1\n2\n3\n4\n"]


async def test_what_is_held_leaves_on_release_without_a_turn() -> None:
    sink = CountedSink()
    outbox = Outbox(sink)
    outbox.hold()
    outbox.put(b"a")
    outbox.put(b"b")
    outbox.release()
    assert sink.writes == [b"ab"]


async def test_a_partial_write_goes_on_where_it_stopped() -> None:
    sink = CountedSink(room=3)
    outbox = Outbox(sink)
    outbox.put(b"abcdef")
    await anyio.lowlevel.checkpoint()
    assert outbox.held_bytes == 3
    outbox.put(b"gh")
    sink.give_room(100)
    assert sink.writes == [b"abc", b"defgh"]


async def test_pressure_and_fullness_are_told_by_size() -> None:
    sink = CountedSink(room=0)
    outbox = Outbox(sink, limit_bytes=100, low_mark_bytes=10)
    outbox.put(b"x" * 10)
    assert (outbox.is_pressed, outbox.is_full) == (False, False)
    outbox.put(b"x")
    assert (outbox.is_pressed, outbox.is_full) == (True, False)
    outbox.put(b"x" * 90)
    assert (outbox.is_pressed, outbox.is_full) == (True, True)


async def test_who_waits_goes_on_only_below_the_low_mark() -> None:
    sink = CountedSink(room=0)
    outbox = Outbox(sink, limit_bytes=100, low_mark_bytes=10)
    told: list[str] = []
    outbox.put(b"x" * 101)
    outbox.when_free(lambda: told.append("callback"))

    async def wait() -> None:
        await outbox.wait_until_free()
        told.append("task")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.lowlevel.checkpoint()
            sink.give_room(50)
            await anyio.lowlevel.checkpoint()
            assert told == []
            sink.give_room(45)
    assert told == ["callback", "task"]


async def test_waiting_with_room_returns_at_once() -> None:
    outbox = Outbox(CountedSink(room=0))
    with anyio.fail_after(5):
        await outbox.wait_until_free()
        await outbox.flush()


async def test_a_reader_that_is_gone_is_told_once_and_frees_everybody() -> None:
    sink = CountedSink(room=0)
    outbox = Outbox(sink, limit_bytes=10)
    told: list[str] = []
    outbox.when_broken(lambda: told.append("broken"))
    outbox.put(b"x" * 20)
    await anyio.lowlevel.checkpoint()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outbox.wait_until_free)
            tasks.start_soon(outbox.flush)
            tasks.start_soon(outbox.wait_until_broken)
            await anyio.lowlevel.checkpoint()
            sink.failure = BrokenPipeError(errno.EPIPE, "gone")
            sink.give_room(0)
    outbox.put(b"more")
    assert (told, outbox.is_broken, outbox.held_bytes) == (["broken"], True, 0)
    assert outbox.failure is sink.failure


async def test_a_closed_outbox_keeps_nothing() -> None:
    sink = CountedSink(room=0)
    outbox = Outbox(sink)
    outbox.put(b"x")
    outbox.close()
    outbox.put(b"y")
    outbox.close()
    assert (sink.is_closed, outbox.held_bytes, outbox.is_broken) == (True, 0, False)


def flags(fd: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_GETFL)


async def written_through(outbox: Outbox, read_fd: int, data: bytes) -> bytes:
    """Put `data` while the reader has not begun, then read all of it."""
    outbox.put(data)
    await anyio.lowlevel.checkpoint()
    got = bytearray()

    def read() -> None:
        while len(got) < len(data):
            got.extend(os.read(read_fd, 65536))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, read)
            await outbox.flush()
    return bytes(got)


DATA = bytes(range(32, 127)) * 5000


async def test_a_pipe_is_written_without_touching_its_flags() -> None:
    read_fd, write_fd = os.pipe()
    shared = os.dup(write_fd)
    outbox = Outbox(sink_for(write_fd))
    assert await written_through(outbox, read_fd, DATA) == DATA
    assert flags(shared) & os.O_NONBLOCK == 0
    outbox.close()
    os.close(shared)
    assert os.read(read_fd, 10) == b""
    os.close(read_fd)


async def test_a_socket_is_written_without_touching_its_flags() -> None:
    near, far = socket.socketpair()
    with near, far:
        sink = sink_for(os.dup(near.fileno()))
        assert isinstance(sink, SocketSink)
        outbox = Outbox(sink)
        assert await written_through(outbox, far.fileno(), DATA) == DATA
        assert flags(near.fileno()) & os.O_NONBLOCK == 0
        outbox.close()


async def test_a_terminal_is_written_without_touching_its_flags() -> None:
    far, near = pty.openpty()
    tty.setraw(near)
    shared = os.dup(near)
    outbox = Outbox(sink_for(near))
    assert await written_through(outbox, far, DATA) == DATA
    assert flags(shared) & os.O_NONBLOCK == 0
    outbox.close()
    os.close(shared)
    os.close(far)


async def test_a_file_is_written_where_its_description_stands(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with path.open("wb", buffering=0) as file:
        file.write(b"before ")
        outbox = Outbox(sink_for(os.dup(file.fileno())))
        outbox.put(b"ours ")
        await outbox.flush()
        outbox.close()
        file.write(b"after")
    assert path.read_bytes() == b"before ours after"


async def test_a_device_that_takes_nothing_breaks_the_outbox() -> None:
    outbox = Outbox(sink_for(os.open("/dev/full", os.O_WRONLY)))
    outbox.put(b"x")
    with anyio.fail_after(5):
        await outbox.wait_until_broken()
    assert outbox.failure is not None
    assert outbox.failure.errno == errno.ENOSPC
    outbox.close()


async def test_a_pipe_whose_reader_left_breaks_the_outbox() -> None:
    read_fd, write_fd = os.pipe()
    sink = sink_for(write_fd)
    assert isinstance(sink, DescriptorSink)
    outbox = Outbox(sink)
    os.close(read_fd)
    outbox.put(b"x")
    with anyio.fail_after(5):
        await outbox.wait_until_broken()
    assert outbox.failure is not None
    assert outbox.failure.errno == errno.EPIPE
    outbox.close()


@pytest.mark.parametrize("kind", ["pipe", "socket", "thread"])
async def test_a_reader_that_leaves_while_nothing_is_written_breaks_the_outbox(kind: str) -> None:
    if kind == "socket":
        left, right = socket.socketpair()
        read_fd, write_fd = left.detach(), right.detach()
    else:
        read_fd, write_fd = os.pipe()
    outbox = Outbox(ThreadSink(write_fd) if kind == "thread" else sink_for(write_fd))
    told: list[str] = []
    outbox.when_broken(lambda: told.append("before"))
    outbox.put(b"x")
    await outbox.flush()
    assert not outbox.is_broken
    os.close(read_fd)
    with anyio.fail_after(5):
        await outbox.wait_until_broken()
    outbox.when_broken(lambda: told.append("after"))
    await anyio.lowlevel.checkpoint()
    assert told == ["before", "after"]
    assert outbox.failure is not None
    assert outbox.failure.errno == errno.EPIPE
    outbox.close()


async def test_a_closed_outbox_no_longer_looks_at_its_reader() -> None:
    read_fd, write_fd = os.pipe()
    outbox = Outbox(sink_for(write_fd))
    outbox.close()
    os.close(read_fd)
    await anyio.lowlevel.checkpoint()
    assert not outbox.is_broken


async def test_a_thread_that_cannot_write_breaks_the_outbox() -> None:
    read_fd, write_fd = os.pipe()
    os.close(read_fd)
    outbox = Outbox(ThreadSink(write_fd))
    outbox.put(b"x")
    with anyio.fail_after(5):
        await outbox.wait_until_broken()
    assert outbox.failure is not None
    assert outbox.failure.errno == errno.EPIPE
    outbox.close()


async def test_a_thread_writes_in_order_and_reports_what_went_out() -> None:
    read_fd, write_fd = os.pipe()
    outbox = Outbox(ThreadSink(write_fd))
    assert await written_through(outbox, read_fd, DATA) == DATA
    assert outbox.held_bytes == 0
    outbox.close()
    assert os.read(read_fd, 10) == b""
    os.close(read_fd)


async def test_a_slow_reader_of_a_threads_pipe_is_felt() -> None:
    read_fd, write_fd = os.pipe()
    outbox = Outbox(ThreadSink(write_fd), limit_bytes=100_000, low_mark_bytes=1000)
    outbox.put(b"x" * 1_000_000)
    is_free = threading.Event()

    async def wait() -> None:
        await outbox.wait_until_free()
        is_free.set()

    got = 0
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            while got < 500_000:
                assert not is_free.is_set()
                got += len(await anyio.to_thread.run_sync(os.read, read_fd, 65536))
            while got < 1_000_000:
                got += len(await anyio.to_thread.run_sync(os.read, read_fd, 65536))
    assert is_free.is_set()
    outbox.close()
    os.close(read_fd)
