"""Images are told by their first bytes."""

import struct
import zlib

import pytest

from pi_rpc.tools.images import Size, format_of, png_from_bmp, size_of
from tests.tools.pictures import bmp, gif, jpeg, png, webp


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (png(4, 3), "png"),
        (png(4, 3, animated=True), "apng"),
        (jpeg(4, 3), "jpeg"),
        (gif(4, 3), "gif"),
        (webp(4, 3, b"VP8 "), "webp"),
        (webp(4, 3, b"VP8L"), "webp"),
        (webp(4, 3, b"VP8X"), "webp"),
        (bmp(4, 3), "bmp"),
        (bmp(4, 3, top_first=True), "bmp"),
    ],
)
def test_every_format_is_known_with_its_size(content: bytes, kind: str) -> None:
    found = format_of(content)
    assert found == kind
    assert size_of(content, found) == Size(4, 3)


@pytest.mark.parametrize(
    "content", [b"", b"BMW is a maker of cars, not a picture", b"\xff\xd8\xff\xf7", b"RIFF1234WAVE"]
)
def test_other_bytes_are_no_image(content: bytes) -> None:
    assert format_of(content) is None


@pytest.mark.parametrize("content", [png(1, 1)[:12], gif(1, 1)[:7], jpeg(1, 1)[:50]])
def test_a_header_that_breaks_off_has_no_size(content: bytes) -> None:
    kind = format_of(content)
    assert kind is not None
    assert size_of(content, kind) is None


@pytest.mark.parametrize(("depth", "top_first"), [(24, False), (32, False), (24, True)])
def test_a_bmp_becomes_a_png_of_the_same_pixels(depth: int, top_first: bool) -> None:
    made = png_from_bmp(bmp(3, 2, depth, top_first))
    assert made is not None
    assert size_of(made, "png") == Size(3, 2)
    at = made.index(b"IDAT")
    (length,) = struct.unpack_from(">I", made, at - 4)
    rows = [b"\0" + b"".join(bytes([10 * x, 10 * y, 7]) for x in range(3)) for y in range(2)]
    assert zlib.decompress(made[at + 4 : at + 4 + length]) == b"".join(rows)


def test_a_bmp_that_breaks_off_or_is_packed_is_not_converted() -> None:
    assert png_from_bmp(bmp(3, 2)[:-1]) is None
    assert png_from_bmp(bmp(3, 2)[:20]) is None
    assert png_from_bmp(bmp(3, 2, depth=16)) is None
