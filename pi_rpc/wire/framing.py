"""Bytes to frames and back, in the two framings a client may speak.

A frame is the bytes of one message. `LINES` ends each with a line feed; `HEADERS` announces its
length as the Language Server Protocol does. The first bytes that arrive tell which one it is.

Promises
- The same bytes give the same frames, however they are split.
- Only 0x0A ends a line; one CR before it is dropped. Nothing else divides text.
- What is too long is skipped without being kept, is told with its size, and work goes on.
- What is sent is one line: U+0085, U+2028 and U+2029 are escaped, and no raw line end is in it.
"""

import enum
import re
from typing import Literal

import msgspec

INBOUND_LIMIT_BYTES = 64 * 1024 * 1024
"""The longest message accepted unless told otherwise: room for a prompt with several images."""
HEADER_LIMIT_BYTES = 8 * 1024
"""The longest block of headers. Real ones have less than a hundred bytes."""
HEAD_BYTES = 512
"""How much of a message that is too long is kept: enough to find its id, which comes early."""


class Framing(enum.Enum):
    """How messages are told apart in the stream."""

    LINES = "lines"
    HEADERS = "headers"


class FrameFault(msgspec.Struct, frozen=True):
    """Bytes that give no frame."""

    reason: Literal["too_long", "malformed_header", "truncated"]
    size_bytes: int
    """How many bytes were given up: of the message, or of the block of headers."""
    head: bytes = b""
    """The first bytes of a message that is too long."""


Frame = bytes | FrameFault
"""One message, or why there is none."""

_HEADERS_BEGIN = b"content-"
_LENGTH_HEADER = b"content-length:"
_SEEK_LENGTH_HEADER = re.compile(re.escape(_LENGTH_HEADER), re.IGNORECASE)
_PLAIN_HEADERS = re.compile(rb"Content-Length: (\d{1,15})\r\n\r\n")
_END_OF_HEADERS = re.compile(rb"\r?\n\r?\n")
_LENGTH = re.compile(rb"\d{1,15}")


def frame(payload: bytes, framing: Framing) -> bytes:
    """The bytes that carry one JSON text."""
    if not payload.isascii():
        payload = _without_unicode_line_ends(payload)
    if framing is Framing.HEADERS:
        return b"Content-Length: %d\r\n\r\n%b" % (len(payload), payload)
    # Inside its strings JSON has no raw line end, so that one can only be white space between
    # tokens: stored JSON that was passed through as it is.
    if b"\n" in payload or b"\r" in payload:
        payload = payload.replace(b"\n", b" ").replace(b"\r", b" ")
    return payload + b"\n"


def _without_unicode_line_ends(payload: bytes) -> bytes:
    # A single byte is found many times faster than three, and most texts hold none of them.
    if b"\xa8" in payload and b"\xe2\x80\xa8" in payload:
        payload = payload.replace(b"\xe2\x80\xa8", rb"\u2028")
    if b"\xa9" in payload and b"\xe2\x80\xa9" in payload:
        payload = payload.replace(b"\xe2\x80\xa9", rb"\u2029")
    if b"\x85" in payload and b"\xc2\x85" in payload:
        payload = payload.replace(b"\xc2\x85", rb"\u0085")
    return payload


def framing_of(start: bytes) -> Framing | None:
    """The framing that a stream beginning with `start` uses; None while too little has come."""
    begin = start[: len(_HEADERS_BEGIN)].lower()
    if begin == _HEADERS_BEGIN:
        return Framing.HEADERS
    return None if _HEADERS_BEGIN.startswith(begin) else Framing.LINES


