"""A file is shown in part or whole, and what is left out is said."""

import base64
import os
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from pi_rpc.core.errors import Invalid, Missing, Overfull, Refused, Stopped
from pi_rpc.core.messages import image_block, text_block
from pi_rpc.core.ports.tools import ToolSettings
from pi_rpc.tools.files import chunks_of
from pi_rpc.tools.read import ReadTool
from pi_rpc.tools.truncate import Limits
from tests.tools.bench import Bench, shown
from tests.tools.pictures import PNG, bmp, gif, png

pytestmark = pytest.mark.anyio
READ = ReadTool()
VERSION = Path("/proc/version")
FIVE = "l1\nl2\nl3\nl4\nl5\n"


def size_and_text_of(path: Path) -> tuple[int, str]:
    return path.stat().st_size, path.read_text()


async def test_a_part_is_shown_with_the_way_to_go_on(bench: Bench) -> None:
    bench.put("f", FIVE)
    outcome = await bench.run(READ, path="f", offset=2, limit=2)
    assert shown(outcome) == "l2\nl3\n\n[2 more lines. To go on, use offset 4.]"
    assert outcome.details is None


@pytest.mark.parametrize("offset", [0, -3, 1])
async def test_an_offset_before_the_first_line_is_the_first_line(offset: int, bench: Bench) -> None:
    bench.put("f", FIVE)
    assert shown(await bench.run(READ, path="f", offset=offset)) == FIVE


async def test_the_last_line_is_read_without_a_notice(bench: Bench) -> None:
    bench.put("f", FIVE)
    assert shown(await bench.run(READ, path="f", offset=5)) == "l5\n"
    assert shown(await bench.run(READ, path="f", offset=4, limit=2)) == "l4\nl5\n"
    assert shown(await bench.run(READ, path="f", offset=4, limit=1000)) == "l4\nl5\n"


async def test_lines_are_counted_as_they_are(bench: Bench) -> None:
    for name, content in (("ended", FIVE), ("open", FIVE[:-1])):
        bench.put(name, content)
        with pytest.raises(Invalid) as raised:
            await bench.run(READ, path=name, offset=6)
        assert raised.value.reason == "offset_beyond_end"
        assert raised.value.data == {"offset": 6, "totalLines": 5}


async def test_an_empty_file_is_an_empty_text(bench: Bench) -> None:
    bench.put("f", b"")
    outcome = await bench.run(READ, path="f")
    assert outcome.content == [text_block("")]
    assert not outcome.is_error


async def test_a_limit_of_nothing_says_what_there_is(bench: Bench) -> None:
    bench.put("f", FIVE)
    outcome = await bench.run(READ, path="f", limit=0)
    assert shown(outcome) == "[5 more lines. To go on, use offset 1.]"


async def test_a_long_file_is_cut_by_lines(bench: Bench) -> None:
    bench.put("f", "".join(f"{number}\n" for number in range(1, 2501)))
    outcome = await bench.run(READ, path="f")
    text, _, notice = shown(outcome).partition("\n\n")
    assert text.split("\n") == [str(number) for number in range(1, 2001)]
    assert notice == "[Lines 1-2000 of 2500 are shown. To go on, use offset 2001.]"
    assert outcome.details is not None
    truncation = outcome.details["truncation"]
    assert (truncation["truncatedBy"], truncation["outputLines"]) == ("lines", 2000)
    assert truncation["totalLines"] == 2500


async def test_a_long_file_is_cut_by_bytes(bench: Bench) -> None:
    bench.put("f", ("x" * 100 + "\n") * 600)
    outcome = await bench.run(READ, path="f")
    assert outcome.details is not None
    truncation = outcome.details["truncation"]
    assert (truncation["truncatedBy"], truncation["outputLines"]) == ("bytes", 506)
    assert shown(outcome).endswith(
        "\n\n[Lines 1-506 of 600 are shown. The limit of 50.0KB was reached."
        " To go on, use offset 507.]"
    )


async def test_the_limit_of_the_call_comes_before_the_limits_of_the_tool(bench: Bench) -> None:
    bench.put("f", FIVE)
    small = ReadTool(Limits(lines=2, size_bytes=1000))
    cut = await bench.run(small, path="f", limit=3)
    assert shown(cut) == "l1\nl2\n\n[Lines 1-2 of 5 are shown. To go on, use offset 3.]"
    whole = await bench.run(small, path="f", offset=2, limit=2)
    assert shown(whole) == "l2\nl3\n\n[2 more lines. To go on, use offset 4.]"
    assert whole.details is None


async def test_a_first_line_that_is_too_long_is_described(bench: Bench) -> None:
    path = bench.put("it's", "a\n" + "x" * 60000 + "\nb\n")
    outcome = await bench.run(READ, path="it's", offset=2)
    quoted = "'" + str(path).replace("'", "'\"'\"'") + "'"
    assert shown(outcome) == (
        "[Line 2 alone has 58.6KB; at most 50.0KB can be shown."
        f" A part of it: sed -n '2p' {quoted} | head -c 51200]"
    )


async def test_text_is_read_leniently_and_kept_as_it_is(bench: Bench) -> None:
    bench.put("f", b"\xef\xbb\xbfa\r\nb\rc\xff\xe2\x82\n")
    assert shown(await bench.run(READ, path="f")) == "\ufeffa\r\nb\rc\ufffd\ufffd\n"


