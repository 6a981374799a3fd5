"""A search for lines where there is no ripgrep, in a process of its own: printed as ripgrep prints.

Patterns are those of Python, with the few forms of ripgrep that Python writes otherwise; what only
ripgrep knows, like `\\p{L}`, is an error here.

Promises
- The same files, in the same order, as ripgrep searches under the same words.
"""

import os
import re
import stat
import sys
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from pi_rpc.tools.ignoring import rules_from
from pi_rpc.tools.walking import Choice, walked

FOUND, NOTHING, FAILED = 0, 1, 2
"""Exit codes, as ripgrep has them."""

LINE_BYTES_MAX = 64 * 1024
"""How much of a line is printed; far less is shown."""
LOOK_BYTES = 64 * 1024
"""How much of a file is looked at for a NUL, which text has none of."""
PIECE_BYTES_MAX = 16 * 1024 * 1024
"""A longer line is taken for several: memory must end somewhere."""

_ELSEWHERE = re.compile(r"\\\\.|\\z|\\.|\(\?<(?=[A-Za-z_])|\[:(\^?)(\w+):\]", re.DOTALL)
_SETS = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "ascii": r"\x00-\x7f",
    "blank": r" \t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "word": r"\w",
    "xdigit": "0-9a-fA-F",
}


class Search(msgspec.Struct, frozen=True):
    """What is looked for; a program of its own is told the same as JSON."""

    pattern: str
    target: str
    """A file, or `./` for everything below the folder the search runs in."""
    glob: str | None = None
    ignore_case: bool = False
    literal: bool = False
    context: int = 0


def main(words: list[str]) -> int:
    """Search as the JSON in the first word says, in the folder this process runs in."""
    search = msgspec.json.decode(words[0], type=Search)
    try:
        fits = line_regex(search).search
    except re.error as error:
        os.write(1, f"the pattern is not well formed: {error}\n".encode())
        return FAILED
    printing = _Printing()
    for name in _targets(search):
        _search_file(name, fits, search.context, printing)
    printing.flush()
    return FOUND if printing.has_printed else NOTHING


def line_regex(search: Search) -> re.Pattern[str]:
    """The pattern as Python reads it. Raises re.error."""
    flags = re.IGNORECASE if search.ignore_case else 0
    if search.literal:
        return re.compile(re.escape(search.pattern), flags)
    return re.compile(_ELSEWHERE.sub(_as_python, search.pattern), flags)


def _as_python(found: re.Match[str]) -> str:
    if found[0] == r"\z":
        return r"\Z"
    if found[0] == "(?<":
        return "(?P<"
    if found[2] in _SETS and not found[1]:
        return _SETS[found[2]]
    return found[0]


def _targets(search: Search) -> Iterator[str]:
    if search.target != "./":
        yield search.target
        return
    for path, is_folder in walked(Path.cwd(), _choice(search.glob)):
        if not is_folder:
            yield f"./{path}"


def _choice(glob: str | None) -> Choice:
    rules = rules_from("\n".join([*([glob] if glob else []), "!.git"]), "")
    wants_some = glob is not None and not glob.startswith("!")

    def choice(path: str, is_folder: bool) -> bool | None:
        said = rules.says(path, is_folder)
        if said is None and wants_some and not is_folder:
            return False
        return said

    return choice


def _search_file(
    name: str, fits: Callable[[str], object], context: int, printing: "_Printing"
) -> None:
    try:
        # A link is not followed, and a pipe that nobody writes to must not be waited for.
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return
        before: deque[tuple[int, bytes]] = deque(maxlen=context)
        after = 0
        for number, line in enumerate(_lines(file), 1):
            if fits(line.decode("utf-8", "surrogateescape")):
                for earlier in before:
                    printing.line(name, *earlier, is_match=False)
                before.clear()
                printing.line(name, number, line, is_match=True)
                after = context
            elif after:
                printing.line(name, number, line, is_match=False)
                after -= 1
            else:
                before.append((number, line))


def _lines(file: BinaryIO) -> Iterator[bytes]:
    start = file.read(LOOK_BYTES)
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if start.startswith(mark):
            text = (start + file.read()).removeprefix(mark).decode(encoding, "replace")
            yield from _parted(text.encode("utf-8", "replace"))
            return
    if b"\0" in start:
        return
    file.seek(3 if start.startswith(b"\xef\xbb\xbf") else 0)
    while line := file.readline(PIECE_BYTES_MAX):
        if b"\0" in line:
            return
        yield line.removesuffix(b"\n")


def _parted(text: bytes) -> list[bytes]:
    lines = text.split(b"\n")
    return lines if lines[-1] else lines[:-1]


class _Printing:
    def __init__(self) -> None:
        self.has_printed = False
        self._held = bytearray()

    def line(self, name: str, number: int, line: bytes, is_match: bool) -> None:
        self.has_printed = True
        mark = b":" if is_match else b"-"
        self._held += b"%b\0%d%b%b\n" % (os.fsencode(name), number, mark, line[:LINE_BYTES_MAX])
        if len(self._held) > LINE_BYTES_MAX:
            self.flush()

    def flush(self) -> None:
        left = memoryview(bytes(self._held))
        self._held.clear()
        while left:
            left = left[os.write(1, left) :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
