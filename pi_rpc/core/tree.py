"""The tree of a session's entries: who hangs below whom, and what holds for the whole file.

A tree looks at two things it does not own: the heads (one row an entry, in file order) and a way
to read a row's stored line. Entries are decoded when asked for, so what a question costs follows
the rows it touches, never the length of the history.

Promises
- Rows only grow. A row's parent never changes, so a path is the same each time it is asked for.
- Every walk ends: the heads hold a forest, whatever the file said.
- Labels and the name are the file's, not a branch's: the last one in file order counts.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain
from operator import ge

from pi_rpc.core.children import NONE, Children, Tips
from pi_rpc.core.codec import decode
from pi_rpc.core.entries import Entry, Kind, stand_in
from pi_rpc.core.errors import Damaged, Missing
from pi_rpc.core.heads import Heads
from pi_rpc.core.messages import JsonObject
from pi_rpc.core.stretches import climb

ROOT = NONE
"""The row above every root: where the leaf stands before the first entry."""

DECODED_ROWS_MAX = 512
"""How many decoded entries are kept; a page of a client or a live context is smaller."""

INVISIBLE_KINDS = frozenset(
    {
        Kind.LABEL,
        Kind.SESSION_INFO,
        Kind.USAGE,
        Kind.CUSTOM,
        Kind.CURSOR,
        Kind.WORKSPACE,
        Kind.PROJECTION,
        Kind.FORK,
        Kind.PIN,
    }
)
"""Entries that move the leaf on disk but are no step of the conversation."""

DEAD_END_KINDS = frozenset({Kind.CURSOR, Kind.FORK})
"""Marks of ours that never become the leaf."""


_KIND_OF = {kind.value: kind for kind in Kind}


class Tree:
    """A session's entries by row, id, parent and path."""

    def __init__(
        self,
        heads: Heads,
        read_line: Callable[[int], bytes],
        read_block: Callable[[Sequence[int], int], tuple[bytes, int]] | None = None,
    ) -> None:
        self.heads = heads
        self._read_line = read_line
        self._read_block = read_block
        self._decoded: dict[int, Entry] = {}
        self.below = Children(heads)
        self._is_ordered = True
        """Whether each of the first rows has its parent before it."""
        self._ordered_cover = 0
        self._tips = Tips(heads, bytes(INVISIBLE_KINDS))
        self._labels: dict[str, int] = {}
        self._name_row = ROOT
        self._globals_cover = 0

    def __len__(self) -> int:
        return len(self.heads)

    def entry(self, row: int) -> Entry:
        """The decoded entry of a row; one whose line cannot be read says nothing but its place.

        So a line that is damaged costs that line, and no question about the tree around it.
        """
        return self.readable(row) or self._entry(row, stand_in(self.kind(row)))

    def readable(self, row: int) -> Entry | None:
        """The decoded entry of a row, None when its line cannot be read."""
        found = self._decoded.get(row)
        if found is not None:
            return found
        try:
            return self.learn(row, self.stored(row))
        except Damaged:
            return None

    def stored(self, row: int) -> JsonObject:
        """The object of a row, not kept for the next time: for going through many rows once.

        Raises Damaged `unreadable_line` when its bytes are broken.
        """
        found = self._decoded.get(row)
        if found is not None:
            return found.object
        stored = decode(self._read_line(row))
        if not isinstance(stored, dict):
            raise Damaged("unreadable_line", "a stored line is no object", row=row)
        return stored

    def learn(self, row: int, stored: JsonObject) -> Entry:
        """The entry of a row whose object is at hand, kept for the next time it is asked for."""
        entry = self._entry(row, stored)
        self._keep(entry)
        return entry

    def _entry(self, row: int, stored: JsonObject) -> Entry:
        return Entry(
            row=row,
            kind=self.kind(row),
            id=self.heads.id_of(row),
            parent_id=self.id_or_none(self.parent(row)),
            object=stored,
        )

    def _keep(self, entry: Entry) -> None:
        if len(self._decoded) >= DECODED_ROWS_MAX:
            self._decoded.pop(next(iter(self._decoded)))
        self._decoded[entry.row] = entry

    def line(self, row: int) -> bytes:
        """The stored bytes of a row, without the newline."""
        return self._read_line(row)

    def blocks(self, rows: Sequence[int]) -> Iterator[tuple[Sequence[int], bytes]]:
        """Rows and their stored lines, a newline between each two, in the order given.

        For going through many rows once: as many at a time as one read brings, a moment's work.
        """
        at = 0
        while at < len(rows):
            if self._read_block is None:
                lines, count = self._read_line(rows[at]), 1
            else:
                lines, count = self._read_block(rows, at)
            yield rows[at : at + count], lines
            at += count

    def kind(self, row: int) -> Kind:
        """What a row is, without decoding it."""
        return _KIND_OF[self.heads.kinds[row]]

    def row_of(self, entry_id: str) -> int:
        """The row of an id. Raises Missing `entry_not_found`."""
        row = self.heads.row_of(entry_id)
        if row is None:
            raise Missing("entry_not_found", f"no entry {entry_id!r}", entryId=entry_id)
        return row

    def row_or_root(self, entry_id: str | None) -> int:
        """The row of an id, ROOT for None. Raises Missing `entry_not_found`."""
        return ROOT if entry_id is None else self.row_of(entry_id)

    def id_or_none(self, row: int) -> str | None:
        """The id of a row, None for ROOT."""
        return None if row == ROOT else self.heads.id_of(row)

    def parent(self, row: int) -> int:
        """The parent's row, ROOT for a root."""
        return self.heads.parents[row]

    def upward(self, row: int) -> Iterator[int]:
        """Rows from `row` to its root."""
        parents = self.heads.parents
        while row != ROOT:
            yield row
            row = parents[row]

    def path(self, row: int, above: int = ROOT) -> list[int]:
        """Rows from the root, or from below an ancestor of it, to `row`; empty for ROOT."""
        upward = list(climb(self.heads.parents, row, above))
        return list(chain.from_iterable(reversed(upward)))

    def has_ancestor(self, row: int, ancestor: int) -> bool:
        """Whether `ancestor` lies on the path of `row`, itself included.

        ROOT is above everything.
        """
        return ancestor == ROOT or any(above == ancestor for above in self.upward(row))

    def those_on_path(self, rows: Collection[int], leaf_row: int) -> set[int]:
        """Those of some rows that lie on the path to a leaf; it is walked up to them only."""
        found: set[int] = set()
        if not rows:
            return found
        wanted, top = set(rows), min(rows)
        parents = self.heads.parents
        # Where a parent stands below its child, what is wanted may come behind any row.
        if not self._has_ordered_parents():
            top = 0
        row = leaf_row
        while row >= top and row != ROOT:
            if row in wanted:
                found.add(row)
            row = parents[row]
        return found

    def _has_ordered_parents(self) -> bool:
        start, parents = self._ordered_cover, self.heads.parents
        if self._is_ordered and start < len(parents):
            self._is_ordered = not any(map(ge, parents[start:], range(start, len(parents))))
            self._ordered_cover = len(parents)
        return self._is_ordered

    def common_ancestor(self, one: int, other: int) -> int:
        """The deepest row on both paths, ROOT when they share none."""
        parents = self.heads.parents
        if ROOT in (one, other):
            return ROOT
        low, high = min(one, other), max(one, other)
        # Whoever stands further down in the file goes up, as long as parents stand before children.
        while high != low:
            above = parents[high]
            if above >= high:
                return self._common_ancestor_anyhow(one, other)
            low, high = (above, low) if above < low else (low, above)
        return low

    def _common_ancestor_anyhow(self, one: int, other: int) -> int:
        parents = self.heads.parents
        seen_one: set[int] = set()
        seen_other: set[int] = set()
        # Walk both in step: the cost follows the shorter way down to where they part.
        while one != ROOT or other != ROOT:
            if one != ROOT:
                if one in seen_other or one == other:
                    return one
                seen_one.add(one)
                one = parents[one]
            if other != ROOT:
                if other in seen_one:
                    return other
                seen_other.add(other)
                other = parents[other]
        return ROOT

    def children(self, row: int) -> Sequence[int]:
        """Rows below `row` in file order; of ROOT the roots."""
        return list(self.below.of(row))

    def tips(self) -> list[int]:
        """Rows nothing visible hangs below: the ends of the branches, in file order.

        A row that bears only labels, names, cursors and the like is itself the tip.
        """
        return self._tips.rows()

    def visible(self, row: int) -> int:
        """The nearest row at or above `row` that is a step of the conversation, ROOT if none."""
        kinds = self.heads.kinds
        for above in self.upward(row):
            if kinds[above] not in INVISIBLE_KINDS:
                return above
        return ROOT

    def stored_leaf(self) -> int:
        """Where the leaf stands by the file alone: its last entry, or above it for marks of ours.

        A cursor and a fork mark are dead ends in what we write: the next entry hangs beside them.
        """
        last = self.heads.last_row()
        if last != ROOT and self.heads.kinds[last] in DEAD_END_KINDS:
            return self.parent(last)
        return last

    def label_of(self, entry_id: str) -> str | None:
        """The label an id bears now."""
        self._learn_globals()
        row = self._labels.get(entry_id)
        if row is None:
            return None
        text = self.entry(row).object.get("label")
        return text if isinstance(text, str) else None

    def labels(self) -> dict[str, int]:
        """Labelled ids and the row of each one's label entry, in the order they were first set."""
        self._learn_globals()
        return dict(self._labels)

    def name(self) -> str | None:
        """The session's name, None when it has none."""
        self._learn_globals()
        if self._name_row == ROOT:
            return None
        return name_in(self.entry(self._name_row).object)

    def _learn_globals(self) -> None:
        kinds = self.heads.kinds
        for row in _rows_of(kinds, Kind.LABEL, self._globals_cover):
            fields = self.entry(row).object
            target, text = fields.get("targetId"), fields.get("label")
            if not isinstance(target, str) or self.heads.is_shadowed(row):
                continue
            if isinstance(text, str) and text:
                self._labels[target] = row
            else:
                self._labels.pop(target, None)
        for row in _rows_of(kinds, Kind.SESSION_INFO, self._globals_cover):
            if not self.heads.is_shadowed(row):
                self._name_row = row
        self._globals_cover = len(self.heads)

    def rows_of_kind(self, kind: Kind) -> Iterator[int]:
        """Rows of a kind in file order, later copies of an id left out."""
        for row in _rows_of(self.heads.kinds, kind, 0):
            if not self.heads.is_shadowed(row):
                yield row


def name_in(stored: JsonObject) -> str | None:
    """The name a session_info entry gives, None when it clears it."""
    name = stored.get("name")
    return (name.strip() or None) if isinstance(name, str) else None


def _rows_of(kinds: bytearray, kind: Kind, start: int) -> Iterator[int]:
    row = kinds.find(kind, start)
    while row != -1:
        yield row
        row = kinds.find(kind, row + 1)
