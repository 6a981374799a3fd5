"""Pictures made small enough to be sent; without Pillow there is nothing to test."""

import base64
import io
from typing import Any

import pytest

from pi_rpc.core.images import IMAGE_SIDE_MAX, ImageLimits
from pi_rpc.core.ports.tools import ToolSettings
from pi_rpc.tools.read import ReadTool
from pi_rpc.tools.resizing import Resized, is_available, resized
from tests.tools.conftest import Bench

if not is_available():
    pytest.skip("Pillow is not installed", allow_module_level=True)

from PIL import Image

MANY_BYTES = 1 << 22


def within(side: int, content_bytes: int = MANY_BYTES) -> ImageLimits:
    return ImageLimits(side, side, content_bytes * 4 // 3)


def packed(size: tuple[int, int], kind: str = "PNG", mode: str = "RGB", **options: Any) -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, size, 128).save(buffer, kind, **options)
    return buffer.getvalue()


def noise(side: int) -> bytes:
    """A picture that does not get small by packing."""
    image = Image.effect_noise((side, side), 100)
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def size_of(made: Resized | None) -> tuple[int, int]:
    assert made is not None
    image = Image.open(io.BytesIO(made.content))
    assert image.get_format_mimetype() == made.mime_type
    assert image.size == made.after
    return made.after


def test_a_wide_picture_keeps_its_shape() -> None:
    made = resized(packed((400, 100)), within(200))
    assert size_of(made) == (200, 50)
    assert made is not None
    assert made.before == (400, 100)


def test_a_very_thin_picture_keeps_a_pixel() -> None:
    assert size_of(resized(packed((4000, 1)), within(100))) == (100, 1)


def test_a_picture_that_is_too_heavy_is_shrunk_until_it_fits() -> None:
    made = resized(noise(400), within(400, 20_000))
    width, _ = size_of(made)
    assert made is not None
    assert width < 400 and len(made.content) <= 20_000


def test_a_limit_that_nothing_fits_gives_nothing() -> None:
    assert resized(noise(8), within(8, 10)) is None


def test_the_orientation_a_camera_noted_is_applied() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    made = resized(packed((40, 20), "JPEG", exif=exif), within(20))
    assert size_of(made) == (10, 20)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "1", "L", "CMYK"])
def test_every_kind_of_colour_can_be_shown(mode: str) -> None:
    kind = "JPEG" if mode == "CMYK" else "PNG"
    assert size_of(resized(packed((64, 64), kind, mode), within(16))) == (16, 16)


@pytest.mark.parametrize("content", [b"", b"text", packed((9, 9))[:40], b"\x89PNG\r\n\x1a\n"])
def test_what_is_damaged_gives_nothing(content: bytes) -> None:
    assert resized(content, within(100)) is None


@pytest.mark.anyio
async def test_a_large_picture_is_read_smaller_and_that_is_said(bench: Bench) -> None:
    bench.put("wide.png", packed((4000, 1000)))
    outcome = await bench.run(ReadTool(), path="wide.png")
    note, image = outcome.content
    assert note["text"].endswith("4000x1000 shown as 2000x500: multiply coordinates by 2.00]")
    shown = Image.open(io.BytesIO(base64.b64decode(image["data"])))
    assert shown.size == (IMAGE_SIDE_MAX, 500)


def test_width_and_height_have_limits_of_their_own() -> None:
    assert size_of(resized(packed((400, 100)), ImageLimits(300, 20))) == (80, 20)


def test_the_quality_asked_for_is_tried_first() -> None:
    content = noise(400)
    rough, fine = (
        resized(content, ImageLimits(200, 200, jpeg_quality=quality)) for quality in (5, 80)
    )
    assert rough is not None and fine is not None
    assert rough.mime_type == fine.mime_type == "image/jpeg"
    assert len(rough.content) < len(fine.content) / 2


@pytest.mark.anyio
async def test_a_model_may_have_limits_of_its_own(bench: Bench) -> None:
    bench.settings = ToolSettings(image_limits=ImageLimits(64, 64))
    bench.put("wide.png", packed((128, 32)))
    outcome = await bench.run(ReadTool(), path="wide.png")
    note, image = outcome.content
    assert "128x32 shown as 64x16" in note["text"]
    assert Image.open(io.BytesIO(base64.b64decode(image["data"]))).size == (64, 16)


@pytest.mark.anyio
async def test_a_picture_is_not_made_smaller_where_that_is_not_wanted(bench: Bench) -> None:
    bench.settings = ToolSettings(makes_images_smaller=False)
    bench.put("wide.png", packed((4000, 1000)))
    outcome = await bench.run(ReadTool(), path="wide.png")
    [told] = outcome.content
    assert told["text"].startswith("[Image not shown: it is 4000x1000 pixels")


@pytest.mark.anyio
async def test_a_bmp_that_we_cannot_pack_is_converted(bench: Bench) -> None:
    bench.put("f.bmp", packed((8, 8), "BMP", "L"))
    outcome = await bench.run(ReadTool(), path="f.bmp")
    assert outcome.content[0]["text"].startswith("[Image, image/png, converted from image/bmp")
