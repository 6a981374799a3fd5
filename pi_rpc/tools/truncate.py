"""Heads and tails of text, by lines and bytes, with memory bounded whatever comes.

Bytes are those of UTF-8. A newline at the end closes the last line and begins none.

Promises
- A head holds whole lines from the start, a tail whole lines to the end; only a last line that is
  too big by itself is cut, on a character's edge.
- Totals count everything that was fed, kept or not.
"""

from typing import Literal

import msgspec

from pi_rpc.core.messages import JsonObject

LINES_MAX = 2000
"""Lines a model is shown at once."""
BYTES_MAX = 50 * 1024
"""Bytes a model is shown at once."""


class Limits(msgspec.Struct, frozen=True):
    """How much is shown."""

    lines: int = LINES_MAX
    size_bytes: int = BYTES_MAX


class Truncation(msgspec.Struct, frozen=True):
    """What was kept of a text, and what it was kept of."""

    content: str
    truncated_by: Literal["lines", "bytes"] | None
    total_lines: int
    total_bytes: int
    output_lines: int
    limits: Limits
    last_line_partial: bool = False
    first_line_exceeds_limit: bool = False

    @property
    def truncated(self) -> bool:
        """Whether anything was left out."""
        return self.truncated_by is not None

    def as_object(self) -> JsonObject:
        """The stored form. `content` is left out: the text block beside it holds it already."""
        return {
            "truncated": self.truncated,
            "truncatedBy": self.truncated_by,
            "totalLines": self.total_lines,
            "totalBytes": self.total_bytes,
            "outputLines": self.output_lines,
            "outputBytes": len(self.content.encode()),
            "lastLinePartial": self.last_line_partial,
            "firstLineExceedsLimit": self.first_line_exceeds_limit,
            "maxLines": self.limits.lines,
            "maxBytes": self.limits.size_bytes,
        }


class Counts:
    """Lines and bytes of a text that comes in pieces."""

    def __init__(self) -> None:
        self.total_bytes = 0
        self._newlines = 0
        self._open_bytes = 0
        self._closed_bytes = 0
        self.first_line_bytes = 0
        """Size of the first line, without its newline."""

    def feed(self, text: str) -> None:
        """Take in the next piece."""
        size = len(text.encode())
        found = text.count("\n")
        self.total_bytes += size
        first, newline, rest = text.partition("\n")
        if not self._newlines:
            self.first_line_bytes += len(first.encode())
        if not newline:
            self._open_bytes += size
            return
        before, _, after = rest.rpartition("\n")
        if found == 1:
            self._closed_bytes = self._open_bytes + len(first.encode())
        else:
            self._closed_bytes = len(before.rpartition("\n")[2].encode())
        self._open_bytes = len(after.encode())
        self._newlines += found

    @property
    def total_lines(self) -> int:
        """Lines so far, an unfinished last one included."""
        return self._newlines + (1 if self._open_bytes else 0)

    @property
    def last_line_bytes(self) -> int:
        """Size of the last line so far, without its newline."""
        return self._open_bytes or self._closed_bytes


class Head:
    """The first whole lines of a text that comes in pieces."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._kept: list[str] = []
        self._kept_bytes = 0
        self.counts = Counts()

    def feed(self, text: str) -> None:
        """Take in the next piece."""
        self.counts.feed(text)
        # One byte above the limit is enough to know that a line does not fit.
        if text and self._kept_bytes <= self._limits.size_bytes:
            kept = text[: self._limits.size_bytes + 1]
            self._kept.append(kept)
            self._kept_bytes += len(kept.encode())

    def truncation(self) -> Truncation:
        """What is kept so far."""
        text, limits, counts = "".join(self._kept), self._limits, self.counts
        if counts.total_lines <= limits.lines and counts.total_bytes <= limits.size_bytes:
            return Truncation(
                text, None, counts.total_lines, counts.total_bytes, counts.total_lines, limits
            )
        kept = _first_lines(_lines_of(text), limits)
        return Truncation(
            content="\n".join(kept),
            truncated_by=_cause(kept, limits) if len(kept) < counts.total_lines else None,
            total_lines=counts.total_lines,
            total_bytes=counts.total_bytes,
            output_lines=len(kept),
            limits=limits,
            first_line_exceeds_limit=counts.first_line_bytes > limits.size_bytes,
        )


class Tail:
    """The last whole lines of a text that comes in pieces."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._kept = ""
        self.counts = Counts()

    def feed(self, text: str) -> None:
        """Take in the next piece."""
        self.counts.feed(text)
        self._kept += text
        # With two characters more than the limit has bytes, a line that lost its start can never
        # be taken for a whole one: it does not fit.
        room = self._limits.size_bytes + 2
        if len(self._kept) > 2 * room:
            self._kept = self._kept[-room:]

    def truncation(self) -> Truncation:
        """What is kept so far."""
        text, limits, counts = self._kept, self._limits, self.counts
        if counts.total_lines <= limits.lines and counts.total_bytes <= limits.size_bytes:
            return Truncation(
                text, None, counts.total_lines, counts.total_bytes, counts.total_lines, limits
            )
        lines = _lines_of(text)
        whole = _first_lines(lines[::-1], limits)[::-1]
        partial = not whole
        kept = [_last_bytes(lines[-1], limits.size_bytes)] if partial else whole
        return Truncation(
            content="\n".join(kept),
            truncated_by=_cause(whole, limits) if len(whole) < counts.total_lines else None,
            total_lines=counts.total_lines,
            total_bytes=counts.total_bytes,
            output_lines=len(kept),
            limits=limits,
            last_line_partial=partial,
        )


def head(text: str, limits: Limits | None = None) -> Truncation:
    """The first whole lines of a text."""
    kept = Head(limits)
    kept.feed(text)
    return kept.truncation()


def tail(text: str, limits: Limits | None = None) -> Truncation:
    """The last whole lines of a text."""
    kept = Tail(limits)
    kept.feed(text)
    return kept.truncation()


def size_text(size_bytes: int) -> str:
    """A size as people read it: `12B`, `58.6KB`, `1.5MB`."""
    if size_bytes < 1024:
        return f"{size_bytes}B"
    if size_bytes < 1024 * 1024:
        return f"{size_bytes / 1024:.1f}KB"
    return f"{size_bytes / (1024 * 1024):.1f}MB"


def _lines_of(text: str) -> list[str]:
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _first_lines(lines: list[str], limits: Limits) -> list[str]:
    kept: list[str] = []
    used = 0
    for line in lines[: limits.lines]:
        used += len(line.encode()) + (1 if kept else 0)
        if used > limits.size_bytes:
            return kept
        kept.append(line)
    return kept


def _cause(kept: list[str], limits: Limits) -> Literal["lines", "bytes"]:
    return "lines" if len(kept) == limits.lines else "bytes"


def _last_bytes(line: str, size_bytes: int) -> str:
    cut = line.encode()[-size_bytes:]
    # Bytes 10xxxxxx continue a character whose start was cut away.
    start = 0
    while start < len(cut) and cut[start] & 0xC0 == 0x80:
        start += 1
    return cut[start:].decode()
