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

PARENT_KEY = b'"parentId":'
"""Stands once on a line that is one record; within a string the quotes would be escaped."""

_BRACE = ord("}")
_SECOND_HEAD = re.compile(rb'\{"type":"[^"\\]{1,64}","id":"[^"\\]{1,128}","parentId":', re.ASCII)
_SECOND_HEADS_MAX = 64
_HEADS_LEARNED_MAX = 256


class KindOfHead(dict[tuple[bytes | None, ...], int]):
    """Kinds by type, role and custom type; -1 where a line's beginning does not tell."""

    def __missing__(self, head: tuple[bytes | None, ...]) -> int:
        entry_type, role, custom_type = (
            None if part is None else part.decode("utf-8", "replace") for part in head
        )
        told = {"message": role, "custom": custom_type, "session": None}
        kind = -1
        if entry_type is not None and told.get(entry_type, "") is not None:
            kind = kind_of(entry_type, role, custom_type)
        if len(self) < _HEADS_LEARNED_MAX:
            self[head] = kind
        return kind


class PlainLines(msgspec.Struct, frozen=True):
    """Lines that all are plain entries, told by their beginnings alone."""

    ids: tuple[bytes, ...]
    parents: tuple[bytes | None, ...]
    kinds: bytes
    lengths: list[int]
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
    matches = list(map(HEAD.match, lines))
    if None in matches:
        return None
    if {line[-2] for line in lines} != {_BRACE}:
        return None
    heads = [match.groups() for match in matches if match is not None]
    types, ids, parents, roles, custom_types = zip(*heads, strict=True)
    kinds = list(map(kind_of_head.__getitem__, zip(types, roles, custom_types, strict=True)))
    if -1 in kinds:
        return None
    lengths = [len(line) - 1 for line in lines]
    return PlainLines(ids, parents, bytes(kinds), lengths, lines[-1][:-1])


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
