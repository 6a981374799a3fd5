import os
import socket
import subprocess
import sys
import threading

import pytest

from pi_rpc.wire.descriptors import StdioDescriptors

TAKE = """
import os, subprocess, sys
from pi_rpc.wire.descriptors import StdioDescriptors
taken = StdioDescriptors.take()
print("a stray print")
sys.stdout.flush()
os.system("echo a stray child; cat")
children = subprocess.run(["ls", "-l", "/proc/self/fd"], capture_output=True, text=True).stdout
for fd in (taken.input_fd, taken.output_fd):
    assert not os.get_inheritable(fd)
    assert os.readlink(f"/proc/self/fd/{fd}") not in children
assert "asyncio" not in sys.modules and "anyio" not in sys.modules
taken.write(b"got " + taken.read())
"""


def test_stray_output_and_children_are_kept_off_the_wire() -> None:
    done = subprocess.run(
        [sys.executable, "-c", TAKE], input=b"input", capture_output=True, timeout=5, check=False
    )
    assert done.stdout == b"got input", done.stderr
    assert done.stderr == b"a stray print\na stray child\n"


def test_without_stderr_stray_output_goes_nowhere() -> None:
    done = subprocess.run(
        ["sh", "-c", '"$0" -c "$1" 2>&-', sys.executable, TAKE],
        input=b"input",
        capture_output=True,
        timeout=5,
        check=False,
    )
    assert done.stdout == b"got input"


def test_standard_input_that_is_not_open_is_an_error() -> None:
    done = subprocess.run(
        ["sh", "-c", '"$0" -c "$1" <&-', sys.executable, TAKE],
        capture_output=True,
        timeout=5,
        check=False,
    )
    assert done.returncode == 1
    assert b"Bad file descriptor" in done.stderr


@pytest.mark.parametrize("is_blocking", [True, False])
def test_reading_and_writing_wait_whatever_flags_the_parent_left(is_blocking: bool) -> None:
    near, far = socket.socketpair()
    near.setblocking(is_blocking)
    taken = StdioDescriptors(os.dup(near.fileno()), os.dup(near.fileno()))
    data = b"x" * 2_000_000
    got = bytearray()

    def play_the_parent() -> None:
        far.sendall(b"hello")
        while len(got) < len(data):
            got.extend(far.recv(65536))

    parent = threading.Thread(target=play_the_parent)
    parent.start()
    assert taken.read() == b"hello"
    taken.write(data)
    parent.join(timeout=5)
    assert got == data
    far.close()
    assert taken.read() == b""
    taken.close()
    near.close()
