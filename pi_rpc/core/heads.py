"""The head of every entry of a session, as columns: id, parent and kind, one row an entry line.

A session of 100,000 entries is held in 0.9 MB: a row is four bytes of id, four of parent and one of
kind. Ids that are not eight lowercase hexadecimal digits stand in a table beside the column.

Promises
- Rows are in file order and never move; a row's parent is another row or -1; no walk up is endless.
- An id names one row: the first that has it. Later ones are kept as shadowed rows, which are in no
  tree and are found by no id.
- A parent may stand below its child in the file (in files other programs reordered), so a row's
  parent is not always a smaller number.
"""

import re
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import compress

import msgspec

from pi_rpc.core.stretches import stretches

_PLAIN_ID = re.compile(r"[0-9a-f]{8}\Z", re.ASCII)
_BLANK = bytes(4)
UNSORTED_ROWS_MAX = 8192
"""So many rows are looked through in a few microseconds."""
BLOCK_ROWS = 1 << 16
"""So many ids are sorted at once."""


@cache
def _marking(kinds: frozenset[int]) -> bytes:
    return bytes(kind in kinds for kind in range(256))


def is_plain_id(entry_id: str) -> bool:
    """Whether an id is eight lowercase hexadecimal digits, as nearly all are."""
    return _PLAIN_ID.match(entry_id) is not None


class Columns(msgspec.Struct, frozen=True):
    """Rows to be added at once; rows named in it are counted from the start of the session."""

    ids: bytes
    """Four bytes a row; of no meaning for rows in `odd_ids`."""
    parents: "array[int]"
    kinds: bytes
    odd_ids: dict[int, str]
    shadowed: frozenset[int] = frozenset()


