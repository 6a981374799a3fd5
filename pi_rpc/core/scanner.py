"""From the bytes of a session file to the heads of its entries, and what was odd on the way.

Lines whose first bytes are in the order every known writer uses are read by one expression and not
decoded; every other line is decoded whole, so key order is never relied on. A line that passes by
its beginning and is broken further on becomes a row that fails when it is read; the last line,
where a crash leaves its mark, is always decoded.

Promises
- Any bytes end in a scan or in `not_a_session`; nothing else is raised and nothing loops.
- Every line that is no entry, or no good one, is told, up to a bound; the rest are counted.
- A line that cannot be read costs that line only.
"""

from array import array
from itertools import accumulate
from operator import ge

import msgspec

from pi_rpc.core.codec import decode, header_from_object, is_too_deep
from pi_rpc.core.entries import Header, kind_of
from pi_rpc.core.errors import Damaged, Invalid
from pi_rpc.core.events import Diagnostic, Severity
from pi_rpc.core.heads import Columns, Heads, cut_circles, is_plain_id
from pi_rpc.core.line_heads import (
    HEAD,
    PARENT_KEY,
    KindOfHead,
    PlainLines,
    plain_lines,
    split_glued,
)

DIAGNOSTICS_MAX = 1000
"""More than a person reads; what comes after is counted."""

_SPACE = b" \t\r\n"
_BRACE = ord("}")
_UNRESOLVED = -2
_NO_DIGITS = b"00000000"
_KNOWN_ASKED_MAX = 64

_Key = bytes | str
"""An id as the scanner compares it: the digits of a plain one, the text of another."""


class Scan(msgspec.Struct, frozen=True):
    """What a scan found; rows are counted from the start of the session."""

    columns: Columns
    offsets: "array[int]"
    """Where each row's object begins in the file."""
    lengths: "array[int]"
    """Bytes of each row's object, without the newline."""
    diagnostics: list[Diagnostic]
    lines: int
    """Lines of the file up to here, header and blank ones included."""
    header: Header | None
    """None when the scan began behind the header."""
    header_offset: int
    header_length: int
    has_orphans: bool
    """A line that comes later could be the parent of one of these."""
    tail_is_entry: bool
    """What followed the last newline was a whole record; of no meaning when nothing did."""


LINES_BEFORE_HEADER_MAX = 10_000
"""Lines that are no record before the header is given up; looking at each takes its time."""


class _Pending(msgspec.Struct, frozen=True):
    row: int
    parent: _Key
    line: int
    offset: int


