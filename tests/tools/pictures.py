"""Small images, made byte by byte."""

import struct
import zlib


def png(width: int, height: int, animated: bool = False) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress((b"\0" + b"\xff\0\0" * width) * height)
    parts = [(b"IHDR", header), (b"IDAT", pixels), (b"IEND", b"")]
    if animated:
        parts.insert(1, (b"acTL", struct.pack(">II", 1, 0)))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in parts
    )


PNG = png(2, 3)


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0;"


def jpeg(width: int, height: int) -> bytes:
    app = b"\xff\xe1" + struct.pack(">H", 6002) + bytes(6000)
    frame = b"\xff\xff\xc2" + struct.pack(">HBHH", 11, 8, height, width) + bytes(4)
    return b"\xff\xd8" + app + frame + b"\xff\xd9"


def webp(width: int, height: int, kind: bytes) -> bytes:
    if kind == b"VP8X":
        sizes = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
        body = bytes(4) + sizes
    elif kind == b"VP8L":
        body = b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14)
    else:
        body = b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height)
    chunk = kind + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", len(chunk) + 4) + b"WEBP" + chunk


def bmp(width: int, height: int, depth: int = 24, top_first: bool = False) -> bytes:
    """Pixel (x, y), counted from the top left, is red 10x, green 10y, blue 7."""
    pixel_bytes = depth // 8
    rows = []
    for y in range(height):
        row = b"".join(bytes([7, 10 * y, 10 * x, 0][:pixel_bytes]) for x in range(width))
        rows.append(row + bytes(-len(row) % 4))
    pixels = b"".join(rows if top_first else rows[::-1])
    signed = -height if top_first else height
    header = struct.pack("<IiiHHIIiiII", 40, width, signed, 1, depth, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54 + len(pixels), 0, 0, 54) + header + pixels
