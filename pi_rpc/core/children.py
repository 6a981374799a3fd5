"""Which rows hang below each row, and which are the ends of the branches; kept up as rows come.

Promises
- A row is looked at once, however often is asked; rows in chains cost next to nothing.
- Rows that are in no tree, for an earlier one has their id, are nobody's children.
"""

from array import array
from collections.abc import Iterator

from pi_rpc.core.heads import Heads
from pi_rpc.core.stretches import ASCENDING_MAX, ascending

NONE = -1
"""No row; as a parent, what stands above every root."""

CHAIN_ROWS = 64
"""Rows that are taken at once where each hangs below the one before it."""


class Children:
    """The children of each row in file order; three columns, for a list a row would be ten times
    as much.
    """

    def __init__(self, heads: Heads) -> None:
        self._heads = heads
        self._first = array("i", (NONE,))
        """Holds: the first child of each row; here and below a place is row + 1."""
        self._last = array("i", (NONE,))
        self._next = array("i", (NONE,))
        """Holds: the child after each row below the same parent."""
        self._cover = 0

    def first(self, row: int) -> int:
        """The first child of a row, NONE without any; of NONE the first root."""
        self._learn()
        return self._first[row + 1]

    def next(self, row: int) -> int:
        """The child after a row below the same parent, NONE for the last."""
        self._learn()
        return self._next[row + 1]

    def of(self, row: int) -> Iterator[int]:
        """The children of a row; of NONE the roots."""
        child = self.first(row)
        while child != NONE:
            yield child
            child = self._next[child + 1]

    def to_parting(self, row: int) -> "array[int]":
        """A row and those above it, up to below the first that has other children too."""
        self._learn()
        parents, first, last = self._heads.parents, self._first, self._last
        rows = array("i", (row,))
        row = parents[row]
        while row != NONE and first[row + 1] == last[row + 1]:
            rows.append(row)
            row = parents[row]
        return rows

    def _learn(self) -> None:
        start, end = self._cover, len(self._heads)
        if start == end:
            return
        more = array("i", (NONE,)) * (end - start)
        for column in (self._first, self._last, self._next):
            column.extend(more)
        while start < end:
            stop = min(start + ASCENDING_MAX, end)
            if not self._learn_chain(start, stop):
                stop = min(start + CHAIN_ROWS, end)
                if not self._learn_chain(start, stop):
                    self._learn_singly(start, stop)
            start = stop
        self._cover = end

    def _learn_chain(self, start: int, stop: int) -> bool:
        """Take rows of which each hangs below the one before it, and only it; whether they are."""
        count = stop - start
        if self._heads.parents[start:stop] != ascending(start - 1, count):
            return False
        if self._last[start:stop].count(NONE) != count:
            return False
        # The rows are the places of their parents.
        self._first[start:stop] = self._last[start:stop] = ascending(start, count)
        return True

    def _learn_singly(self, start: int, stop: int) -> None:
        parents, first, last, after = self._heads.parents, self._first, self._last, self._next
        for row in range(start, stop):
            if self._heads.is_shadowed(row):
                continue
            above = parents[row] + 1
            if last[above] == NONE:
                first[above] = row
            else:
                after[last[above] + 1] = row
            last[above] = row


class Tips:
    """Rows that nothing visible hangs below."""

    def __init__(self, heads: Heads, invisible: bytes) -> None:
        self._heads = heads
        self._invisible = invisible
        """Kinds that are no step of the conversation."""
        self._bears = bytearray()
        """Holds: for each row whether something visible hangs below it."""
        self._tips: dict[int, None] = {}
        self._cover = 0

    def rows(self) -> list[int]:
        """The ends of the branches, in file order."""
        self._learn()
        return list(self._tips)

    def _learn(self) -> None:
        heads, bears, tips = self._heads, self._bears, self._tips
        start, end = self._cover, len(heads)
        bears.extend(bytes(end - start))
        while start < end:
            self._add(start)
            start += 1
            stop = min(start + ASCENDING_MAX, end)
            if not self._is_chain(start, stop):
                stop = min(start + CHAIN_ROWS, end)
            if start < stop and self._is_chain(start, stop):
                bears[start - 1 : stop - 1] = b"\1" * (stop - start)
                tips.pop(start - 1, None)
                tips[stop - 1] = None
            else:
                for row in range(start, stop):
                    self._add(row)
            start = stop
        self._cover = end

    def _is_chain(self, start: int, stop: int) -> bool:
        """Whether all of them and the row before are visible, each below the one before it."""
        kinds = self._heads.kinds[start - 1 : stop]
        return (
            self._heads.parents[start:stop] == ascending(start - 1, stop - start)
            and self._bears.find(1, start - 1, stop) == -1
            and len(kinds.translate(None, self._invisible)) == len(kinds)
        )

    def _add(self, row: int) -> None:
        heads, bears = self._heads, self._bears
        if heads.is_shadowed(row) or heads.kinds[row] in self._invisible:
            return
        if not bears[row]:
            self._tips[row] = None
        # Whoever bears something already has told all above it.
        above = heads.parents[row]
        while above != NONE and not bears[above]:
            bears[above] = 1
            self._tips.pop(above, None)
            above = heads.parents[above]
