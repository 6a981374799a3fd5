"""What the first bytes of a stored line tell of its entry, and lines on which two records stand."""

import re
from io import BytesIO

import msgspec

from pi_rpc.core.codec import decode
from pi_rpc.core.entries import kind_of
from pi_rpc.core.errors import Damaged

HEAD = re.compile(
    rb'\{"type":"([A-Za-z0-9_.-]{1,64})","id":"([0-9a-f]{8})",'
    rb'"parentId":(?:null|"([0-9a-f]{8})"),"timestamp":"[^"\\]{0,64}"'
    rb'(?:,"message":\{"role":"([A-Za-z]{1,64})"|,"customType":"([^"\\]{1,128})")?',
    re.ASCII,
)
"""Type, id, parent, role and custom type of an entry whose keys are in the order writers use."""

_MESSAGE_HEAD = re.compile(
    rb'\{"type":"message","id":"(.{8})","parentId":"(.{8})","timestamp":"[^"]{24}",'
    rb'"message":\{"role":"([^"]{1,64})"',
    re.DOTALL,
)
"""Id, parent and role of the most frequent of those entries; whether they are good is not asked."""

_HEX_DIGITS = b"0123456789abcdef"

PARENT_KEY = b'"parentId":'
"""Stands once on a line that is one record; within a string the quotes would be escaped."""

_BRACE = ord("}")
_SECOND_HEAD = re.compile(rb'\{"type":"[^"\\]{1,64}","id":"[^"\\]{1,128}","parentId":', re.ASCII)
_SECOND_HEADS_MAX = 64
_HEADS_LEARNED_MAX = 256


_Head = tuple[bytes | None, ...]


class KindOfHead(dict[_Head | bytes, int]):
    """Kinds by type, role and custom type, or by a message's role alone.

    -1 where a line's beginning does not tell.
    """

    def __missing__(self, head: _Head | bytes) -> int:
        if isinstance(head, bytes):
            kind = self[b"message", head, None] if head.isalpha() else -1
        else:
            kind = _kind_of(*head)
        if len(self) < _HEADS_LEARNED_MAX:
            self[head] = kind
        return kind


def _kind_of(*head: bytes | None) -> int:
    entry_type, role, custom_type = (
        None if part is None else part.decode("utf-8", "replace") for part in head
    )
    told = {"message": role, "custom": custom_type, "session": None}
    if entry_type is None or told.get(entry_type, "") is None:
        return -1
    return kind_of(entry_type, role, custom_type)


class PlainLines(msgspec.Struct, frozen=True):
    """Lines that all are plain entries, told by their beginnings alone."""

    ids: tuple[bytes, ...]
    """Eight hexadecimal digits each."""
    parents: tuple[bytes | None, ...]
    """None for a root; what is no id is no plain one of an entry either."""
    kinds: bytes
    sizes: list[int]
    """Bytes of each, the newline included."""
    last: bytes


def plain_lines(chunk: bytes, kind_of_head: KindOfHead) -> PlainLines | None:
    """The heads of whole lines, if every one of them is plain; `chunk` ends with a newline.

    None when a single line is not: then each must be looked at by itself. A file is read a block
    at a time, and all but a few blocks are plain, so each step here is one pass in C. Whether a
    line holds a second record is not looked for: that would cost as much as all the rest.
    """
    # Of the ways to part lines this one is by far the fastest.
    lines = BytesIO(chunk).readlines()
    if b"\0" in chunk:
        return None
    matches = map(_MESSAGE_HEAD.match, lines)
    heads = [
        _other_head(line) if match is None else match.groups()
        for line, match in zip(lines, matches, strict=True)
    ]
    if None in heads or {line[-2] for line in lines} != {_BRACE}:
        return None
    ids, parents, told = zip(*heads, strict=True)
    kinds = list(map(kind_of_head.__getitem__, told))
    if -1 in kinds or b"".join(ids).translate(None, _HEX_DIGITS):
        return None
    return PlainLines(ids, parents, bytes(kinds), list(map(len, lines)), lines[-1][:-1])


def _other_head(line: bytes) -> tuple[bytes, bytes | None, _Head] | None:
    match = HEAD.match(line)
    if match is None:
        return None
    entry_type, entry_id, parent, role, custom_type = match.groups()
    return entry_id, parent, (entry_type, role, custom_type)


def value_of(line: bytes) -> object:
    """What a line holds; None also when it cannot be read."""
    try:
        return decode(line)
    except Damaged:
        return None


def split_glued(line: bytes) -> tuple[object, object, int] | None:
    """The records of an unreadable line that ends with a whole one, and where that begins.

    A writer that died in the middle of a line leaves a beginning, and the next one writes behind
    it; the first record is then None. None when the line ends with no whole record.
    """
    for count, match in enumerate(_SECOND_HEAD.finditer(line, 1)):
        if count >= _SECOND_HEADS_MAX:
            break
        at = match.start()
        second = value_of(line[at:])
        if second is not None:
            return value_of(line[:at]), second, at
    return None
