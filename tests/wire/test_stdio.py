import fcntl
import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from pi_rpc.wire.descriptors import StdioDescriptors
from pi_rpc.wire.stdio import StdioTransport

SERVER = """
import os, sys
from pi_rpc.wire.descriptors import StdioDescriptors
taken = StdioDescriptors.take()
import anyio
from pi_rpc.wire.peer import Peer
from pi_rpc.wire.stdio import StdioTransport

async def wait():
    await anyio.sleep_forever()

async def flood(peer, number):
    for count in range(number):
        peer.notify("n", {"count": count, "text": "x" * 1000})
        await peer.wait_until_free()
    # Not getrusage: there a child inherits the peak of the process it was started from.
    status = open("/proc/self/status").read()
    return int(status.partition("VmHWM:")[2].split()[0])

def dispatch(request, peer):
    print("a stray print")
    if request.method == "wait":
        return wait()
    if request.method == "flood":
        return flood(peer, 20000)
    return request.params

async def main():
    transport = StdioTransport(taken)
    async with Peer(transport, dispatch) as peer:
        reason = await peer.wait_until_ended()
        await peer.drain(0)
    print("ended", reason, file=sys.stderr)

anyio.run(main)
"""
ASK = b'{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":1}}\n'
ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}\n'


@contextmanager
def server(stdin: int, stdout: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=stdin, stdout=stdout, stderr=subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def read_exactly(fd: int, size: int) -> bytes:
    """Read `size` bytes within five seconds, or what came."""
    got, until = b"", time.monotonic() + 5
    while len(got) < size and select.select([fd], [], [], max(0, until - time.monotonic()))[0]:
        piece = os.read(fd, size - len(got))
        if not piece:
            break
        got += piece
    return got


def read_some(fd: int) -> bytes:
    """Whatever comes next within five seconds."""
    return os.read(fd, 65536) if select.select([fd], [], [], 5)[0] else b""


def last_words(process: subprocess.Popen[bytes]) -> str:
    _, errors = process.communicate(timeout=5)
    return errors.decode().splitlines()[-1]


def test_pipes_are_served_until_the_end_of_input() -> None:
    with server(subprocess.PIPE, subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(ASK)
        process.stdin.flush()
        assert read_exactly(process.stdout.fileno(), len(ANSWER)) == ANSWER
        process.stdin.close()
        process.stdin = None
        assert last_words(process) == "ended eof"


def test_one_socket_for_both_is_served_and_its_flags_are_left_alone() -> None:
    near, far = socket.socketpair()
    with near, far, server(near.fileno(), near.fileno()) as process:
        for _ in range(3):
            far.sendall(ASK)
            assert read_exactly(far.fileno(), len(ANSWER)) == ANSWER
        assert fcntl.fcntl(near.fileno(), fcntl.F_GETFL) & os.O_NONBLOCK == 0
        far.shutdown(socket.SHUT_WR)
        assert last_words(process) == "ended eof"


def test_a_terminal_is_served_and_its_flags_are_left_alone() -> None:
    far, near = pty.openpty()
    tty.setraw(near)
    try:
        with server(near, near) as process:
            for _ in range(3):
                os.write(far, ASK)
                assert read_exactly(far, len(ANSWER)) == ANSWER
            assert fcntl.fcntl(near, fcntl.F_GETFL) & os.O_NONBLOCK == 0
            os.close(near)
            near = -1
            os.close(far)
            far = -1
            assert last_words(process) == "ended eof"
    finally:
        for fd in (near, far):
            if fd >= 0:
                os.close(fd)


def test_files_are_read_to_their_end_and_appended_to(tmp_path: Path) -> None:
    questions, answers = tmp_path / "in", tmp_path / "out"
    questions.write_bytes(ASK * 5000 + ASK.strip())
    answers.write_bytes(b"before\n")
    with (
        questions.open("rb") as source,
        answers.open("ab") as target,
        server(source.fileno(), target.fileno()) as process,
    ):
        assert last_words(process) == "ended eof"
    assert answers.read_bytes() == b"before\n" + ANSWER * 5001


def test_nothing_to_read_is_the_end_at_once() -> None:
    with server(subprocess.DEVNULL, subprocess.PIPE) as process:
        assert last_words(process) == "ended eof"


def test_output_to_nowhere_is_served() -> None:
    with server(subprocess.PIPE, subprocess.DEVNULL) as process:
        assert process.stdin
        process.stdin.write(ASK * 10)
        process.stdin.close()
        process.stdin = None
        assert last_words(process) == "ended eof"


def test_a_reader_that_is_gone_ends_the_connection() -> None:
    with server(subprocess.PIPE, subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        process.stdout.close()
        process.stdout = None
        process.stdin.write(ASK)
        process.stdin.flush()
        assert process.stderr
        words = process.stderr.read().decode().splitlines()
        assert words[-1] == "ended broken"


def test_what_waits_at_the_end_is_answered_before_the_process_leaves() -> None:
    with server(subprocess.PIPE, subprocess.PIPE) as process:
        done, _ = process.communicate(ASK.replace(b"echo", b"wait"), timeout=5)
    assert b'"id":1,"error":{"code":-32800' in done
    assert done.count(b"\n") == 1


def test_a_slow_reader_is_felt_and_loses_nothing() -> None:
    flood = ASK.replace(b"echo", b"flood")
    more = ASK.replace(b'"id":1', b'"id":2').replace(b'"a":1', b'"text":"%b"' % (b"y" * 60_000))
    with server(subprocess.PIPE, subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        into = process.stdin.fileno()
        os.set_blocking(into, False)
        # While nothing is read, the server may neither write 20 MB nor take 12 MB of requests.
        stream = flood + more * 200
        sent = 0
        while sent < len(stream) and select.select([], [into], [], 0.3)[1]:
            sent += os.write(into, stream[sent : sent + 65536])
        assert sent < 6_000_000
        counts: list[int] = []
        rest = b""
        peak_kib = 0
        while not peak_kib:
            piece = read_some(process.stdout.fileno())
            assert piece, "the server fell silent"
            *lines, rest = (rest + piece).split(b"\n")
            for message in map(json.loads, lines):
                if message.get("method") == "n":
                    counts.append(message["params"]["count"])
                elif message["id"] == 1:
                    peak_kib = message["result"]
    assert counts == list(range(20_000))
    # The interpreter with its libraries takes about 25 MiB, the outbox 4, an outbox twice over 8.
    assert peak_kib < 45_000


def test_a_signal_in_a_read_loses_nothing() -> None:
    with server(subprocess.PIPE, subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(ASK[:20])
        process.stdin.flush()
        process.send_signal(signal.SIGSTOP)
        process.stdin.write(ASK[20:])
        process.stdin.flush()
        process.send_signal(signal.SIGCONT)
        assert read_exactly(process.stdout.fileno(), len(ANSWER)) == ANSWER


class Taken:
    """A transport over pipes in this process, and what it handed on."""

    def __init__(self, input_fd: int, initial: bytes = b"") -> None:
        self.output_fd, output = os.pipe()
        self.received = b""
        self.is_over = anyio.Event()
        self.on_piece: Callable[[], None] = lambda: None
        self.transport = StdioTransport(StdioDescriptors(input_fd, output), initial)

    def start(self) -> None:
        self.transport.start(self._receive, self.is_over.set)

    async def until(self, size: int) -> bytes:
        with anyio.fail_after(5):
            while len(self.received) < size:
                await anyio.lowlevel.checkpoint()
        return self.received

    def close(self) -> None:
        self.transport.close()
        os.close(self.output_fd)

    def _receive(self, data: bytes) -> None:
        self.received += data
        self.on_piece()


@pytest.mark.anyio
async def test_what_a_handshake_has_read_is_handed_on_first() -> None:
    input_fd, far = os.pipe()
    os.write(far, b"and more")
    taken = Taken(input_fd, initial=b"first ")
    taken.start()
    assert await taken.until(14) == b"first and more"
    os.close(far)
    with anyio.fail_after(5):
        await taken.is_over.wait()
    assert taken.transport.failure is None
    taken.close()


@pytest.mark.anyio
async def test_nothing_is_read_while_paused() -> None:
    input_fd, far = os.pipe()
    taken = Taken(input_fd, initial=b"a")
    taken.on_piece = taken.transport.pause
    taken.start()
    os.write(far, b"b")
    for _ in range(10):
        await anyio.lowlevel.checkpoint()
    assert taken.received == b"a"
    taken.on_piece = lambda: None
    taken.transport.resume()
    assert await taken.until(2) == b"ab"
    os.close(far)
    taken.close()


@pytest.mark.anyio
async def test_a_paused_file_is_not_read_on(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(b"x" * 1_000_000)
    taken = Taken(os.open(path, os.O_RDONLY))
    paused = anyio.Event()

    def pause_once() -> None:
        if not paused.is_set():
            paused.set()
            taken.transport.pause()

    taken.on_piece = pause_once
    taken.start()
    with anyio.fail_after(5):
        await paused.wait()
    for _ in range(1000):
        await anyio.lowlevel.checkpoint()
    assert len(taken.received) <= 2 * 65536
    taken.transport.resume()
    assert len(await taken.until(1_000_000)) == 1_000_000
    with anyio.fail_after(5):
        await taken.is_over.wait()
    taken.close()


@pytest.mark.anyio
async def test_a_failure_to_read_is_the_end_and_is_kept(tmp_path: Path) -> None:
    taken = Taken(os.open(tmp_path, os.O_RDONLY))
    taken.start()
    with anyio.fail_after(5):
        await taken.is_over.wait()
    assert isinstance(taken.transport.failure, IsADirectoryError)
    taken.close()


@pytest.mark.anyio
async def test_a_transport_that_was_never_started_closes() -> None:
    input_fd, far = os.pipe()
    taken = Taken(input_fd)
    taken.close()
    with pytest.raises(BrokenPipeError):
        os.write(far, b"x")
    os.close(far)
