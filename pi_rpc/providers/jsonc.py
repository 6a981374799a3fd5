"""JSON with comments and trailing commas, as people write settings; pure."""

import re
from typing import Any

import msgspec

_PARTS = re.compile(
    r"""
      (?P<string> "(?:[^"\\]++|\\.)*+" )
    | (?P<comment> //[^\n]*+ | /\*.*?\*/ )
    | (?P<comma> ,(?=(?:\s++|//[^\n]*+|/\*.*?\*/)*+[\]}]) )
    """,
    re.VERBOSE | re.DOTALL,
)


def decoded(raw: bytes) -> Any:
    """The value that a text says; a byte order mark is passed over.

    Raises ValueError, with the place by line and column.
    """
    text = raw.decode("utf-8-sig")
    plain = _PARTS.sub(_plain, text)
    try:
        return msgspec.json.decode(plain)
    except msgspec.DecodeError as problem:
        raise ValueError(_placed(plain, str(problem))) from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _plain(part: re.Match[str]) -> str:
    if part.lastgroup == "string":
        return part.group()
    # Blanks in the same places, so that an error still points at the right line.
    return re.sub(r"[^\n]", " ", part.group())


_BYTE = re.compile(r" \(byte (\d+)\)")


def _placed(text: str, problem: str) -> str:
    found = _BYTE.search(problem)
    raw = text.encode()
    # A text that is cut off is told of without a place: that is its end.
    before = raw.rstrip() if found is None else raw[: int(found[1])]
    line, column = before.count(b"\n") + 1, len(before) - (before.rfind(b"\n") + 1) + 1
    return f"{_BYTE.sub('', problem)} (line {line}, column {column})"
