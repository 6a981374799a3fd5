"""The lines of a new file: its first entries, or those a copy plan takes along."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from pi_rpc.core.branching import CopyPlan, Kept, Made
from pi_rpc.core.codec import encode
from pi_rpc.core.entries import Body, cursor, entry_object
from pi_rpc.core.events import Environment
from pi_rpc.core.ports.clock import Ids
from pi_rpc.core.ports.store import CopiedRows, NewLine
from pi_rpc.core.tree import DEAD_END_KINDS, ROOT
from pi_rpc.core.versions import FilesAt, verdict
from pi_rpc.session.session import Session


def chained(bodies: Sequence[Body], ids: Ids, timestamp: str) -> list[NewLine]:
    """The first lines of a new session, each below the one before it."""
    lines: list[NewLine] = []
    parent_id: str | None = None
    for row, body in enumerate(bodies):
        entry_id = ids.entry_id()
        while any(entry_id == line.entry_id for line in lines):
            entry_id = ids.entry_id()
        stored = entry_object(body, entry_id, parent_id, timestamp)
        lines.append(NewLine(encode(stored), entry_id, row - 1, body.kind))
        parent_id = entry_id
    return lines


class CopyLines:
    """The lines of a copy, each below the one before it."""

    def __init__(self, source: Session, now: str) -> None:
        self.lines: list[NewLine | CopiedRows] = []
        self._source = source
        self._now = now
        self._count = 0
        self._parent_id: str | None = None
        self._leaf: tuple[int, str | None] = ROOT, None
        """Row and id of the last entry that can be the leaf."""
        self._used: set[str] = set()

    def add_plan(self, plan: CopyPlan) -> None:
        """Add everything a plan takes along or makes."""
        heads = self._source.tree.heads
        for piece in plan.pieces:
            if isinstance(piece, Kept):
                self.lines.append(CopiedRows(piece.first, piece.last))
                self._count += piece.last - piece.first
                self._parent_id = heads.id_of(piece.last - 1)
                self._leaf = self._count - 1, self._parent_id
            else:
                stored = piece.object | {"parentId": self._parent_id}
                kind = self._source.tree.kind(piece.row)
                self._append(NewLine(encode(stored), heads.id_of(piece.row), self._count - 1, kind))
        for made in plan.made:
            self._append(self._made_line(made))

    def add_cursor(self, environment: Environment) -> None:
        """Say last how the world stands to where the copy ends."""
        row, leaf_id = self._leaf
        mark = cursor(leaf_id, None, leaf_id, msgspec.to_builtins(environment))
        self._parent_id = leaf_id
        self._append(msgspec.structs.replace(self._made_line(Made(mark, None)), parent_row=row))

    def _append(self, line: NewLine) -> None:
        self.lines.append(line)
        self._count += 1
        self._parent_id = line.entry_id
        if line.kind not in DEAD_END_KINDS:
            self._leaf = self._count - 1, line.entry_id

    def _made_line(self, made: Made) -> NewLine:
        heads, ids = self._source.tree.heads, self._source.around.ids
        entry_id = ids.entry_id()
        while entry_id in self._used or heads.row_of(entry_id) is not None:
            entry_id = ids.entry_id()
        self._used.add(entry_id)
        stored = entry_object(made.body, entry_id, self._parent_id, made.timestamp or self._now)
        return NewLine(encode(stored), entry_id, self._count - 1, made.body.kind)


def files_of_copy(source: Session, plan: CopyPlan, leaf_row: int, cwd: Path) -> FilesAt:
    """Where the files stand for a new copy: as for its source, seen from the copied leaf.

    Another folder was never watched; a folder that does not fit the leaf fits none of the copy.
    """
    if cwd != source.cwd:
        return FilesAt(leaf_row, known=False, reason="not_watched")
    here = verdict(source.tree, source.standing.files, plan.leaf_row)
    if here.status == "restored":
        return FilesAt(leaf_row)
    return FilesAt(leaf_row, known=False, reason=here.scopes["files"].reason)
