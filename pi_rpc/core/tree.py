"""The tree of a session's entries: who hangs below whom, and what holds for the whole file.

A tree looks at two things it does not own: the heads (one row an entry, in file order) and a way
to read a row's stored line. Entries are decoded when asked for, so what a question costs follows
the rows it touches, never the length of the history.

Promises
- Rows only grow. A row's parent never changes, so a path is the same each time it is asked for.
- Every walk ends: the heads hold a forest, whatever the file said.
- Labels and the name are the file's, not a branch's: the last one in file order counts.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence

from pi_rpc.core.codec import decode
from pi_rpc.core.entries import Entry, Kind
from pi_rpc.core.errors import Damaged, Missing
from pi_rpc.core.heads import Heads
from pi_rpc.core.messages import JsonObject

ROOT = -1
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

    def __init__(self, heads: Heads, read_line: Callable[[int], bytes]) -> None:
        self.heads = heads
        self._read_line = read_line
        self._decoded: dict[int, Entry] = {}
        self._first = array("i", (ROOT,))
        """Holds: the first child of each row, ROOT for none; here and below a place is row + 1."""
        self._last = array("i", (ROOT,))
        self._next = array("i", (ROOT,))
        """Holds: the child after each row below the same parent, ROOT for none."""
        self._children_cover = 0
        self._labels: dict[str, int] = {}
        self._name_row = ROOT
        self._globals_cover = 0

    def __len__(self) -> int:
        return len(self.heads)

    def entry(self, row: int) -> Entry:
        """The decoded entry of a row.

        Raises Damaged `unreadable_line` when its bytes are broken.
        """
        found = self._decoded.get(row)
        if found is not None:
            return found
        return self.learn(row, self.stored(row))

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
        entry = Entry(
            row=row,
            kind=self.kind(row),
            id=self.heads.id_of(row),
            parent_id=self.id_or_none(self.parent(row)),
            object=stored,
        )
        self._keep(entry)
        return entry

    def _keep(self, entry: Entry) -> None:
        if len(self._decoded) >= DECODED_ROWS_MAX:
            self._decoded.pop(next(iter(self._decoded)))
        self._decoded[entry.row] = entry

    def line(self, row: int) -> bytes:
        """The stored bytes of a row, without the newline."""
        return self._read_line(row)

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

    def path(self, row: int) -> list[int]:
        """Rows from the root to `row`; empty for ROOT."""
        parents = self.heads.parents
        rows = []
        while row != ROOT:
            rows.append(row)
            row = parents[row]
        rows.reverse()
        return rows

    def has_ancestor(self, row: int, ancestor: int) -> bool:
        """Whether `ancestor` lies on the path of `row`, itself included.

        ROOT is above everything.
        """
        return ancestor == ROOT or any(above == ancestor for above in self.upward(row))

    def common_ancestor(self, one: int, other: int) -> int:
        """The deepest row on both paths, ROOT when they share none."""
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
        self._learn_children()
        found = []
        child = self._first[row + 1]
        while child != ROOT:
            found.append(child)
            child = self._next[child + 1]
        return found

    def _learn_children(self) -> None:
        # Three columns in place of a list for each row: a list would take ten times as much.
        parents, first, last, after = self.heads.parents, self._first, self._last, self._next
        more = array("i", (ROOT,)) * (len(self.heads) - self._children_cover)
        for column in (first, last, after):
            column.extend(more)
        for row in range(self._children_cover, len(self.heads)):
            if self.heads.is_shadowed(row):
                continue
            above = parents[row] + 1
            if last[above] == ROOT:
                first[above] = row
            else:
                after[last[above] + 1] = row
            last[above] = row
        self._children_cover = len(self.heads)

    def tips(self) -> list[int]:
        """Rows nothing visible hangs below: the ends of the branches, in file order.

        A row that bears only labels, names, cursors and the like is itself the tip.
        """
        parents, kinds = self.heads.parents, self.heads.kinds
        count = len(self.heads)
        bears = bytearray(count)
        tips = []
        # Visibility climbs: one pass from the end meets every child before its parent, but for the
        # rare parent that stands later in the file, which the walk above it settles.
        for row in range(count - 1, -1, -1):
            if self.heads.is_shadowed(row):
                continue
            if kinds[row] in INVISIBLE_KINDS and not bears[row]:
                continue
            if not bears[row]:
                tips.append(row)
            above = parents[row]
            while above != ROOT and not bears[above]:
                bears[above] = 1
                above = parents[above]
        tips.reverse()
        return tips

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
