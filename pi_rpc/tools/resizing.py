"""Pictures made small enough to be sent, where Pillow is installed (the extra `images`).

The orientation a camera noted is applied, for it is lost with the rest of its notes.
"""

import importlib
import io
import warnings
from collections.abc import Iterator
from typing import Any

import msgspec

from pi_rpc.core.images import ImageLimits

PIXELS_MAX = 100_000_000
"""Larger pictures are not decoded: four bytes a pixel are held while one is made smaller."""

QUALITIES = (85, 70, 55, 40)
"""Of JPEG, in the order they are tried when the one wanted is too large."""

SHRINKING = 0.75
"""What both sides are multiplied with when nothing fits."""


class Resized(msgspec.Struct, frozen=True):
    """A picture that fits."""

    content: bytes
    mime_type: str
    before: tuple[int, int]
    after: tuple[int, int]


def is_available() -> bool:
    """Whether pictures can be made smaller here."""
    return _pillow("Image") is not None


def resized(content: bytes, limits: ImageLimits) -> Resized | None:
    """The picture within the limits; None when it cannot be decoded, or is never small enough.

    Call it from a thread: it computes for a while.
    """
    image_module, operations = _pillow("Image"), _pillow("ImageOps")
    if image_module is None:
        return None
    try:
        with warnings.catch_warnings():
            # Size is bounded here by a limit of our own.
            warnings.simplefilter("ignore")
            opened: Any = image_module.open(io.BytesIO(content))
            if opened.width * opened.height > PIXELS_MAX:
                return None
            image: Any = operations.exif_transpose(opened)
            image.load()
            return _fitted(image, image_module, limits)
    except (OSError, ValueError, SyntaxError, image_module.DecompressionBombError):
        # These are how damaged pictures are refused.
        return None


def _fitted(image: Any, image_module: Any, limits: ImageLimits) -> Resized | None:
    before = (image.width, image.height)
    has_alpha = "A" in image.getbands() or "transparency" in image.info
    image = image.convert("RGBA" if has_alpha else "RGB")
    scale = min(1.0, limits.max_width / image.width, limits.max_height / image.height)
    size = _scaled(before, scale)
    while True:
        shown = image if size == before else image.resize(size, image_module.Resampling.LANCZOS)
        for packed, mime_type in _packings(shown, image_module, limits.jpeg_quality):
            if len(packed) <= limits.content_bytes:
                return Resized(packed, mime_type, before, size)
        if size == (1, 1):
            return None
        size = _scaled(size, SHRINKING)


def _packings(image: Any, image_module: Any, quality: int) -> Iterator[tuple[bytes, str]]:
    """The smaller of PNG and the first JPEG, the other, then JPEGs of other qualities."""
    flat = image
    if image.mode == "RGBA":
        flat = image_module.new("RGB", image.size, (255, 255, 255))
        flat.paste(image, mask=image.getchannel("A"))
    first = [
        (_packed(image, "PNG"), "image/png"),
        (_packed(flat, "JPEG", quality=quality), "image/jpeg"),
    ]
    yield from sorted(first, key=lambda one: len(one[0]))
    for other in QUALITIES:
        yield _packed(flat, "JPEG", quality=other), "image/jpeg"


def _packed(image: Any, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def _scaled(size: tuple[int, int], factor: float) -> tuple[int, int]:
    return max(1, int(size[0] * factor)), max(1, int(size[1] * factor))


def _pillow(name: str) -> Any:
    try:
        return importlib.import_module(f"PIL.{name}")
    except ImportError:
        return None
