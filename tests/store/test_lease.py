"""One writer for each session."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pi_rpc.core.errors import Locked, Outside
from pi_rpc.store.lease import Lease, lock_path

HOLD = """
import sys
from pathlib import Path
from pi_rpc.store.lease import Lease
lease = Lease.take(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_the_second_is_told_who_the_first_is(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    lease = Lease.take(path)
    with pytest.raises(Locked) as caught:
        Lease.take(path)
    owner = caught.value.data["owner"]
    assert (owner["pid"], owner["host"]) == (os.getpid(), socket.gethostname())
    assert owner["since"].endswith("Z")
    lease.release()
    lease.release()
    Lease.take(path).release()
    assert list(tmp_path.iterdir()) == []


def test_another_process_holds_it_until_it_dies(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(Locked) as caught:
            Lease.take(path)
        assert caught.value.data["owner"]["pid"] == holder.pid
        holder.kill()
        holder.wait(5)
    assert lock_path(path).exists()
    Lease.take(path).release()
    assert not lock_path(path).exists()


@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", b'{"pid":'])
def test_a_body_that_says_nothing_is_no_trouble(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "s.jsonl"
    lease = Lease.take(path)
    lock_path(path).write_bytes(body)
    with pytest.raises(Locked) as caught:
        Lease.take(path)
    assert caught.value.data["owner"]["pid"] is None
    lease.release()


def test_where_no_lock_can_be_made_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(Outside) as caught:
        Lease.take(tmp_path / "gone" / "s.jsonl")
    assert (caught.value.reason, caught.value.data["errno"]) == ("lock_failed", "ENOENT")


def test_a_lock_is_never_followed_elsewhere(tmp_path: Path) -> None:
    path, other = tmp_path / "s.jsonl", tmp_path / "precious"
    other.write_bytes(b"precious")
    lock_path(path).symlink_to(other)
    with pytest.raises(Outside) as caught:
        Lease.take(path)
    assert caught.value.reason == "lock_failed"
    assert other.read_bytes() == b"precious"