class Scanner:
    """One pass over the lines of a session file, in blocks.

    `known`: heads of what comes before `offset`, when not scanning from the start; the header is
    then not looked for. `careful`: look whether a line holds two records, which costs a second
    pass over its bytes. Without it, such a line shows by the parent that is missing for whoever
    hangs below its second record: a scan that has orphans is to be made again with care.
    """

    def __init__(
        self,
        known: Heads | None = None,
        offset: int = 0,
        lines: int = 0,
        careful: bool = True,
    ) -> None:
        self._careful = careful
        self._known = known if known is not None and len(known) else None
        self._known_asked = 0
        self._first = len(known) if known is not None else 0
        self._offset = offset
        self._line = lines
        self._seeks_header = known is None
        self._header: Header | None = None
        self._header_span = (0, 0)
        self._rows: dict[_Key, int] = {}
        self._digits: list[bytes] = []
        self._ids = bytearray()
        self._parents = array("i")
        self._kinds = bytearray()
        self._offsets = array("Q")
        self._lengths = array("I")
        self._odd_ids: dict[int, str] = {}
        self._shadowed: set[int] = set()
        self._pending: list[_Pending] = []
        self._kind_of_head = KindOfHead()
        self._last_line = b""
        self._diagnostics: list[Diagnostic] = []
        self._untold = 0
        self._has_orphans = False

    def take(self, block: bytes | bytearray, end: int) -> int:
        """Take the whole lines within the first `end` bytes of `block`; how many bytes they were.

        Raises Invalid `not_a_session` when the first record is no header.
        """
        start = 0
        while self._seeks_header:
            stop = block.find(b"\n", start, end)
            if stop < 0:
                break
            self._line += 1
            if self._line > LINES_BEFORE_HEADER_MAX:
                raise Invalid("not_a_session", "there is no session header near the beginning")
            self._seek_header(bytes(block[start:stop]), self._offset + start)
            start = stop + 1
        if not self._seeks_header:
            start = self._take_plain(block, start, end) or self._take_entries(block, start, end)
        self._offset += start
        return start

    def _take_plain(self, block: bytes | bytearray, start: int, end: int) -> int:
        """Take all lines of a block at once; where they end, or 0 when each must be looked at."""
        stop = block.rfind(b"\n", start, end)
        if stop < 0 or self._known is not None or self._careful:
            return 0
        plain = plain_lines(bytes(memoryview(block)[start : stop + 1]), self._kind_of_head)
        if plain is None:
            return 0
        parents = self._plain_parents(plain)
        if parents is None:
            return 0
        self._parents.extend(parents)
        self._kinds += plain.kinds
        self._digits.extend(plain.ids)
        # Each line ends with a newline that is no part of its object.
        self._lengths.extend(map((-1).__add__, plain.sizes))
        self._offsets.extend(accumulate(plain.sizes, initial=self._offset + start))
        del self._offsets[-1]
        self._line += len(plain.ids)
        self._last_line = plain.last
        self._flush_ids()
        return stop + 1

    def _plain_parents(self, plain: PlainLines) -> list[int] | None:
        """Rows of the parents of a block of lines, whose ids are then known.

        None, and nothing is known, where an id is there twice or a parent is not there before.
        """
        first = self._first + len(self._kinds)
        own = list(range(first, first + len(plain.ids)))
        rows = self._rows
        above = plain.parents[0]
        top = -1 if above is None else rows.get(above, _UNRESOLVED)
        known = list(map(rows.setdefault, plain.ids, own))
        if known == own and top != _UNRESOLVED:
            if plain.parents[1:] == plain.ids[:-1]:
                return [top, *own[:-1]]
            found = [-1 if each is None else rows.get(each, _UNRESOLVED) for each in plain.parents]
            if _UNRESOLVED not in found and not any(map(ge, found, own)):
                return found
        for entry_id, row, mine in zip(plain.ids, known, own, strict=True):
            if row == mine:
                rows.pop(entry_id, None)
        return None

    def finish(self, tail: bytes) -> Scan:
        """End the pass; `tail` is what follows the last newline.

        Raises Invalid `not_a_session` when there was no header.
        """
        self._check_last_line()
        rows, sought = len(self._kinds), self._seeks_header
        if tail:
            self._line += 1
            if sought:
                self._seek_header(tail, self._offset)
            else:
                self._take_odd_line(tail, self._offset, ended=False)
        if self._seeks_header:
            raise Invalid("not_a_session", "there is no session header")
        self._flush_ids()
        self._resolve_pending()
        if self._untold:
            text = f"{self._untold} more lines or entries were odd"
            self._diagnostics.append(Diagnostic("warning", "more_diagnostics", text))
        return Scan(
            columns=Columns(
                ids=bytes(self._ids),
                parents=self._parents,
                kinds=bytes(self._kinds),
                odd_ids=self._odd_ids,
                shadowed=frozenset(self._shadowed),
            ),
            offsets=self._offsets,
            lengths=self._lengths,
            diagnostics=self._diagnostics,
            lines=self._line,
            header=self._header,
            header_offset=self._header_span[0],
            header_length=self._header_span[1],
            has_orphans=self._has_orphans,
            tail_is_entry=sought or len(self._kinds) > rows,
        )

    def _seek_header(self, line: bytes, offset: int) -> None:
        if not line.strip(_SPACE):
            return
        try:
            stored = decode(line)
        except Damaged as error:
            self._tell("warning", "malformed_line", error.message, offset)
            return
        if not stored and not isinstance(stored, dict | list):
            self._tell("info", "not_an_object", "the line holds no object", offset)
            return
        self._header = header_from_object(stored)
        self._header_span = (offset, len(line))
        self._seeks_header = False

    def _take_entries(self, block: bytes | bytearray, start: int, end: int) -> int:
        # Every line passes here, so what is rare is left to the methods below.
        find, head, kind_of_head = block.find, HEAD.match, self._kind_of_head
        rows, add_digits, add_parent = self._rows, self._digits.append, self._parents.append
        add_kind, add_offset, add_length = (
            self._kinds.append,
            self._offsets.append,
            self._lengths.append,
        )
        shift, begun = self._offset, start
        has_nul = find(b"\0", start, end) >= 0
        has_known = self._known is not None
        above: bytes | None = None
        above_row = row = self._first + len(self._kinds)
        last_start = start
        while (stop := find(b"\n", start, end)) >= 0:
            self._line += 1
            match = head(block, start, stop)
            # A second parentId is a second object on the line, or a repeated key that would win.
            if (
                match is None
                or block[stop - 1] != _BRACE
                or find(PARENT_KEY, match.end(), stop) >= 0
                or (has_nul and find(b"\0", start, stop) >= 0)
                or (kind := kind_of_head[match.group(1, 4, 5)]) < 0
            ):
                self._take_odd_line(bytes(block[start:stop]), shift + start)
                above = None
                row = self._first + len(self._kinds)
            else:
                plain_id, parent = match.group(2, 3)
                if parent is None:
                    parent_row = -1
                elif parent == above:
                    parent_row = above_row
                else:
                    parent_row = rows.get(parent, _UNRESOLVED)
                if parent_row == _UNRESOLVED or has_known or plain_id in rows:
                    self._add_row(plain_id, parent, kind, shift + start, stop - start)
                    above = None
                else:
                    rows[plain_id] = row
                    add_digits(plain_id)
                    add_parent(parent_row)
                    add_kind(kind)
                    add_offset(shift + start)
                    add_length(stop - start)
                    above, above_row = plain_id, row
                row += 1
            last_start = start
            start = stop + 1
        if start > begun:
            self._last_line = bytes(block[last_start : start - 1])
        self._flush_ids()
        return start

    def _flush_ids(self) -> None:
        self._ids += bytes.fromhex(b"".join(self._digits).decode("ascii"))
        self._digits.clear()

    def _take_odd_line(self, line: bytes, offset: int, ended: bool = True) -> None:
        if not line.strip(_SPACE):
            return
        try:
            stored = decode(line)
        except Damaged as error:
            self._take_damaged_line(line, offset, ended, error.message)
            return
        self._take_value(stored, offset, len(line))

    def _take_damaged_line(self, line: bytes, offset: int, ended: bool, why: str) -> None:
        glued = split_glued(line)
        if glued is not None:
            first, second, at = glued
            self._tell("warning", "glued_line", "two records stand on one line", offset)
            if first is not None:
                self._take_value(first, offset, at)
            self._take_value(second, offset + at, len(line) - at)
            return
        if b"\0" in line:
            self._tell("warning", "nul_bytes", "the line holds NUL bytes", offset)
        elif not ended:
            self._tell("warning", "torn_line", "the file ends in the middle of a line", offset)
        else:
            self._tell("warning", "malformed_line", why, offset)

    def _take_value(self, stored: object, offset: int, length: int) -> None:
        if not isinstance(stored, dict):
            self._tell("warning", "not_an_object", "the line holds no object", offset)
            return
        entry_type, entry_id, parent = (stored.get(name) for name in ("type", "id", "parentId"))
        if entry_type == "session":
            self._tell("warning", "second_header", "only the first header counts", offset)
            return
        if not isinstance(entry_id, str):
            self._tell("warning", "missing_id", "the entry has no id", offset)
            return
        message = stored.get("message")
        role = message.get("role") if isinstance(message, dict) else None
        kind = kind_of(str(entry_type), role, stored.get("customType"))
        if parent is not None and not isinstance(parent, str):
            self._tell("warning", "orphan", "the parent is no id", offset, entry_id)
            parent = None
        self._add_row(
            _key(entry_id), None if parent is None else _key(parent), kind, offset, length
        )

    def _add_row(self, key: _Key, parent: _Key | None, kind: int, offset: int, length: int) -> None:
        row = self._first + len(self._kinds)
        parent_row = -1
        if self._row_of(key) is not None:
            self._shadowed.add(row)
            self._tell(
                "warning", "duplicate_id", "an earlier entry has this id", offset, _text(key)
            )
        else:
            self._rows[key] = row
            if parent is not None:
                found = self._row_of(parent)
                if found is None or found == row:
                    self._pending.append(_Pending(row, parent, self._line, offset))
                else:
                    parent_row = found
        if isinstance(key, str):
            self._odd_ids[row] = key
        self._digits.append(key if isinstance(key, bytes) else _NO_DIGITS)
        self._parents.append(parent_row)
        self._kinds.append(kind)
        self._offsets.append(offset)
        self._lengths.append(length)

    def _row_of(self, key: _Key) -> int | None:
        row = self._rows.get(key)
        if row is not None or self._known is None:
            return row
        if self._known_asked == _KNOWN_ASKED_MAX:
            self._learn_known(self._known)
        self._known_asked += 1
        if self._known_asked > _KNOWN_ASKED_MAX:
            return self._rows.get(key)
        return self._known.row_of(_text(key))

    def _learn_known(self, known: Heads) -> None:
        # Asking the columns is cheap for a few ids and dear for many.
        odd, shadowed = known.odd_ids(), known.shadowed
        for row, digits in enumerate(known.plain_ids()):
            if row not in shadowed:
                self._rows[odd.get(row, digits)] = row

    def _check_last_line(self) -> None:
        """Decode the last line if it is a row by its beginning; take it back if that was wrong."""
        line, offset = self._last_line, self._offset - len(self._last_line) - 1
        if not self._offsets or self._offsets[-1] != offset:
            return
        row = self._first + len(self._kinds) - 1
        entry_id = self._id_of(row)
        try:
            stored = decode(line)
        except Damaged as error:
            if is_too_deep(error):
                # Others can read it, and what hangs below it is not to lose its place.
                return
            stored = None
        if isinstance(stored, dict) and stored.get("id") == entry_id:
            return
        if row in self._shadowed:
            self._shadowed.discard(row)
        else:
            self._rows.pop(_key(entry_id), None)
        if self._pending and self._pending[-1].row == row:
            self._pending.pop()
        del self._ids[-4:]
        for column in (self._parents, self._kinds, self._offsets, self._lengths):
            column.pop()
        self._take_odd_line(line, offset)

    def _resolve_pending(self) -> None:
        """Give parents that come later in the file, and cut the circles only those can make."""
        forward: dict[int, _Pending] = {}
        for held in self._pending:
            parent_row = self._row_of(held.parent)
            if parent_row is None:
                self._has_orphans = True
                self._tell_pending(held, "orphan", "the parent is nowhere in the file")
            elif parent_row == held.row:
                self._tell_pending(held, "self_parent", "the entry is its own parent")
            else:
                self._parents[held.row - self._first] = parent_row
                forward[held.row] = held
                self._tell_pending(held, "forward_parent", "the parent comes later in the file")
        for row in cut_circles(self._parents, self._first, forward):
            self._tell_pending(forward[row], "cycle", "the entry is its own ancestor")

    def _id_of(self, row: int) -> str:
        at = (row - self._first) * 4
        return self._odd_ids.get(row, self._ids[at : at + 4].hex())

    def _tell(
        self, severity: Severity, reason: str, text: str, offset: int, entry_id: str | None = None
    ) -> None:
        self._note(
            Diagnostic(severity, reason, text, line=self._line, offset=offset, entry_id=entry_id)
        )

    def _tell_pending(self, held: _Pending, reason: str, text: str) -> None:
        entry_id = self._id_of(held.row)
        self._note(
            Diagnostic(
                "info" if reason == "forward_parent" else "warning",
                reason,
                text,
                line=held.line,
                offset=held.offset,
                entry_id=entry_id,
            )
        )

    def _note(self, diagnostic: Diagnostic) -> None:
        if len(self._diagnostics) < DIAGNOSTICS_MAX:
            self._diagnostics.append(diagnostic)
        else:
            self._untold += 1


def _key(entry_id: str) -> _Key:
    return entry_id.encode("ascii") if is_plain_id(entry_id) else entry_id


def _text(key: _Key) -> str:
    return key.decode("ascii") if isinstance(key, bytes) else key