class FrameDecoder:
    """Takes a stream apart into frames, a piece at a time.

    `framing` is None until the first bytes have told it.
    """

    def __init__(
        self, limit_bytes: int = INBOUND_LIMIT_BYTES, framing: Framing | None = None
    ) -> None:
        self.framing = framing
        self._limit_bytes = limit_bytes
        self._start = b""
        self._decoder = self._decoder_for(framing) if framing else None

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that `data` completes, in order."""
        if self._decoder is None:
            data = self._start = self._start + data
            self.framing = framing_of(data)
            if self.framing is None:
                return []
            self._decoder = self._decoder_for(self.framing)
        return self._decoder.feed(data)

    def eof(self) -> list[Frame]:
        """What is left when the stream ends: a last line without its end, or a message cut off."""
        if self._decoder is None:
            # Too short to tell: no block of headers could be so short.
            self.framing = Framing.LINES
            self._decoder = self._decoder_for(self.framing)
            self._decoder.feed(self._start)
        return self._decoder.eof()

    def _decoder_for(self, framing: Framing) -> "_LineDecoder | _HeaderDecoder":
        decoder = _LineDecoder if framing is Framing.LINES else _HeaderDecoder
        return decoder(self._limit_bytes)


class _LineDecoder:
    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._held = bytearray()
        """Holds: the unended line, or no more than its head once it is too long."""
        self._size_bytes = 0
        """Holds: the length of the unended line, kept or not."""

    def feed(self, data: bytes) -> list[Frame]:
        *ended, rest = data.split(b"\n")
        frames: list[Frame] = []
        for line in ended:
            if self._size_bytes:
                frames.append(self._end_line(line))
            elif len(line) > self._limit_bytes:
                frames.append(FrameFault("too_long", len(line), line[:HEAD_BYTES]))
            else:
                frames.append(line[:-1] if line.endswith(b"\r") else line)
        if rest:
            self._hold(rest)
        return frames

    def eof(self) -> list[Frame]:
        return [self._end_line(b"")] if self._size_bytes else []

    def _hold(self, part: bytes) -> None:
        self._size_bytes += len(part)
        if self._size_bytes <= self._limit_bytes:
            self._held += part
        else:
            self._held += part[:HEAD_BYTES]
            del self._held[HEAD_BYTES:]

    def _end_line(self, last: bytes) -> Frame:
        self._hold(last)
        line, size = bytes(self._held), self._size_bytes
        self._held = bytearray()
        self._size_bytes = 0
        if size > self._limit_bytes:
            return FrameFault("too_long", size, line)
        return line[:-1] if line.endswith(b"\r") else line


class _HeaderDecoder:
    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._held = bytearray()
        self._at = 0
        """Holds: everything in `_held` before it is done with. 0 between two calls."""
        self._state: Literal["headers", "body", "skip", "seek"] = "headers"
        self._body_bytes = 0
        """The length the headers announced."""
        self._left_bytes = 0
        """What is still to be skipped of a body that is too long."""
        self._head = b""

    def feed(self, data: bytes) -> list[Frame]:
        self._held += data
        frames: list[Frame] = []
        while self._take_step(frames):
            pass
        del self._held[: self._at]
        self._at = 0
        return frames

    def eof(self) -> list[Frame]:
        if self._state == "seek" or (self._state == "headers" and not self._held):
            return []
        skipped = self._body_bytes - self._left_bytes if self._state == "skip" else 0
        return [FrameFault("truncated", skipped + len(self._held))]

    def _take_step(self, frames: list[Frame]) -> bool:
        """Go one step on; False when more bytes are needed for it."""
        match self._state:
            case "headers":
                return self._take_headers(frames)
            case "body":
                return self._take_body(frames)
            case "skip":
                return self._skip_body(frames)
            case "seek":
                return self._seek()

    def _take_headers(self, frames: list[Frame]) -> bool:
        held = self._held
        # Some clients end a body with a line end that its length does not count.
        while self._at < len(held) and held[self._at] in b"\r\n":
            self._at += 1
        plain = _PLAIN_HEADERS.match(held, self._at)
        if plain:
            self._at = plain.end()
            self._begin_body(int(plain[1]))
            return True
        end = _END_OF_HEADERS.search(held, self._at, self._at + HEADER_LIMIT_BYTES)
        if end:
            block, block_end = bytes(held[self._at : end.start()]), end.end()
        elif len(held) - self._at >= HEADER_LIMIT_BYTES:
            block, block_end = b"", self._at + HEADER_LIMIT_BYTES
        else:
            return False
        size, self._at = block_end - self._at, block_end
        length = _length_in(block)
        if length is None:
            # Where the next message begins is unknown now: go on at the next header that says.
            frames.append(FrameFault("malformed_header", size))
            self._state = "seek"
        else:
            self._begin_body(length)
        return True

    def _begin_body(self, length: int) -> None:
        self._body_bytes = self._left_bytes = length
        self._state = "body" if length <= self._limit_bytes else "skip"
        self._head = b""

    def _take_body(self, frames: list[Frame]) -> bool:
        end = self._at + self._body_bytes
        if len(self._held) < end:
            return False
        with memoryview(self._held) as view:
            frames.append(bytes(view[self._at : end]))
        self._at = end
        self._state = "headers"
        return True

    def _skip_body(self, frames: list[Frame]) -> bool:
        end = min(self._at + self._left_bytes, len(self._held))
        if (room := HEAD_BYTES - len(self._head)) > 0:
            self._head += self._held[self._at : min(end, self._at + room)]
        self._left_bytes -= end - self._at
        self._at = end
        if self._left_bytes:
            return False
        frames.append(FrameFault("too_long", self._body_bytes, self._head))
        self._state = "headers"
        return True

    def _seek(self) -> bool:
        found = _SEEK_LENGTH_HEADER.search(self._held, self._at)
        if found is None:
            self._at = max(self._at, len(self._held) - len(_LENGTH_HEADER) + 1)
            return False
        self._at = found.start()
        self._state = "headers"
        return True


def _length_in(block: bytes) -> int | None:
    """The length that a block of headers announces; None when it does not, or twice."""
    lengths = []
    for line in block.split(b"\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() + b":" == _LENGTH_HEADER:
            lengths.append(value.strip())
    if len(lengths) != 1 or not _LENGTH.fullmatch(lengths[0]):
        return None
    return int(lengths[0])
