"""Images that somebody sends: what may be stored and shown to a model."""

import binascii

import msgspec

from pi_rpc.core.errors import Failure, Invalid, Overfull
from pi_rpc.core.messages import Block, image_block, text_block

IMAGE_BASE64_BYTES_MAX = int(4.5 * 1024 * 1024)
"""Largest encoded image; providers refuse 5 MiB, and the rest is room for the message."""

IMAGE_SIDE_MAX = 2000
"""Longest side, in pixels, that every provider takes as it is."""


class ImageLimits(msgspec.Struct, frozen=True, rename="camel"):
    """How large a picture may be that a model is shown."""

    max_width: int = IMAGE_SIDE_MAX
    max_height: int = IMAGE_SIDE_MAX
    max_bytes: int = IMAGE_BASE64_BYTES_MAX
    """Of base64."""
    jpeg_quality: int = 80
    """What is tried first where it has to be packed anew, 1 to 100."""

    @property
    def content_bytes(self) -> int:
        """The largest content whose base64 fits."""
        return self.max_bytes // 4 * 3

    def has_room_for(self, width: int, height: int) -> bool:
        """Whether a picture of this size needs no shrinking."""
        return width <= self.max_width and height <= self.max_height


CONTENT_CHARS_MAX = 1 << 20
"""Text of one message that somebody else gives; more would crowd out the conversation."""

_STARTS = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}
"""What every provider takes, and how it begins."""


def checked_image(data: str, mime_type: str) -> Block:
    """An image block of base64 and a type. Raises Invalid `bad_image`, Overfull `image_too_large`.

    A stored image that no provider takes would fail every later request of its session.
    """
    if mime_type not in _STARTS:
        told = f"an image is one of {', '.join(_STARTS)}, not {mime_type[:64]!r}"
        raise Invalid("bad_image", told, mimeType=mime_type[:64])
    if len(data) > IMAGE_BASE64_BYTES_MAX:
        told = f"an image has at most {IMAGE_BASE64_BYTES_MAX} bytes of base64"
        raise Overfull("image_too_large", told, limit=IMAGE_BASE64_BYTES_MAX, bytes=len(data))
    try:
        content = binascii.a2b_base64(data, strict_mode=True)
    except ValueError as problem:
        raise Invalid("bad_image", f"the image is no base64: {problem}") from problem
    if not content.startswith(_STARTS[mime_type]):
        raise Invalid("bad_image", f"the image is no {mime_type}", mimeType=mime_type)
    return image_block(data, mime_type)


def problem_of_content(content: str | list[Block]) -> str | None:
    """What is wrong with content that somebody else gives; None when it can be stored."""
    blocks = [text_block(content)] if isinstance(content, str) else content
    chars = 0
    for block in blocks:
        text = block.get("text")
        if block.get("type") == "text" and isinstance(text, str):
            chars += len(text)
        elif block.get("type") != "image":
            return "content that is neither text nor image"
        else:
            try:
                checked_image(str(block.get("data")), str(block.get("mimeType")))
            except Failure as problem:
                return f"an image that cannot be stored: {problem.message}"
    return (
        f"more than {CONTENT_CHARS_MAX} characters of text" if chars > CONTENT_CHARS_MAX else None
    )