async def test_characters_and_lines_survive_the_edges_of_what_is_read_at_once(
    bench: Bench,
) -> None:
    line = "é€" * 5000 + "\n"
    bench.put("f", line * 60)
    tool = ReadTool(Limits(lines=2000, size_bytes=10_000_000))
    assert shown(await bench.run(tool, path="f")) == line * 60
    part = await bench.run(tool, path="f", offset=31, limit=2)
    assert shown(part) == line * 2 + "\n[28 more lines. To go on, use offset 33.]"


async def test_a_curly_apostrophe_is_found_by_a_straight_one(bench: Bench) -> None:
    bench.put("q\u2019s.txt", "found")
    assert shown(await bench.run(READ, path="q's.txt")) == "found"


async def test_a_name_that_begins_with_an_at_sign_can_be_read(bench: Bench) -> None:
    bench.put("@a", "with")
    bench.put("a", "without")
    assert shown(await bench.run(READ, path="@a")) == "with"


async def test_what_is_not_there_or_no_file_is_told_by_its_reason(bench: Bench) -> None:
    os.mkfifo(bench.cwd / "pipe")
    for path, kind, reason in (
        ("none", Missing, "file_not_found"),
        (".", Refused, "is_a_directory"),
        ("pipe", Refused, "not_a_file"),
        ("/dev/zero", Refused, "not_a_file"),
    ):
        with pytest.raises(kind) as raised:
            await bench.run(READ, path=path)
        assert raised.value.reason == reason


@pytest.mark.skipif(not VERSION.exists(), reason="there is no /proc here")
async def test_a_file_that_says_it_is_empty_is_read_to_its_end(bench: Bench) -> None:
    size, expected = size_and_text_of(VERSION)
    assert size == 0
    assert shown(await bench.run(READ, path=str(VERSION))) == expected


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="there is no /proc here")
def test_a_file_that_says_it_is_empty_and_does_not_end_is_refused() -> None:
    descriptor = os.open("/proc/self/maps", os.O_RDONLY)
    try:
        with pytest.raises(Overfull) as raised:
            list(chunks_of(descriptor, size_bytes_max=10))
    finally:
        os.close(descriptor)
    assert raised.value.reason == "file_too_large"


def test_the_length_is_frozen_when_reading_begins(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * (300 * 1024))
    descriptor = os.open(path, os.O_RDONLY)
    try:
        chunks = chunks_of(descriptor)
        first = next(chunks)
        with path.open("ab") as file:
            file.write(b"later")
        assert b"".join([first, *chunks]) == b"x" * (300 * 1024)
    finally:
        os.close(descriptor)


async def test_a_stopped_call_reads_no_further(bench: Bench) -> None:
    bench.put("f", FIVE)
    bench.stop.set()
    with pytest.raises(Stopped):
        await bench.run(READ, path="f")


async def test_a_cancelled_call_ends_although_the_file_is_huge(bench: Bench) -> None:
    with (bench.cwd / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: bench.run(READ, path="sparse", offset=9))
            threads = anyio.to_thread.current_default_thread_limiter()
            while not threads.borrowed_tokens:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()


async def test_a_model_that_takes_no_images_is_named_and_the_image_is_there(bench: Bench) -> None:
    bench.settings = ToolSettings(blind_model="m1")
    bench.put("picture.txt", PNG)
    outcome = await bench.run(ReadTool(), path="picture.txt")
    assert outcome.details == {"imageUnsupportedByModel": "m1"}
    assert outcome.content[1] == image_block(base64.b64encode(PNG).decode(), "image/png")


async def test_an_image_is_told_by_its_bytes_and_not_by_its_name(bench: Bench) -> None:
    bench.put("photo.txt", PNG)
    bench.put("text.png", "only words")
    outcome = await bench.run(READ, path="photo.txt")
    assert outcome.content == [
        text_block("[Image, image/png]"),
        image_block(base64.b64encode(PNG).decode(), "image/png"),
    ]
    assert shown(await bench.run(READ, path="text.png")) == "only words"


async def test_a_bmp_becomes_a_png(bench: Bench) -> None:
    bench.put("f.bmp", bmp(3, 2))
    outcome = await bench.run(READ, path="f.bmp")
    note, image = outcome.content
    assert note == text_block("[Image, image/png, converted from image/bmp]")
    assert image["mimeType"] == "image/png"
    assert base64.b64decode(image["data"]).startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (png(2001, 1), "it is 2001x1 pixels"),
        (png(1, 1) + bytes(5 * 1024 * 1024), "the file has 5.0MB"),
        (png(1, 1) + bytes(4 * 1024 * 1024), "it has 5.3MB encoded"),
        (png(1, 1, animated=True), "animated PNG"),
        (gif(1, 1)[:8], "header is damaged"),
        (bmp(2, 2, depth=8), "cannot be converted"),
    ],
)
async def test_an_image_that_cannot_be_sent_is_only_described(
    content: bytes, words: str, bench: Bench
) -> None:
    bench.put("f", content)
    outcome = await bench.run(ReadTool(makes_smaller=False), path="f")
    assert [block["type"] for block in outcome.content] == ["text"]
    assert shown(outcome).startswith("[Image not shown: ")
    assert words in shown(outcome)
