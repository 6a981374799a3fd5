"""Images told by their first bytes; pure.

A name says nothing: a text may be called `.png`. What models take is passed on untouched; a plain
BMP, which they do not take, is packed as PNG without loss.
"""

import struct
import zlib
from typing import Literal

import msgspec

SNIFF_BYTES = 4100
"""How much of a file's start tells what it is."""

Format = Literal["jpeg", "png", "apng", "gif", "webp", "bmp"]

_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG_BARE = frozenset({0xFF, 0x01, *range(0xD0, 0xD9)})
# Frame headers carry the size; C4, C8 and CC in the same range are tables and extensions.
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


class Size(msgspec.Struct, frozen=True):
    """Width and height in pixels."""

    width: int
    height: int


def format_of(start: bytes) -> Format | None:
    """The image format a file begins with; None when it is none of those known."""
    if start[:3] == b"\xff\xd8\xff" and start[3:4] != b"\xf7":
        return "jpeg"
    if start.startswith(_PNG):
        return "apng" if _is_animated(start) else "png"
    if start[:6] in (b"GIF87a", b"GIF89a"):
        return "gif"
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "webp"
    # Two letters begin many a text, so the fixed zeros and the header's size must be there too.
    if start[:2] == b"BM" and start[6:10] == bytes(4) and start[14:18] in _BMP_HEADERS:
        return "bmp"
    return None


_BMP_HEADERS = {struct.pack("<I", size) for size in (12, 40, 52, 56, 64, 108, 124)}


def size_of(content: bytes, kind: Format) -> Size | None:
    """The size an image says it has; None when its header is damaged."""
    try:
        match kind:
            case "png" | "apng":
                return Size(*struct.unpack_from(">II", content, 16))
            case "gif":
                return Size(*struct.unpack_from("<HH", content, 6))
            case "bmp":
                return _size_of_bmp(content)
            case "webp":
                return _size_of_webp(content)
            case "jpeg":
                return _size_of_jpeg(content)
    except (struct.error, IndexError):
        return None


def png_from_bmp(content: bytes) -> bytes | None:
    """An uncompressed BMP of 24 or 32 bits a pixel as PNG; None for the rarer kinds."""
    try:
        start, header, width, height, _, depth, packing = struct.unpack_from(
            "<IIiiHHI", content, 10
        )
    except struct.error:
        return None
    pixel_bytes = depth // 8
    stride = (width * pixel_bytes + 3) & ~3
    rows = abs(height)
    if header < 40 or packing != 0 or depth not in (24, 32) or width <= 0 or rows == 0:
        return None
    if len(content) < start + stride * rows:
        return None
    packed = bytearray()
    for row in range(rows):
        # Rows stand bottom first unless the height is negative.
        at = start + stride * (row if height < 0 else rows - 1 - row)
        pixels = content[at : at + width * pixel_bytes]
        line = bytearray(width * 3)
        line[0::3], line[1::3], line[2::3] = (pixels[at::pixel_bytes] for at in (2, 1, 0))
        packed += b"\0" + line
    header_chunk = struct.pack(">IIBBBBB", width, rows, 8, 2, 0, 0, 0)
    return b"".join(
        (
            _PNG,
            _chunk(b"IHDR", header_chunk),
            _chunk(b"IDAT", zlib.compress(bytes(packed))),
            _chunk(b"IEND", b""),
        )
    )


def _is_animated(start: bytes) -> bool:
    at = len(_PNG)
    while at + 8 <= len(start):
        length, name = struct.unpack_from(">I4s", start, at)
        if name == b"acTL":
            return True
        if name == b"IDAT":
            return False
        at += 12 + length
    return False


def _size_of_bmp(content: bytes) -> Size:
    if struct.unpack_from("<I", content, 14) == (12,):
        return Size(*struct.unpack_from("<HH", content, 18))
    width, height = struct.unpack_from("<ii", content, 18)
    return Size(width, abs(height))


def _size_of_webp(content: bytes) -> Size | None:
    match content[12:16]:
        case b"VP8X":
            width = int.from_bytes(content[24:27], "little")
            height = int.from_bytes(content[27:30], "little")
            return Size(width + 1, height + 1)
        case b"VP8L":
            bits = struct.unpack_from("<I", content, 21)[0]
            return Size((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", content, 26)
            return Size(width & 0x3FFF, height & 0x3FFF)
    return None


def _size_of_jpeg(content: bytes) -> Size | None:
    at = 2
    while content[at] == 0xFF:
        marker = content[at + 1]
        if marker in _JPEG_BARE:
            # These carry no length; FF may also be repeated as padding.
            at += 1 if marker == 0xFF else 2
            continue
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", content, at + 5)
            return Size(width, height)
        at += 2 + int.from_bytes(content[at + 2 : at + 4], "big")
    return None


def _chunk(name: bytes, content: bytes) -> bytes:
    checksum = struct.pack(">I", zlib.crc32(name + content))
    return struct.pack(">I", len(content)) + name + content + checksum
