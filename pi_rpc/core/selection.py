"""Which rows of a path make a context, before their words are read.

A context begins with the last compaction of its path, goes on with the range that one kept, then
with what came after. So a walk from the leaf finds it without looking at the history behind.

Promises
- No row off the path is in it, and none is in it twice.
- The cost follows the context; only a boundary that is not on the path makes it look further up.
"""

from typing import Literal

import msgspec

from pi_rpc.core.context_messages import is_replacement
from pi_rpc.core.entries import Entry, Kind
from pi_rpc.core.stretches import climb
from pi_rpc.core.tree import ROOT, Tree

Mode = Literal["none", "range", "retain_none", "boundary_missing"]
"""What of the history before its compaction a context has kept.

`none`: there is no compaction. `boundary_missing`: nothing, for what was named is not on the path.
"""


class Selection(msgspec.Struct, frozen=True):
    """The rows of a path a context is made of, before a word is read."""

    leaf_row: int
    compaction_row: int
    """The compaction the context begins with, ROOT for none."""
    mode: Mode
    kept_count: int
    """How many rows after the first stem from before the compaction; 0 without one."""
    rows: list[int]
    """In context order: the compaction, the kept range, what came after; silent ones too."""
    edits: dict[int, int]
    """Edited rows, and the row of the edit that holds for each."""

    @property
    def kept_end(self) -> int:
        """The place of the first row that came after the compaction; 0 without one."""
        return 0 if self.compaction_row == ROOT else 1 + self.kept_count

    def older_compactions(self, tree: Tree) -> list[int]:
        """Compactions in the kept range; they say nothing."""
        kinds = tree.heads.kinds
        kept = self.rows[1 : 1 + self.kept_count]
        return [row for row in kept if kinds[row] == Kind.COMPACTION]


def select(tree: Tree, leaf_row: int) -> Selection:
    """The rows of the context at a leaf. Reads compactions and context edits, no other words.

    A compaction that cannot be read is passed over, so that what it stood for is not lost.
    """
    row = _last_compaction(tree, leaf_row)
    after = tree.path(leaf_row, row)
    mode: Mode = "none"
    kept: list[int] = []
    head: list[int] = []
    if row != ROOT:
        mode, kept = _kept_range(tree, row)
        head = [row]
    rows = head + kept + after
    edits: dict[int, int] = {}
    for edit_row in tree.heads.of_kinds(rows, frozenset({Kind.CONTEXT_EDIT})):
        note_edit(tree, edit_row, edits)
    return Selection(leaf_row, row, mode, len(kept), rows, edits)


def _last_compaction(tree: Tree, leaf_row: int) -> int:
    """The deepest compaction of a path that can be read, ROOT for none."""
    kinds = tree.heads.kinds
    for stretch in climb(tree.heads.parents, leaf_row, ROOT):
        beyond = stretch.stop
        while (beyond := kinds.rfind(Kind.COMPACTION, stretch.start, beyond)) != -1:
            if entry_or_none(tree, beyond) is not None:
                return beyond
    return ROOT


def _kept_range(tree: Tree, compaction_row: int) -> tuple[Mode, list[int]]:
    kinds, parents = tree.heads.kinds, tree.heads.parents
    first_kept = tree.entry(compaction_row).object.get("firstKeptEntryId")
    if first_kept == tree.heads.id_of(compaction_row):
        return "retain_none", []
    boundary = tree.heads.row_of(first_kept) if isinstance(first_kept, str) else None
    if boundary is None:
        return "boundary_missing", []
    kept: list[int] = []
    row = parents[compaction_row]
    while row != ROOT:
        # The checkpoint stands for the system messages before it.
        if kinds[row] != Kind.SYSTEM:
            kept.append(row)
        if row == boundary:
            kept.reverse()
            return "range", kept
        row = parents[row]
    return "boundary_missing", []


def entry_or_none(tree: Tree, row: int) -> Entry | None:
    """The entry of a row, None when its line cannot be read: such a line says nothing."""
    return tree.readable(row)


def note_edit(tree: Tree, edit_row: int, edits: dict[int, int]) -> None:
    """Let the edit in a row hold for its target, over any edit noted before."""
    entry = entry_or_none(tree, edit_row)
    fields = {} if entry is None else entry.object
    target = fields.get("targetId")
    # An edit that says nothing a reader could follow leaves the one before it in force.
    if not isinstance(target, str) or "replacement" not in fields:
        return
    if not is_replacement(fields["replacement"]):
        return
    target_row = tree.heads.row_of(target)
    if target_row is not None:
        edits[target_row] = edit_row
