"""A file or an image, in part or whole.

Promises
- Memory stays bounded whatever the file's size: only what is shown is kept.
- Lines end with a newline and nothing else, and are counted as they are: what follows the last
  newline is a line only when something is there.
- What is left out is said, with the offset that goes on.
"""

import base64
import codecs
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import anyio.from_thread
import anyio.to_thread
import msgspec

from pi_rpc.core.arguments import checked
from pi_rpc.core.errors import Invalid, Stopped
from pi_rpc.core.images import ImageLimits
from pi_rpc.core.messages import (
    Block,
    JsonObject,
    ToolCall,
    ToolDeclaration,
    ToolOutcome,
    image_block,
    text_block,
)
from pi_rpc.core.ports.tools import CallContext, Effect, StopSignal, ToolSettings
from pi_rpc.tools.files import chunks_of, opened_to_read, system_failures
from pi_rpc.tools.images import SNIFF_BYTES, Format, format_of, png_from_bmp, size_of
from pi_rpc.tools.paths import real_place, resolved_to_read
from pi_rpc.tools.resizing import is_available, resized
from pi_rpc.tools.truncate import Head, Limits, Truncation, size_text

IMAGE_FILE_BYTES_MAX = 64 * 1024 * 1024
"""Largest file that is made smaller."""


class ReadTool:
    """Shows a text file from a line on, or an image."""

    effect: Effect = "none"
    sequential = False
    declaration = ToolDeclaration(
        name="read",
        description=(
            "Show a file. Text comes from its first line or from `offset` on, at most 2000 lines or"
            " 50KB a call; a notice says when there is more and which offset continues. JPEG, PNG,"
            " GIF, WebP and BMP files come as images."
        ),
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "File, absolute or relative to the cwd"},
                "offset": {"type": "integer", "description": "First line to show, counted from 1"},
                "limit": {"type": "integer", "minimum": 0, "description": "Most lines to show"},
            },
            "required": ["path"],
        },
    )

    def __init__(self, limits: Limits | None = None, *, makes_smaller: bool = True) -> None:
        self._limits = limits or Limits()
        self._makes_smaller = makes_smaller
        """Whether pictures are made smaller, where that can be done."""

    async def place_of(self, arguments: JsonObject, cwd: Path) -> Path:
        """Where it leads."""
        return await real_place(str(arguments["path"]), cwd, resolved_to_read)

    async def run(self, call: ToolCall, context: CallContext) -> ToolOutcome:
        """Raises Missing `file_not_found`, Refused, and Invalid `offset_beyond_end`."""
        arguments = checked(call.arguments, self.declaration.parameters)
        return await anyio.to_thread.run_sync(self._read, arguments, context)

    def _read(self, arguments: JsonObject, context: CallContext) -> ToolOutcome:
        given = arguments["path"]
        path = resolved_to_read(given, context.cwd)
        with system_failures(path):
            descriptor = opened_to_read(path)
            try:
                kind = format_of(os.pread(descriptor, SNIFF_BYTES, 0))
                if kind is not None:
                    return self._image(descriptor, kind, context.settings)
                # Negative offsets are read as the start, as 0 is.
                first = max(1, arguments.get("offset", 1))
                part = _Part(first, arguments.get("limit"), self._limits)
                for chunk in _until_stopped(chunks_of(descriptor), context.stop):
                    part.feed(chunk)
                return part.outcome(given, path)
            finally:
                os.close(descriptor)

    def _image(self, descriptor: int, kind: Format, wanted: ToolSettings) -> ToolOutcome:
        makes_smaller = self._makes_smaller and wanted.makes_images_smaller and is_available()
        shown = _picture(descriptor, kind, wanted.image_limits, makes_smaller)
        details = None
        if wanted.blind_model is not None:
            # Another model of the session may see it: what is stored is not what one model takes.
            details = {"imageUnsupportedByModel": wanted.blind_model}
        if isinstance(shown, str):
            return ToolOutcome(content=[text_block(f"[Image not shown: {shown}]")], details=details)
        encoded = base64.b64encode(shown.content).decode()
        blocks: list[Block] = [
            text_block(f"[Image, {shown.mime_type}{shown.note}]"),
            image_block(encoded, shown.mime_type),
        ]
        return ToolOutcome(content=blocks, details=details)


