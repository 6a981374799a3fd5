"""What the store asks of the file system."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pi_rpc.core.errors import Damaged, Missing, Outside
from pi_rpc.core.scanner import Scanner
from pi_rpc.store import disk
from pi_rpc.store.disk import (
    copy_bytes,
    failing_as,
    lexical,
    publish,
    resolved,
    scan_file,
    temporary_beside,
)
from tests.store.samples import message, names, write_session

FULL = """
import sys, anyio
from pathlib import Path
from pi_rpc.core.errors import Outside
from pi_rpc.store.choose import open_store
from tests.store.samples import CountedIds, chain, header, ids_of, line, names

async def main(folder):
    store = open_store(folder, CountedIds(), syncs=True)
    session = await store.create(header(), chain(2))
    big = line("0000000c", 1, "00000002", "x" * 300_000)
    for act in (
        lambda: session.append([big], durable=True),
        lambda: store.create(header("s2"), [line("0000000c", -1, None, "x" * 300_000)]),
    ):
        try:
            await act()
        except Outside as error:
            print(error.reason, error.data["retryable"], len(session.heads))
    print(names(session.path.parent))
    (folder / "room").unlink()
    await session.append([line("0000000d", 1, "00000002")], durable=True)
    await session.close()
    again = await store.open("s1", "read")
    print(ids_of(again), [each.reason for each in again.diagnostics])

folder = Path(sys.argv[1])
(folder / "room").write_bytes(bytes(40_000))
anyio.run(main, folder)
"""


def in_small_disk(folder: Path, script: str) -> list[str]:
    unshare = shutil.which("unshare")
    mount = f"mount -t tmpfs -o size=96k none {folder}"
    if unshare is None:
        pytest.skip("no way to mount a small disk here")
    own = [unshare, "--user", "--map-root-user", "--mount", "sh", "-c"]
    if subprocess.run([*own, mount], capture_output=True, timeout=30, check=False).returncode:
        pytest.skip("no small disk may be mounted here")
    command = [*own, f'{mount} && exec "$0" -c "$1" {folder}', sys.executable, script]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.stderr == ""
    return ran.stdout.splitlines()


def test_a_full_disk_is_told_and_costs_nothing_that_was_there(tmp_path: Path) -> None:
    name = "2026-11-29T21-09-31-887Z_s1.jsonl"
    assert in_small_disk(tmp_path, FULL) == [
        "disk_full True 2",
        "disk_full True 2",
        str([f".{name}.lock", name]),
        "['00000001', '00000002', '0000000d'] ['malformed_line']",
    ]


@pytest.mark.parametrize(
    ("number", "reason", "retryable"),
    [
        (errno.ENOSPC, "disk_full", True),
        (errno.EDQUOT, "disk_full", True),
        (errno.EIO, "write_failed", False),
    ],
)
def test_failures_are_told_in_our_words(number: int, reason: str, retryable: bool) -> None:
    with pytest.raises(Outside) as caught, failing_as("write_failed", Path("/p")):
        raise OSError(number, os.strerror(number))
    told = caught.value
    assert (told.reason, told.data["retryable"], told.data["path"]) == (reason, retryable, "/p")
    assert told.data["errno"] == errno.errorcode[number]


def test_a_name_that_is_taken_is_never_replaced(tmp_path: Path) -> None:
    target = tmp_path / "t"
    target.write_bytes(b"precious")
    with pytest.raises(FileExistsError), temporary_beside(target) as (_, temporary):
        publish(temporary, target)
    assert (target.read_bytes(), names(tmp_path)) == (b"precious", ["t"])


def test_an_unfinished_file_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), temporary_beside(tmp_path / "t") as (fd, _):
        os.write(fd, b"half")
        raise ZeroDivisionError
    assert names(tmp_path) == []


def test_paths_are_made_whole_without_a_look_at_the_disk(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("elsewhere")
    assert lexical(tmp_path / "link" / ".." / "x") == str(tmp_path / "x")
    assert lexical("~/x") == str(Path.home() / "x")
    assert lexical("~other") == str(Path.cwd() / "~other")
    assert resolved(tmp_path / "link") == tmp_path / "elsewhere"
    with pytest.raises(Missing):
        lexical("a\0b")


def test_bytes_are_copied_from_and_to_where_they_should_be(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"0123456789")
    source = os.open(tmp_path / "a", os.O_RDONLY)
    for flags in (os.O_RDWR, os.O_RDWR | os.O_APPEND):
        target = os.open(tmp_path / "b", flags | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(target, b"->")
        copy_bytes(source, target, 3, 7)
        assert (tmp_path / "b").read_bytes() == b"->3456"
        with pytest.raises(Outside) as caught:
            copy_bytes(source, target, 8, 20)
        assert caught.value.reason == "read_failed"
        os.close(target)
    os.close(source)


@pytest.mark.parametrize("length", [10, disk.BLOCK_BYTES - 200, disk.BLOCK_BYTES, 3_000_000])
def test_lines_longer_than_a_block_are_read_whole(tmp_path: Path, length: int) -> None:
    path = tmp_path / "s.jsonl"
    entries = [message(f"0000000{n}", None, "x" * length) for n in range(3)]
    data = write_session(path, entries)
    fd = os.open(path, os.O_RDONLY)
    scan, whole = scan_file(fd, Scanner(), 0, len(data))
    os.close(fd)
    assert (len(scan.offsets), whole, scan.diagnostics) == (3, len(data), [])
    lines = data.split(b"\n")[1:4]
    spans = zip(scan.offsets, scan.lengths, strict=True)
    assert [data[at : at + size] for at, size in spans] == lines


def test_a_line_without_end_is_not_taken_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    size = len(write_session(path, []))
    os.truncate(path, size + 5 * disk.BLOCK_BYTES)
    fd = os.open(path, os.O_RDONLY)
    with pytest.raises(Damaged) as caught:
        scan_file(fd, Scanner(), 0, path.stat().st_size, line_bytes_max=2 * disk.BLOCK_BYTES)
    os.close(fd)
    assert (caught.value.reason, caught.value.data["offset"]) == ("line_too_long", size)
