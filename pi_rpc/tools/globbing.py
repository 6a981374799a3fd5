"""Patterns for paths, as ignore files and searches write them, as regular expressions; pure.

`*` and `?` stay within one part of a path, `**` as a whole part goes over any number of them, `[…]`
is one character of a set, `{a,b}` is one of several, and a backslash takes the next as it is.

Promises
- Matching takes no more than the length of the path times that of the pattern, `**` left aside.
"""

import re
from collections.abc import Iterator

ALTERNATIVES_MAX = 256
"""How many patterns the braces of one may stand for."""

_TOKEN = re.compile(
    r"""
      (?P<escaped> \\(?P<taken>.) )
    | (?P<over>    (?:(?<=/)|\A)\*\*(?:/\*\*)*(?P<end>/|\Z) )
    | (?P<star>    \*+ )
    | (?P<any>     \? )
    | \[(?P<not>[!^])?(?P<set>\]?(?:\\.|\[:\w+:\]|[^\]\\])*)\]
    | (?P<plain>   . )
    """,
    re.VERBOSE | re.DOTALL,
)
_NAMED_SETS = {
    "[:alnum:]": "a-zA-Z0-9",
    "[:alpha:]": "a-zA-Z",
    "[:digit:]": "0-9",
    "[:lower:]": "a-z",
    "[:space:]": r"\s",
    "[:upper:]": "A-Z",
    "[:word:]": r"\w",
    "[:xdigit:]": "0-9a-fA-F",
}
_IN_SET = re.compile(r"\[:\w+:\]|\\.|.", re.DOTALL)


def glob_regex(glob: str, ignore_case: bool = False) -> re.Pattern[str]:
    """What matches whole paths that fit. Raises ValueError when the braces stand for too many."""
    alternatives = "|".join(f"(?:{_translated(one)})" for one in _unbraced(glob))
    return re.compile(rf"(?s:{alternatives})\Z", re.IGNORECASE if ignore_case else 0)


def is_anywhere(glob: str) -> bool:
    """Whether a pattern names no folder, and so fits a name at any depth."""
    return "/" not in glob.removesuffix("/")


def _translated(glob: str) -> str:
    parts: list[str] = []
    fixed: list[str] = []
    after_star = False

    def close(is_last: bool) -> None:
        text = "".join(fixed)
        fixed.clear()
        if not after_star:
            parts.append(text)
        elif is_last:
            parts.append(f"[^/]*{text}")
        else:
            # What a star takes may be the least that lets the fixed text after it fit: the star
            # that follows takes up the rest. So nothing needs to be tried again.
            parts.append(f"(?>[^/]*?{text})")

    for token in _TOKEN.finditer(glob):
        if token["over"]:
            close(is_last=False)
            after_star = False
            parts.append("(?:.*/)?" if token["end"] else ".*")
        elif token["star"]:
            close(is_last=False)
            after_star = True
        else:
            fixed.append(_fixed(token))
    close(is_last=True)
    return "".join(parts)


def _fixed(token: re.Match[str]) -> str:
    if token["escaped"]:
        return re.escape(token["taken"])
    if token["any"]:
        return "[^/]"
    if token["set"]:
        return _set(token["set"], bool(token["not"]))
    return re.escape(token[0])


def _set(members: str, is_negated: bool) -> str:
    made = ""
    for member in _IN_SET.findall(members):
        if member in _NAMED_SETS:
            made += _NAMED_SETS[member]
        elif member == "-":
            made += member
        else:
            made += re.escape(member[-1])
    kept = f"[^{made}]" if is_negated else f"[{made}]"
    try:
        re.compile(kept)
    except re.error:
        # A range from high to low holds nothing.
        return "[^/]" if is_negated else r"[^\s\S]"
    return f"(?:(?!/){kept})"


def _unbraced(glob: str) -> list[str]:
    """The patterns a pattern with braces stands for."""
    made = [""]
    for alternatives in _braces(glob):
        made = [before + one for before in made for one in alternatives]
        if len(made) > ALTERNATIVES_MAX:
            raise ValueError(f"the braces stand for more than {ALTERNATIVES_MAX} patterns")
    return made


def _braces(glob: str) -> Iterator[list[str]]:
    start = 0
    while (opened := _next(glob, start, "{")) is not None:
        closed = _closing(glob, opened)
        if closed is None:
            break
        yield [glob[start:opened]]
        inner: list[str] = []
        for part in _parted(glob[opened + 1 : closed]):
            inner += _unbraced(part)
            if len(inner) > ALTERNATIVES_MAX:
                raise ValueError(f"the braces stand for more than {ALTERNATIVES_MAX} patterns")
        yield inner
        start = closed + 1
    yield [glob[start:]]


def _next(glob: str, start: int, wanted: str) -> int | None:
    place = start
    while place < len(glob):
        if glob[place] == "\\":
            place += 1
        elif glob[place] == wanted:
            return place
        place += 1
    return None


def _closing(glob: str, opened: int) -> int | None:
    depth, place = 0, opened
    while place < len(glob):
        match glob[place]:
            case "\\":
                place += 1
            case "{":
                depth += 1
            case "}":
                depth -= 1
                if not depth:
                    return place
        place += 1
    return None


def _parted(inner: str) -> list[str]:
    parts, depth, start, place = [], 0, 0, 0
    while place < len(inner):
        match inner[place]:
            case "\\":
                place += 1
            case "{":
                depth += 1
            case "}":
                depth -= 1
            case "," if not depth:
                parts.append(inner[start:place])
                start = place + 1
        place += 1
    return [*parts, inner[start:]]
