"""Full-text search of entries: what of an entry is searched, and which entries are meant.

Promises
- Whether an entry is found depends on its own line and on the query alone; an index may save
  looking at entries, and never adds or loses one.
- Hits have one order, newest first, in which a cursor names a place.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Iterator
from math import isfinite

import msgspec

from pi_rpc.core.codec import decode
from pi_rpc.core.errors import Damaged, Invalid
from pi_rpc.core.messages import JsonObject, blocks_of, texts_of, tool_calls_of
from pi_rpc.core.stamps import ms_from_iso

QUERY_CHARACTERS_MAX = 1000
TERMS_MAX = 16
TEXT_CHARACTERS_MAX = 1 << 18
"""How much of one entry is searched: a longer text is the output of a program."""

SNIPPET_BEFORE, SNIPPET_AFTER = 60, 140
TRIGRAMS_ASKED_MAX = 32
"""More would not leave fewer candidates."""

_TERM = re.compile(r'"([^"]+)"|(\S+)')
_BLANKS = re.compile(r"\s+")
_UNWRITABLE = re.compile("[\ud800-\udfff\0]")
_MS_MAX = 1 << 53


class Searched(msgspec.Struct, frozen=True):
    """What of an entry is searched."""

    entry_id: str
    role: str
    """Of a message its role; of any other entry its type."""
    at_ms: int
    """When it was said; 0 when that is not told."""
    text: str


class SearchQuery(msgspec.Struct, frozen=True):
    """Which entries are meant: those that hold every term, in any case."""

    terms: tuple[str, ...]
    """Folded; see `terms_of`."""
    roles: frozenset[str] | None = None
    since_ms: int | None = None
    """The first moment that counts."""
    until_ms: int | None = None
    """The first moment that counts no more."""


class Place(msgspec.Struct, frozen=True, order=True, array_like=True):
    """Where a hit stands among all: newest first, then by file and place in it."""

    age: int
    """The negated time in milliseconds."""
    path: str
    offset: int


def folded(text: str) -> str:
    """A text without case, and without what no index can hold."""
    text = text.casefold()
    if "\0" in text or not _is_writable(text):
        return _UNWRITABLE.sub("\ufffd", text)
    return text


def _is_writable(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def terms_of(query: str) -> tuple[str, ...]:
    """The words of a query, and what stands in quotes as a whole; folded.

    Raises Invalid `empty_query`, `query_too_long`.
    """
    terms = tuple(folded(quoted or word) for quoted, word in _TERM.findall(query))
    if not terms:
        raise Invalid("empty_query", "there is nothing to look for")
    if len(query) > QUERY_CHARACTERS_MAX or len(terms) > TERMS_MAX:
        raise Invalid(
            "query_too_long",
            f"a query has at most {TERMS_MAX} terms and {QUERY_CHARACTERS_MAX} characters",
        )
    return terms


def trigrams_of(terms: tuple[str, ...]) -> list[str]:
    """What an index of three characters each must hold of a text; none for short terms alone."""
    found = {term[at : at + 3]: None for term in terms for at in range(len(term) - 2)}
    return list(found)[:TRIGRAMS_ASKED_MAX]


def searched_in(line: bytes) -> Searched | None:
    """What of a stored line is searched; None when that is nothing."""
    try:
        stored = decode(line)
    except Damaged:
        return None
    if not isinstance(stored, dict):
        return None
    entry_id, entry_type = stored.get("id"), stored.get("type")
    if not isinstance(entry_id, str) or not isinstance(entry_type, str):
        return None
    message = stored.get("message") if entry_type == "message" else None
    spoken = message if isinstance(message, dict) else None
    parts = _parts(stored, entry_type) if spoken is None else _said(spoken)
    text = "\n".join(part for part in parts if part)[:TEXT_CHARACTERS_MAX]
    if not text:
        return None
    role = entry_type if spoken is None else str(spoken.get("role"))
    told = None if spoken is None else spoken.get("timestamp")
    return Searched(entry_id, role, moment_of(told, stored.get("timestamp")) or 0, text)


def moment_of(in_message: object, in_entry: object) -> int | None:
    """When a message was said, in milliseconds: its own time, else its entry's."""
    if isinstance(in_message, int | float) and not isinstance(in_message, bool):
        return int(in_message) if isfinite(in_message) and abs(in_message) < _MS_MAX else None
    return ms_from_iso(in_entry) if isinstance(in_entry, str) else None


def _said(message: JsonObject) -> Iterator[str]:
    match message.get("role"):
        case "system":
            # Prompts and tools are the same in every session and would be found in all of them.
            return
        case "bashExecution":
            yield from (_text(message.get(name)) for name in ("command", "output"))
        case "assistant":
            yield from texts_of(blocks_of(message))
            for call in tool_calls_of(message):
                yield call.name
                yield from _texts_within(call.arguments)
        case _:
            yield from texts_of(blocks_of(message))


def _parts(stored: JsonObject, entry_type: str) -> Iterator[str]:
    match entry_type:
        case "custom_message":
            yield from texts_of(blocks_of(stored))
        case "compaction" | "branch_summary":
            yield _text(stored.get("summary"))
        case "session_info":
            yield _text(stored.get("name"))
        case "label":
            yield _text(stored.get("label"))


def _texts_within(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting.extend(reversed(one.values()))
        elif isinstance(one, list):
            waiting.extend(reversed(one))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def is_meant(found: Searched, query: SearchQuery) -> bool:
    """Whether a query means an entry."""
    if query.roles is not None and found.role not in query.roles:
        return False
    if query.since_ms is not None and found.at_ms < query.since_ms:
        return False
    if query.until_ms is not None and found.at_ms >= query.until_ms:
        return False
    text = folded(found.text)
    return all(term in text for term in query.terms)


def snippet(text: str, terms: tuple[str, ...]) -> str:
    """The words around the first term, blanks run together."""
    at = max(0, folded(text).find(terms[0]))
    if not text.isascii():
        at = _unfolded(text, at)
    start, stop = max(0, at - SNIPPET_BEFORE), at + len(terms[0]) + SNIPPET_AFTER
    shown = _BLANKS.sub(" ", text[start:stop]).strip()
    return ("…" if start else "") + shown + ("…" if stop < len(text) else "")


def _unfolded(text: str, at: int) -> int:
    # Folding makes some characters longer, so places in the folded text lie further on.
    passed = 0
    for place, character in enumerate(text):
        if passed >= at:
            return place
        passed += len(character.casefold())
    return len(text)


def cursor_of(place: Place) -> str:
    """A place as a client carries it."""
    return urlsafe_b64encode(msgspec.json.encode(place)).decode("ascii")


def place_of(cursor: str) -> Place:
    """The place a cursor names. Raises Invalid `bad_cursor`."""
    try:
        return msgspec.json.decode(urlsafe_b64decode(cursor.encode("ascii")), type=Place)
    except (msgspec.MsgspecError, Base64Error, ValueError) as error:
        raise Invalid("bad_cursor", "no cursor of this search", cursor=cursor[:100]) from error