class _Part:
    """The lines of a file from `first` on, at most `limit` of them."""

    def __init__(self, first: int, limit: int | None, limits: Limits) -> None:
        self._first = first
        self._limit = limit
        self._head = Head(limits)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._newlines = 0
        self._is_line_open = False

    def feed(self, chunk: bytes) -> None:
        """Count every line, and keep those asked for."""
        found = chunk.count(b"\n")
        start = _after_newlines(chunk, self._first - 1 - self._newlines)
        end = len(chunk)
        if self._limit is not None:
            end = _after_newlines(chunk, self._first - 1 + self._limit - self._newlines)
        if start < end:
            self._head.feed(self._decoder.decode(chunk[start:end]))
        self._newlines += found
        self._is_line_open = not chunk.endswith(b"\n")

    def outcome(self, given: str, path: Path) -> ToolOutcome:
        """What is shown, and what is said about the rest."""
        self._head.feed(self._decoder.decode(b"", final=True))
        total = self._newlines + self._is_line_open
        if self._first > max(1, total):
            raise Invalid(
                "offset_beyond_end",
                f"Offset {self._first} is beyond the end: {given} has {total} lines.",
                offset=self._first,
                totalLines=total,
            )
        kept = self._head.truncation()
        notice = self._notice(kept, path, total)
        text = kept.content
        if notice is not None:
            text = text.removesuffix("\n")
            text = f"{text}\n\n{notice}" if text else notice
        details = {"truncation": kept.as_object()} if kept.truncated else None
        return ToolOutcome(content=[text_block(text)], details=details)

    def _notice(self, kept: Truncation, path: Path, total: int) -> str | None:
        first, shown = self._first, kept.output_lines
        following = first + shown
        most = size_text(kept.limits.size_bytes)
        if kept.first_line_exceeds_limit:
            size = size_text(self._head.counts.first_line_bytes)
            command = f"sed -n '{first}p' {shlex.quote(str(path))}"
            return (
                f"[Line {first} alone has {size}; at most {most} can be shown."
                f" A part of it: {command} | head -c {kept.limits.size_bytes}]"
            )
        if kept.truncated:
            why = f" The limit of {most} was reached." if kept.truncated_by == "bytes" else ""
            return (
                f"[Lines {first}-{following - 1} of {total} are shown.{why}"
                f" To go on, use offset {following}.]"
            )
        if following <= total:
            return f"[{total - following + 1} more lines. To go on, use offset {following}.]"
        return None


def _after_newlines(chunk: bytes, count: int) -> int:
    """Where the line begins that `count` newlines come before; the end when there are fewer."""
    if count <= 0:
        return 0
    if count > chunk.count(b"\n"):
        return len(chunk)
    at = 0
    for _ in range(count):
        at = chunk.index(b"\n", at) + 1
    return at


def _until_stopped(chunks: Iterator[bytes], stop: StopSignal) -> Iterator[bytes]:
    for chunk in chunks:
        anyio.from_thread.check_cancelled()
        if stop.is_set():
            raise Stopped("aborted", "Reading was stopped.")
        yield chunk


class _Picture(msgspec.Struct, frozen=True):
    content: bytes
    mime_type: str
    note: str = ""


def _encoded_bytes(content: bytes) -> int:
    return (len(content) + 2) // 3 * 4


def _smaller(content: bytes, kind: Format, limits: ImageLimits) -> _Picture | None:
    """The picture made smaller; None where that cannot be done."""
    made = resized(content, limits)
    if made is None:
        return None
    note = f", converted from image/{kind}" if made.mime_type != f"image/{kind}" else ""
    if made.before != made.after:
        was, now = (f"{width}x{height}" for width, height in (made.before, made.after))
        scale = made.before[0] / made.after[0]
        note += f", {was} shown as {now}: multiply coordinates by {scale:.2f}"
    return _Picture(made.content, made.mime_type, note)


def _picture(
    descriptor: int, kind: Format, limits: ImageLimits, makes_smaller: bool
) -> _Picture | str:
    """The picture to show, or why it is not shown."""
    size_bytes = os.fstat(descriptor).st_size
    # A BMP shrinks when it is packed, so it may be somewhat larger before.
    most_bytes = limits.max_bytes * (4 if kind == "bmp" else 1)
    if makes_smaller:
        most_bytes = IMAGE_FILE_BYTES_MAX
    limit = f"at most {size_text(limits.max_bytes)} encoded"
    if size_bytes > most_bytes:
        return f"the file has {size_text(size_bytes)}, {limit} can be sent."
    content = b"".join(chunks_of(descriptor))
    size = size_of(content, kind)
    if size is None or not size.width or not size.height:
        return f"the {kind.upper()} header is damaged."
    too_large = not limits.has_room_for(size.width, size.height)
    is_heavy = kind != "bmp" and _encoded_bytes(content) > limits.max_bytes
    if makes_smaller and (too_large or is_heavy):
        smaller = _smaller(content, kind, limits)
        if smaller is not None:
            return smaller
    if too_large:
        return (
            f"it is {size.width}x{size.height} pixels, at most"
            f" {limits.max_width}x{limits.max_height} can be sent. Make a smaller copy and read"
            " that."
        )
    if kind == "apng":
        return "animated PNG is not taken by models."
    mime_type, note = f"image/{kind}", ""
    if kind == "bmp":
        packed = png_from_bmp(content)
        if makes_smaller and (packed is None or _encoded_bytes(packed) > limits.max_bytes):
            smaller = _smaller(content, kind, limits)
            if smaller is not None:
                return smaller
        if packed is None:
            return "this kind of BMP cannot be converted. Make a PNG of it and read that."
        content, mime_type, note = packed, "image/png", ", converted from image/bmp"
    encoded_bytes = _encoded_bytes(content)
    if encoded_bytes > limits.max_bytes:
        return f"it has {size_text(encoded_bytes)} encoded, {limit} can be sent."
    return _Picture(content, mime_type, note)
