"""Where an old text stands in a file, exactly or nearly; pure.

A near match forgives what models and keyboards change without meaning it: letters composed or wide,
curly quotes, long dashes, odd spaces, blanks at the ends of lines. It only serves to find a place:
what is found is always a span of the file as it is.

Promises
- Line breaks match each other, whatever they are made of; a span never parts one.
- A span found nearly begins and ends between whole characters of the file.
"""

import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property

import msgspec

FOUND_MAX = 1000
"""Places counted; beyond it the exact number helps nobody."""

_LOOKALIKES = {
    **dict.fromkeys(range(0x2018, 0x201C), "'"),
    **dict.fromkeys(range(0x201C, 0x2020), '"'),
    **dict.fromkeys((*range(0x2010, 0x2016), 0x2212), "-"),
}
_INSIDE = -1


class Span(msgspec.Struct, frozen=True):
    """Characters `start..end-1` of a file's text."""

    start: int
    end: int
    is_fuzzy: bool = False


def with_plain_breaks(text: str) -> str:
    """The text with every line break as one newline."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


class Source:
    """A file's text, ready to be searched."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._plain = with_plain_breaks(text)
        # Each CRLF before a place moves it one further in the real text.
        self._crlfs = [
            found.start() - shift for shift, found in enumerate(re.finditer("\r\n", text))
        ]

    def spans_of(self, old: str) -> list[Span]:
        """Every place of `old`, overlapping ones too; near ones only if there are no exact ones."""
        wanted = with_plain_breaks(old)
        exact = [
            Span(self._real(at), self._real(at + len(wanted)))
            for at in _places_of(wanted, self._plain)
        ]
        return exact or self._near_spans_of(wanted)

    def _near_spans_of(self, wanted: str) -> list[Span]:
        folded = _Folded(wanted)
        last_line = wanted.rpartition("\n")[2]
        # Blanks that end the wanted text were folded away. They stood for the end of a line, so
        # only there it may match, and the file's own blanks belong to it.
        to_line_end = last_line != last_line.rstrip()
        spans = []
        for at in _places_of(folded.text, self._folded.text) if folded.text else []:
            start = self._folded.real(at)
            end = at + len(folded.text)
            real_end = self._folded.line_end(end) if to_line_end else self._folded.real(end)
            if _INSIDE not in (start, real_end):
                spans.append(Span(self._real(start), self._real(real_end), is_fuzzy=True))
        return spans

    def _real(self, plain: int) -> int:
        return plain + bisect_left(self._crlfs, plain)

    @cached_property
    def _folded(self) -> "_Folded":
        return _Folded(self._plain)


class _Folded:
    """A text as a near match sees it, with the way back to the text it was made of."""

    def __init__(self, plain: str) -> None:
        self._starts: list[int] = []
        self._sources: list[int] = []
        self._lines: list[str] = []
        self._ways: list[Sequence[int] | None] = []
        at = source = 0
        folded_lines = []
        for line in plain.split("\n"):
            folded, way = _folded_line(line)
            folded_lines.append(folded)
            self._starts.append(at)
            self._sources.append(source)
            self._lines.append(line)
            self._ways.append(way)
            at += len(folded) + 1
            source += len(line) + 1
        self.text = "\n".join(folded_lines)

    def real(self, at: int) -> int:
        """The place in the source; `_INSIDE` when it falls within what one character became."""
        row = bisect_right(self._starts, at) - 1
        column, way = at - self._starts[row], self._ways[row]
        if way is not None:
            column = way[column]
        return self._sources[row] + column if column != _INSIDE else _INSIDE

    def line_end(self, at: int) -> int:
        """The end of the source line, blanks included; `_INSIDE` when more than blanks follows."""
        if self.text[at : at + 1] not in ("", "\n"):
            return _INSIDE
        row = bisect_right(self._starts, at) - 1
        return self._sources[row] + len(self._lines[row])


def _folded_line(line: str) -> tuple[str, Sequence[int] | None]:
    """The line folded, and where each of its characters and its end stood (None: the same)."""
    if line.isascii() or unicodedata.is_normalized("NFKC", line):
        # One character stands for one, so no way back is needed: most lines of most files.
        return line.translate(_LOOKALIKES).rstrip(), None
    pieces: list[str] = []
    way = array("q")
    start = 0
    while start < len(line):
        end = start + 1
        while end < len(line) and _continues(line[end]):
            end += 1
        piece = unicodedata.normalize("NFKC", line[start:end])
        pieces.append(piece.translate(_LOOKALIKES))
        if piece == line[start:end]:
            way.extend(range(start, end))
        else:
            way.extend([start, *[_INSIDE] * (len(piece) - 1)])
        start = end
    way.append(len(line))
    return "".join(pieces).rstrip(), way


def _continues(character: str) -> bool:
    """Whether it may melt into the character before it: marks, and vowels and ends of Hangul."""
    return unicodedata.combining(character) != 0 or "\u1160" <= character <= "\u11ff"


def _places_of(wanted: str, text: str) -> list[int]:
    places: list[int] = []
    at = text.find(wanted)
    while at >= 0 and len(places) < FOUND_MAX:
        places.append(at)
        at = text.find(wanted, at + 1)
    return places