class Heads:
    """The heads of a session, growing at the end only."""

    __slots__ = ("_ids", "_odd_ids", "_odd_rows", "_shadowed", "_sorted", "kinds", "parents")

    def __init__(self) -> None:
        self._ids = bytearray()
        self._odd_ids: dict[int, str] = {}
        self._odd_rows: dict[str, int] = {}
        self._shadowed: set[int] = set()
        self._sorted: list[array[int]] = []
        """Holds: the ids of the first rows as numbers, in sorted blocks; none until wanted."""
        self.parents: array[int] = array("i")
        """Row of the parent of each row; -1 for a root, an orphan and a shadowed row."""
        self.kinds = bytearray()
        """The `Kind` of each row, as its number."""

    def __len__(self) -> int:
        return len(self.kinds)

    def id_of(self, row: int) -> str:
        """The id stored in a row."""
        if not 0 <= row < len(self.kinds):
            raise IndexError(row)
        odd = self._odd_ids.get(row)
        return self._ids[row * 4 : row * 4 + 4].hex() if odd is None else odd

    def ids_of(self, rows: list[int]) -> list[str]:
        """The ids of rows that there are; of many, sooner than one by one."""
        if self._odd_ids:
            return [self.id_of(row) for row in rows]
        ids = b"".join(self._ids[one.start * 4 : one.stop * 4] for one in stretches(rows))
        # One text of all of them, parted into theirs: nothing is done for each by itself.
        return ids.hex(" ", 4).split()

    def kinds_of(self, rows: list[int]) -> bytes:
        """The kinds of rows, a byte each."""
        return b"".join(self.kinds[one.start : one.stop] for one in stretches(rows))

    def of_kinds(self, rows: list[int], kinds: frozenset[int]) -> list[int]:
        """Those rows that are of certain kinds."""
        return list(compress(rows, self.kinds_of(rows).translate(_marking(kinds))))

    def row_of(self, entry_id: str) -> int | None:
        """The row an id names; None when there is none."""
        if not is_plain_id(entry_id):
            return self._odd_rows.get(entry_id)
        # From the end, for recent entries are asked for most; a dictionary of every id would cost
        # ten times the memory of the columns.
        needle = bytes.fromhex(entry_id)
        end, start = len(self._ids), 0
        if self._sorted:
            number = memoryview(needle).cast("I")[0]
            blocks = self._sorted
            if not any(_is_in(block, number) for block in blocks):
                start = sum(map(len, blocks)) * 4
        while (found := self._ids.rfind(needle, start, end)) >= 0:
            row, misplaced = divmod(found, 4)
            if not misplaced and row not in self._odd_ids and row not in self._shadowed:
                return row
            end = found + 3
        return None

    @property
    def unsorted_rows(self) -> int:
        """Rows that must be looked through for an id that is not there."""
        return len(self) - sum(map(len, self._sorted))

    def sort_ids(self) -> None:
        """Make an id that is not there cost no look at the rows there are now.

        Worth it before rows are added, for each new id is looked for. Takes four bytes a row;
        others may ask meanwhile.
        """
        # In blocks, for a million at once would hold up everybody; a last one that is not full is
        # sorted again with what came.
        blocks = [block for block in self._sorted if len(block) == BLOCK_ROWS]
        with memoryview(bytes(self._ids)) as ids, ids.cast("I") as numbers:
            for start in range(len(blocks) * BLOCK_ROWS, len(numbers), BLOCK_ROWS):
                blocks.append(array("I", sorted(numbers[start : start + BLOCK_ROWS])))
        self._sorted = blocks

    def is_shadowed(self, row: int) -> bool:
        """Whether an earlier row has the same id, so that this one is in no tree."""
        return row in self._shadowed

    @property
    def shadowed(self) -> frozenset[int]:
        """Every shadowed row; nearly always none."""
        return frozenset(self._shadowed)

    def last_row(self) -> int:
        """The row that the id of the last line names; -1 when there is no row."""
        last = len(self) - 1
        if last not in self._shadowed:
            return last
        row = self.row_of(self.id_of(last))
        return -1 if row is None else row

    def append(self, entry_id: str, parent_row: int, kind: int) -> int:
        """Add one row; its number. A row with an id that is taken is shadowed."""
        row = len(self)
        if not -1 <= parent_row < row:
            raise IndexError(parent_row)
        if self.row_of(entry_id) is not None:
            self._shadowed.add(row)
            parent_row = -1
        elif not is_plain_id(entry_id):
            self._odd_rows[entry_id] = row
        if is_plain_id(entry_id):
            self._ids += bytes.fromhex(entry_id)
        else:
            self._ids += _BLANK
            self._odd_ids[row] = entry_id
        self.parents.append(parent_row)
        self.kinds.append(kind)
        return row

    def extend(self, columns: Columns) -> range:
        """Add many rows; their numbers."""
        first = len(self)
        self._ids += columns.ids
        self.parents.extend(columns.parents)
        self.kinds += columns.kinds
        self._odd_ids |= columns.odd_ids
        self._shadowed |= columns.shadowed
        for row, entry_id in columns.odd_ids.items():
            if row not in columns.shadowed:
                self._odd_rows[entry_id] = row
        return range(first, len(self))

    def extend_path(self, source: "Heads", first: int, last: int) -> range:
        """Add rows first..last-1 of another session, each below the row before it."""
        start = len(self)
        shift = start - first
        odd = {
            row + shift: entry_id
            for row, entry_id in source._odd_ids.items()
            if first <= row < last
        }
        return self.extend(
            Columns(
                ids=bytes(source._ids[first * 4 : last * 4]),
                parents=array("i", range(start - 1, start - 1 + last - first)),
                kinds=bytes(source.kinds[first:last]),
                odd_ids=odd,
            )
        )

    def truncate(self, length: int) -> None:
        """Take back the rows from `length` on."""
        for row in [row for row in self._odd_ids if row >= length]:
            entry_id = self._odd_ids.pop(row)
            if self._odd_rows.get(entry_id) == row:
                del self._odd_rows[entry_id]
        self._shadowed = {row for row in self._shadowed if row < length}
        del self._ids[length * 4 :]
        self._sorted = []
        del self.parents[length:]
        del self.kinds[length:]

    def columns(self) -> Columns:
        """All rows, for storing them elsewhere."""
        return Columns(
            ids=bytes(self._ids),
            parents=self.parents[:],
            kinds=bytes(self.kinds),
            odd_ids=dict(self._odd_ids),
            shadowed=frozenset(self._shadowed),
        )

    def checksum(self) -> int:
        """What two heads have in common, as good as surely, only if they are equal."""
        checksum = zlib.crc32(self._ids)
        checksum = zlib.crc32(memoryview(self.parents).cast("B"), checksum)
        checksum = zlib.crc32(self.kinds, checksum)
        return zlib.crc32(repr((self._odd_ids, sorted(self._shadowed))).encode(), checksum)

    def plain_ids(self) -> Iterator[bytes]:
        """The eight digits of each row, in order; of no meaning for rows in `odd_ids()`."""
        digits = bytes(self._ids).hex().encode("ascii")
        return (digits[at : at + 8] for at in range(0, len(digits), 8))

    def odd_ids(self) -> dict[int, str]:
        """The ids that are not eight lowercase hexadecimal digits, by row."""
        return dict(self._odd_ids)


def _is_in(numbers: "array[int]", number: int) -> bool:
    place = bisect_left(numbers, number)
    return place < len(numbers) and numbers[place] == number


def cut_circles(parents: "array[int]", first: int, forward: Iterable[int]) -> list[int]:
    """Make roots of the rows that close a circle; which they were.

    `parents` begins at row `first`; `forward` are the rows whose parent comes later, the only ones
    that can close a circle. The row of a circle that comes first in the file is made a root.
    """
    safe = bytearray(len(parents))
    cut = []
    for row in forward:
        walked: dict[int, None] = {}
        at = row
        while at >= first and not safe[at - first] and at not in walked:
            walked[at] = None
            at = parents[at - first]
        if at in walked:
            order = list(walked)
            lowest = min(order[order.index(at) :])
            parents[lowest - first] = -1
            cut.append(lowest)
        for seen in walked:
            safe[seen - first] = 1
    return cut
