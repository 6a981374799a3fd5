"""A file is the old one or the new one, and the details name both."""

import hashlib
import os
import stat
from pathlib import Path

import anyio
import pytest

from pi_rpc.core.errors import Invalid, Refused, Stopped
from pi_rpc.tools.write import WriteTool
from tests.tools.bench import Bench, shown

pytestmark = pytest.mark.anyio
WRITE = WriteTool()


def is_device(path: str) -> bool:
    return stat.S_ISCHR(Path(path).stat().st_mode)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def test_a_new_file_gets_its_folders_and_says_that_it_was_created(bench: Bench) -> None:
    outcome = await bench.run(WRITE, path="a/b/c.txt", content="héllo\r\n")
    assert (bench.cwd / "a/b/c.txt").read_bytes() == "héllo\r\n".encode()
    assert shown(outcome) == "Created a/b/c.txt (8 bytes)."
    assert outcome.details == {
        "created": True,
        "bytes": 8,
        "beforeSha256": None,
        "afterSha256": sha256("héllo\r\n"),
    }


async def test_a_replaced_file_comes_with_hashes_and_a_diff(bench: Bench) -> None:
    bench.put("f", "a\nb\nc\n")
    outcome = await bench.run(WRITE, path="f", content="a\nB\nc\n")
    assert shown(outcome) == "Replaced f (6 bytes)."
    assert outcome.details == {
        "created": False,
        "bytes": 6,
        "beforeSha256": sha256("a\nb\nc\n"),
        "afterSha256": sha256("a\nB\nc\n"),
        "patch": "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
        "diff": " 1 a\n-2 b\n+2 B\n 3 c",
        "firstChangedLine": 2,
    }


@pytest.mark.parametrize("before", [b"\xff\n", b"x" * 200_000])
async def test_a_large_or_foreign_file_is_replaced_without_a_diff(
    before: bytes, bench: Bench
) -> None:
    bench.put("f", before)
    outcome = await bench.run(WRITE, path="f", content="a\n")
    assert outcome.details == {
        "created": False,
        "bytes": 2,
        "beforeSha256": hashlib.sha256(before).hexdigest(),
        "afterSha256": sha256("a\n"),
    }


async def test_a_symlink_stays_and_its_target_changes_with_its_mode(bench: Bench) -> None:
    target = bench.put("script", "old")
    target.chmod(0o755)
    link = bench.cwd / "link"
    link.symlink_to("script")
    await bench.run(WRITE, path="link", content="new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o755


async def test_a_link_to_nothing_makes_what_it_points_to(bench: Bench) -> None:
    (bench.cwd / "link").symlink_to("target")
    await bench.run(WRITE, path="link", content="new")
    assert (bench.cwd / "target").read_text() == "new"
    assert (bench.cwd / "link").is_symlink()


async def test_a_new_file_has_the_mode_every_new_file_has(bench: Bench) -> None:
    (bench.cwd / "other").touch()
    await bench.run(WRITE, path="f", content="")
    assert (bench.cwd / "f").stat().st_mode == (bench.cwd / "other").stat().st_mode


async def test_a_reader_never_sees_half_a_file(bench: Bench) -> None:
    path = bench.put("f", "old")
    with path.open("rb") as reader:
        await bench.run(WRITE, path="f", content="new")
        assert reader.read() == b"old"
    assert path.read_text() == "new"


async def test_what_cannot_be_written_is_refused_and_leaves_nothing_behind(bench: Bench) -> None:
    (bench.cwd / "folder").mkdir()
    bench.put("file", "")
    os.mkfifo(bench.cwd / "pipe")
    for path, reason in (
        ("folder", "is_a_directory"),
        ("pipe", "not_a_file"),
        ("/dev/null", "not_a_file"),
        ("file/below", "not_a_directory"),
    ):
        with pytest.raises(Refused) as raised:
            await bench.run(WRITE, path=path, content="x")
        assert raised.value.reason == reason
    assert is_device("/dev/null")
    assert bench.names() == ["file", "folder", "pipe"]


async def test_half_a_surrogate_pair_is_no_text(bench: Bench) -> None:
    bench.put("f", "old")
    with pytest.raises(Invalid) as raised:
        await bench.run(WRITE, path="f", content="a\udcffb")
    assert raised.value.reason == "not_unicode"
    assert (bench.cwd / "f").read_text() == "old"


async def test_a_stopped_call_writes_nothing(bench: Bench) -> None:
    bench.stop.set()
    with pytest.raises(Stopped):
        await bench.run(WRITE, path="f", content="x")
    assert bench.names() == []


async def test_writes_of_one_file_land_in_the_order_they_were_asked_for(bench: Bench) -> None:
    async with anyio.create_task_group() as tasks:
        for number in range(20):

            async def write(content: str = str(number)) -> None:
                await bench.run(WRITE, path="f", content=content)

            tasks.start_soon(write)
    assert (bench.cwd / "f").read_text() == "19"
    assert bench.names() == ["f"]
