"""One line of a session file, both ways; the header; migration from older versions.

Promises
- What other programs may have written is read as they would read it: lone surrogates, odd bytes and
  numbers too big for a float cost nothing but time.
- What is written is one line of compact JSON, and reading it gives the same value.
- Migration is a function of the objects and of the ids it is given; it changes no object it got.
"""

import json
import re
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, NoReturn, TypeVar

import msgspec

from pi_rpc.core.entries import FORMAT_VERSION, Header
from pi_rpc.core.errors import Damaged, Invalid
from pi_rpc.core.messages import JsonObject

_Typed = TypeVar("_Typed")

_decoder = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder()
_sorting_encoder = msgspec.json.Encoder(order="sorted")

_PARENT = re.compile(
    rb'\{"type":"[^"\\]*","id":"[^"\\]*","parentId":(null|"[^"\\]*"),"timestamp":"', re.ASCII
)


_TOO_DEEP = "nested too deeply"


def decode(line: bytes) -> Any:
    """The value a line holds. Raises Damaged `unreadable_line` when it is no JSON."""
    try:
        return _decoder.decode(line)
    except RecursionError as error:
        raise Damaged("unreadable_line", _TOO_DEEP) from error
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _decode_odd(line)


def _decode_odd(line: bytes) -> Any:
    # Pi writes escaped lone surrogates when a stream is cut inside an emoji, and reads bytes that
    # are no UTF-8 as replacement characters; the fast decoder refuses both.
    text = line.decode("utf-8", "replace")
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_int=_integer)
    except RecursionError as error:
        raise Damaged("unreadable_line", _TOO_DEEP) from error
    except ValueError as error:
        raise Damaged("unreadable_line", f"not readable as JSON: {error}") from error


def is_too_deep(error: Damaged) -> bool:
    """Whether a line was given up as nested too deeply: then it may be JSON to others."""
    return error.message == _TOO_DEEP


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _integer(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:
        # Python reads at most a few thousand digits; such a number is infinite for everybody else.
        return float(digits)


def typed_lines(decoder: msgspec.json.Decoder[_Typed], lines: bytes) -> Sequence[_Typed | None]:
    """What each of some lines holds of what is asked for; None for one of another shape.

    For going through many lines: all of them cost hardly more than a look at their bytes.
    """
    try:
        return decoder.decode_lines(lines)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return [_typed_or_none(decoder, line) for line in lines.split(b"\n")]


def _typed_or_none(decoder: msgspec.json.Decoder[_Typed], line: bytes) -> _Typed | None:
    try:
        return decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def encode(value: Any) -> bytes:
    """The value as compact JSON on one line. Raises Invalid `too_deep` when it nests too deeply."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encode_odd(value, sort_keys=False)
    except RecursionError as error:
        raise Invalid("too_deep", "nested too deeply to be written") from error


def canonical(value: Any) -> bytes:
    """The same bytes for equal values: keys sorted, compact; for digests."""
    try:
        return _sorting_encoder.encode(value)
    except UnicodeEncodeError:
        return _encode_odd(value, sort_keys=True)
    except RecursionError as error:
        raise Invalid("too_deep", "nested too deeply to be written") from error


def _encode_odd(value: Any, sort_keys: bool) -> bytes:
    try:
        text = json.dumps(
            _without_infinities(value),
            ensure_ascii=True,
            allow_nan=False,
            separators=(",", ":"),
            sort_keys=sort_keys,
        )
    except RecursionError as error:
        raise Invalid("too_deep", "nested too deeply to be written") from error
    return text.encode("ascii")


def _without_infinities(value: Any) -> Any:
    # JSON has no infinity; the fast encoder writes null for it, as JavaScript does.
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {name: _without_infinities(held) for name, held in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinities(held) for held in value]
    return value


def with_parent(line: bytes, parent_id: str | None) -> bytes:
    """The stored line of an entry with another parent; every other byte stays where possible.

    Raises Damaged `unreadable_line` when it has to be decoded and cannot be.
    """
    match = _PARENT.match(line)
    # A second parentId further on would win over the one in front: such a line is decoded.
    if match is not None and line.find(b'"parentId":', match.end()) < 0:
        start, stop = match.span(1)
        return line[:start] + encode(parent_id) + line[stop:]
    stored = decode(line)
    if not isinstance(stored, dict):
        raise Damaged("unreadable_line", "an entry is an object")
    return encode(stored | {"parentId": parent_id})


def header_from_object(stored: Any) -> Header:
    """The header an object is. Raises Invalid `not_a_session` when it is none.

    A missing version gives 1; whether such a file really is that old, its entries tell.
    """
    if not isinstance(stored, dict) or stored.get("type") != "session":
        raise Invalid("not_a_session", "the first record is no session header")
    session_id = stored.get("id")
    if not isinstance(session_id, str):
        raise Invalid("not_a_session", "the session header has no id")
    timestamp, cwd, parent = (stored.get(name) for name in ("timestamp", "cwd", "parentSession"))
    return Header(
        session_id=session_id,
        timestamp=timestamp if isinstance(timestamp, str) else "",
        cwd=cwd if isinstance(cwd, str) else "",
        parent_session=parent if isinstance(parent, str) else None,
        version=_version(stored.get("version")),
        fields=stored,
    )


def _version(stored: object) -> int:
    if stored is None:
        return 1
    if isinstance(stored, str) and stored.isascii() and stored.isdigit() and len(stored) < 10:
        return int(stored)
    if isinstance(stored, int | float) and not isinstance(stored, bool) and isfinite(stored):
        return int(stored)
    return FORMAT_VERSION


def migrated(
    objects: Sequence[JsonObject], version: int, new_id: Callable[[], str]
) -> list[JsonObject]:
    """The objects of a file of an older version as version 3 has them, header first.

    Version 1 has no ids: entries become one chain, and a compaction's index into the file (header
    counted) becomes the id of the entry it names, if that one comes before. Version 2 knows a role
    by its old name.
    """
    result = list(objects)
    if version < 2:
        result = _chained(result, new_id)
    if version < FORMAT_VERSION:
        result = [_with_new_role(stored) for stored in result]
        result[0] = result[0] | {"version": FORMAT_VERSION}
    return result


def _chained(objects: list[JsonObject], new_id: Callable[[], str]) -> list[JsonObject]:
    result: list[JsonObject] = []
    above: str | None = None
    for stored in objects:
        if stored.get("type") == "session":
            result.append(stored)
            continue
        entry_id = new_id()
        fields = _with_kept_id(stored, result) if stored.get("type") == "compaction" else stored
        # The head comes first, as in every line written today.
        head = {name: fields[name] for name in ("type",) if name in fields}
        head |= {"id": entry_id, "parentId": above}
        head |= {name: fields[name] for name in ("timestamp",) if name in fields}
        result.append(head | {name: held for name, held in fields.items() if name not in head})
        above = entry_id
    return result


def _with_kept_id(fields: JsonObject, before: list[JsonObject]) -> JsonObject:
    index = fields.get("firstKeptEntryIndex")
    if isinstance(index, bool) or not isinstance(index, int | float):
        return fields
    rest = {name: held for name, held in fields.items() if name != "firstKeptEntryIndex"}
    if index in range(len(before)) and before[int(index)].get("type") != "session":
        rest["firstKeptEntryId"] = before[int(index)]["id"]
    return rest


def _with_new_role(stored: JsonObject) -> JsonObject:
    message = stored.get("message")
    if stored.get("type") != "message" or not isinstance(message, dict):
        return stored
    if message.get("role") != "hookMessage":
        return stored
    return stored | {"message": message | {"role": "custom"}}
