"""Images that somebody sends: what may be stored and shown to a model."""

import binascii

from pi_rpc.core.errors import Invalid, Overfull
from pi_rpc.core.messages import Block, image_block

IMAGE_BASE64_BYTES_MAX = int(4.5 * 1024 * 1024)
"""Largest encoded image; providers refuse 5 MiB, and the rest is room for the message."""

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
