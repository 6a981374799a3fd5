"""Long output is kept whole in a file, which is complete or says that it is cut."""

import stat
from pathlib import Path

import pytest

from pi_rpc.tools.output import Output
from pi_rpc.tools.truncate import Limits

pytestmark = pytest.mark.anyio
SMALL = Limits(lines=3, size_bytes=10)


def only_file_of(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


async def test_short_output_makes_no_file(tmp_path: Path) -> None:
    output = Output(tmp_path / "spill", SMALL, 1000)
    await output.feed(b"a\nb\n")
    await output.end()
    kept = output.truncation()
    assert (kept.content, output.notice(kept), output.details(kept)) == ("a\nb\n", None, {})
    assert not (tmp_path / "spill").exists()


async def test_long_output_is_kept_raw_and_whole_where_only_the_owner_reads(
    tmp_path: Path,
) -> None:
    output = Output(tmp_path / "a/spill", SMALL, 1000)
    for chunk in (b"\x1b[1m1\r\n", b"2\n\xff", b"\n4\n", b"5\n"):
        await output.feed(chunk)
    await output.end()
    kept = output.truncation()
    path = only_file_of(tmp_path / "a/spill")
    assert path.read_bytes() == b"\x1b[1m1\r\n2\n\xff\n4\n5\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert kept.content == "\ufffd\n4\n5"
    assert output.notice(kept) == f"[Lines 3-5 of 5. Full output: {path}]"
    assert output.details(kept) == {
        "truncation": kept.as_object(),
        "fullOutputPath": str(path),
    }


async def test_raw_output_that_is_long_is_kept_although_little_is_shown(tmp_path: Path) -> None:
    output = Output(tmp_path, SMALL, 1000)
    await output.feed(b"\x1b[31m\x1b[0mhi\n")
    await output.end()
    kept = output.truncation()
    path = only_file_of(tmp_path)
    assert (kept.content, output.notice(kept)) == ("hi\n", None)
    assert output.details(kept) == {"fullOutputPath": str(path)}


@pytest.mark.parametrize(("room", "is_cut"), [(14, False), (13, True), (0, True)])
async def test_a_file_cut_by_the_quota_says_so(room: int, is_cut: bool, tmp_path: Path) -> None:
    output = Output(tmp_path, SMALL, room)
    for chunk in (b"abcdefgh\n", b"ijk\n", b"l"):
        await output.feed(chunk)
    await output.end()
    kept = output.truncation()
    path = only_file_of(tmp_path)
    assert path.read_bytes() == b"abcdefgh\nijk\nl"[:room]
    notice = output.notice(kept)
    assert notice is not None
    if is_cut:
        assert output.details(kept)["fullOutputCut"] == "size limit"
        assert "kept up to where it was cut (size limit): " in notice
    else:
        assert "fullOutputCut" not in output.details(kept)
        assert f"Full output: {path}" in notice


async def test_a_disk_that_refuses_is_told_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    output = Output(tmp_path / "file", SMALL, 1000)
    await output.feed(b"12345\nabcdef\n")
    await output.feed(b"last\n")
    await output.end()
    kept = output.truncation()
    assert kept.content == "last"
    details = output.details(kept)
    assert "fullOutputPath" not in details
    assert details["fullOutputCut"] == "File exists"
    assert output.notice(kept) == (
        "[Lines 3-3 of 3. The limit of 10B was reached."
        " The full output could not be kept: File exists.]"
    )


async def test_what_was_held_back_to_the_end_counts_too(tmp_path: Path) -> None:
    output = Output(tmp_path, Limits(lines=3, size_bytes=4), 1000)
    await output.feed(b"ab\x1b]")
    await output.feed(b"")
    assert output.truncation().content == "ab"
    await output.end()
    assert output.details(output.truncation()) == {}
    other = Output(tmp_path, Limits(lines=3, size_bytes=6), 1000)
    await other.feed(b"ab\x1b]x\xe2")
    await other.end()
    kept = other.truncation()
    assert kept.content == "abx\ufffd"
    assert not kept.truncated
